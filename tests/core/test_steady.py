"""The steady timeline: each of its rules by itself."""

from __future__ import annotations

import pytest

from uuidd.core.ids.ticks import TICKS_PER_SECOND
from uuidd.core.timeline.outcomes import NeedsSave, NoneFree, TooFarAhead
from uuidd.core.timeline.slew import MAX_LEAD_SECONDS, TOLERANCE
from uuidd.core.timeline.steady import LOST_MARK, LOST_SECONDS, Rollback, Steady

NOW = 1_000_000_000_000
REACH = 20 * TICKS_PER_SECOND
HELD = LOST_SECONDS * TICKS_PER_SECOND
BACK = TOLERANCE + 1


def save(steady: Steady, *, now: int, elapsed: int = 0, reach: int = REACH) -> int:
    """Let a save begin and complete, and return its mark."""
    mark = steady.begin_save(now=now, elapsed=elapsed, reach=reach)
    steady.horizon.end_save(mark, completed=True)
    return mark


def saved(
    mark: int | None = 0,
    *,
    now: int = NOW,
    rollback: Rollback = "slew",
    max_lead: int = MAX_LEAD_SECONDS * TICKS_PER_SECOND,
    reach: int = REACH,
) -> Steady:
    """A timeline whose first save completed."""
    steady = Steady(mark, now=now, elapsed=0, rollback=rollback, max_lead=max_lead)
    save(steady, now=now, reach=reach)
    return steady


@pytest.mark.parametrize("mark", [0, NOW - 1, NOW, NOW + 1000, None])
def test_nothing_is_given_before_the_first_save(mark: int | None) -> None:
    """Whatever mark was stored, a crash now would repeat what is given past it."""
    steady = Steady(mark, now=NOW, elapsed=0)
    with pytest.raises(NeedsSave):
        steady.take(1, now=NOW, elapsed=0)
    save(steady, now=NOW)
    assert steady.take(1, now=NOW, elapsed=0)[1] == 1


@pytest.mark.parametrize("mark", [NOW - 3, NOW, NOW + 1000])
def test_the_first_tick_is_the_mark(mark: int) -> None:
    steady = saved(mark)
    assert steady.next == mark
    assert steady.take(10**6, now=NOW, elapsed=0) == (mark, max(1, NOW - mark + 1))


@pytest.mark.parametrize("rollback", ["wait", "refuse"])
def test_without_slewing_a_mark_past_utc_is_waited_for(rollback: Rollback) -> None:
    steady = saved(NOW + 1000, rollback=rollback)
    with pytest.raises(NoneFree) as none:
        steady.take(1, now=NOW, elapsed=0)
    assert none.value.wait == 1000
    assert steady.take(5, now=NOW + 1000, elapsed=1000) == (NOW + 1000, 1)


def test_without_a_mark_nothing_before_the_start_is_given() -> None:
    steady = saved(None)
    assert steady.held_until == 0
    assert steady.take(1000, now=NOW + 9, elapsed=9) == (NOW, 10)


@pytest.mark.parametrize(("mark", "block"), [(None, (NOW, 1)), (NOW - 9, (NOW - 9, 10))])
def test_what_is_released_begins_then_or_at_its_mark(
    mark: int | None, block: tuple[int, int]
) -> None:
    """A clock that was not synchronised before may have been ahead."""
    steady = Steady(mark, now=NOW - 9, elapsed=0, withheld="not synchronised")
    steady.release(now=NOW, elapsed=9)
    save(steady, now=NOW, elapsed=9)
    assert steady.take(1000, now=NOW, elapsed=9) == block


def test_a_lost_mark_holds_everything_back_for_20_s() -> None:
    """What the lost run gave out lies before, so the first tick is the one 20 s past the start."""
    steady = Steady(None, now=NOW, elapsed=0, lost=True)
    save(steady, now=NOW)
    assert steady.held_until == NOW + HELD
    for gone in (0, HELD - 1):
        with pytest.raises(NoneFree) as none:
            steady.take(1, now=NOW + gone, elapsed=gone)
        assert none.value.wait == HELD - gone
    save(steady, now=NOW + HELD - 1, elapsed=HELD - 1)
    assert steady.take(1000, now=NOW + HELD, elapsed=HELD) == (NOW + HELD, 1)
    assert steady.held_until == 0


def test_a_restart_before_the_clock_is_good_knows_that_the_mark_was_lost() -> None:
    """By a mark that no clock, however wrong, has made."""
    steady = Steady(None, now=2 * NOW, elapsed=0, lost=True, withheld="not synchronised")
    mark = save(steady, now=2 * NOW)
    assert mark == LOST_MARK
    again = Steady(mark, now=NOW, elapsed=0, withheld="not synchronised")
    assert again.begin_save(now=NOW, elapsed=0, reach=REACH) == LOST_MARK
    again.release(now=NOW, elapsed=0)
    assert again.held_until == again.next == NOW + HELD


def test_a_lost_mark_holds_nothing_back_once_a_later_tick_was_passed_over() -> None:
    steady = Steady(None, now=NOW, elapsed=0, lost=True)
    steady.pass_over(NOW + HELD + 5, now=NOW, elapsed=0)
    assert steady.held_until == 0


def test_a_wait_for_a_lost_mark_is_no_lead() -> None:
    """S is UTC while the state's loss holds it back, and a small max_lead does not refuse it."""
    steady = Steady(None, now=NOW, elapsed=0, lost=True, max_lead=1)
    assert steady.lead(now=NOW, elapsed=0) == 0
    assert steady.read(now=NOW + 5, elapsed=5) == NOW + 5
    save(steady, now=NOW + 5, elapsed=5)
    with pytest.raises(NoneFree):
        steady.take(1, now=NOW + 5, elapsed=5)


@pytest.mark.parametrize(("mark", "horizon"), [(NOW - 5, NOW - 5), (NOW + 5, NOW + 5), (None, 0)])
def test_the_stored_mark_counts_as_saved(mark: int | None, horizon: int) -> None:
    assert Steady(mark, now=NOW, elapsed=0).horizon.limit == horizon


def test_a_whole_block_is_all_or_nothing() -> None:
    steady = saved()
    steady.take(1, now=NOW, elapsed=0)
    with pytest.raises(NoneFree) as none:
        steady.take(10, now=NOW + 3, elapsed=3, whole=True)
    assert none.value.wait == 7
    assert steady.next == NOW + 1
    assert steady.take(10, now=NOW + 10, elapsed=10, whole=True) == (NOW + 1, 10)
    assert steady.take(3, now=NOW + 30, elapsed=30, whole=True) == (NOW + 28, 3)


def test_a_clock_that_was_ahead_while_nothing_was_given_holds_nothing_up() -> None:
    """UTC set a day ahead by mistake and back again: there is nothing to stay past."""
    steady = saved()
    steady.take(1, now=NOW, elapsed=0)
    day = 24 * 3600 * TICKS_PER_SECOND
    save(steady, now=NOW + day, elapsed=5)
    assert steady.lead(now=NOW + day, elapsed=5) == 0
    assert steady.lead(now=NOW + 9, elapsed=9) == 0
    assert steady.take(1, now=NOW + 9, elapsed=9) == (NOW + 9, 1)
    assert save(steady, now=NOW + 10, elapsed=10) == NOW + 10 + REACH


def test_waiting_gives_nothing_until_utc_is_back() -> None:
    steady = saved(rollback="wait")
    steady.take(1, now=NOW, elapsed=0)
    with pytest.raises(NoneFree) as none:
        steady.take(1, now=NOW - BACK, elapsed=10 * BACK)
    assert none.value.wait == BACK + 1
    assert steady.take(9, now=NOW + 1, elapsed=11 * BACK) == (NOW + 1, 1)


def test_refusing_says_the_lead_and_that_none_is_allowed() -> None:
    steady = saved(rollback="refuse")
    steady.take(1, now=NOW, elapsed=0)
    with pytest.raises(TooFarAhead) as ahead:
        steady.take(1, now=NOW - BACK, elapsed=10 * BACK)
    assert (ahead.value.lead, ahead.value.most) == (BACK, 0)
    with pytest.raises(NoneFree) as none:
        steady.take(1, now=NOW - TOLERANCE, elapsed=10 * BACK)
    assert none.value.wait == TOLERANCE + 1
    assert steady.take(9, now=NOW + 1, elapsed=11 * BACK) == (NOW + 1, 1)


def test_a_lead_past_the_most_is_refused_and_told() -> None:
    steady = saved(max_lead=500)
    steady.take(1, now=NOW, elapsed=0)
    far = NOW - TOLERANCE
    with pytest.raises(
        TooFarAhead, match=r"^100511 ticks ahead of UTC, and 500 is the most$"
    ) as ahead:
        steady.take(1, now=far - 501, elapsed=20)
    assert (ahead.value.lead, ahead.value.most) == (TOLERANCE + 511, 500)
    assert steady.next == NOW + 1
    assert steady.take(99, now=far - 490, elapsed=20) == (NOW + 1, 10)


def test_what_was_given_counts_as_lead_where_utc_alone_is_read() -> None:
    """Waiting, S is UTC, but the timeline leads it by what it gave out before the step back."""
    steady = saved(rollback="wait", max_lead=500)
    steady.take(1, now=NOW, elapsed=0)
    assert steady.lead(now=NOW - 500, elapsed=0) == 500
    with pytest.raises(NoneFree):
        steady.take(1, now=NOW - 500, elapsed=0)
    with pytest.raises(TooFarAhead) as ahead:
        steady.take(1, now=NOW - TOLERANCE - 501, elapsed=0)
    assert (ahead.value.lead, ahead.value.most) == (TOLERANCE + 501, 500)


def test_a_mark_far_in_the_future_is_refused() -> None:
    year = 365 * 86_400 * TICKS_PER_SECOND
    steady = saved(NOW + year)
    with pytest.raises(TooFarAhead) as ahead:
        steady.take(1, now=NOW, elapsed=0)
    assert (ahead.value.lead, ahead.value.most) == (year, 3600 * TICKS_PER_SECOND)


def test_the_lead_is_how_far_s_is_past_utc() -> None:
    steady = saved()
    steady.take(1, now=NOW, elapsed=0)
    assert steady.lead(now=NOW, elapsed=0) == 0
    assert steady.lead(now=NOW - 1000, elapsed=0) == 1000
    assert steady.lead(now=NOW - 1000 + 500, elapsed=500) == 750
    assert steady.lead(now=NOW + 1000, elapsed=2000) == 0


def test_the_horizon_is_the_mark_of_the_completed_save() -> None:
    steady = saved(reach=100)
    assert steady.horizon.limit == NOW + 100
    assert steady.take(1, now=NOW + 99, elapsed=99) == (NOW + 99, 1)
    with pytest.raises(NeedsSave):
        steady.take(1, now=NOW + 100, elapsed=100)
    save(steady, now=NOW + 100, elapsed=100)
    assert steady.take(1, now=NOW + 100, elapsed=100) == (NOW + 100, 1)


def test_there_is_no_save_to_wait_for_where_nothing_is_free() -> None:
    """At the horizon, but all up to S given out: the answer is to wait for the clock."""
    steady = saved(reach=100)
    steady.take(1, now=NOW + 99, elapsed=99)
    with pytest.raises(NoneFree) as none:
        steady.take(1, now=NOW + 99, elapsed=99)
    assert none.value.wait == 1


def test_a_mark_covers_all_that_was_given() -> None:
    """Waiting for UTC, a lead past it lies below ``next``: the mark is ``next`` then."""
    steady = saved(rollback="wait")
    steady.take(1, now=NOW, elapsed=0)
    assert steady.begin_save(now=NOW - BACK, elapsed=10, reach=100) == NOW + 1
