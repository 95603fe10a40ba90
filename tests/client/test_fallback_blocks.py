"""The fallback: ticks of UTC and steady ticks, of a clock that steps, or stands still."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest

from tests.client.fakes import START, Time
from uuidd.core.ids.nodes import MULTICAST
from uuidd.core.ids.places import Origin
from uuidd.core.ids.ticks import TICKS_PER_SECOND
from uuidd.core.timeline.slew import TOLERANCE
from uuidd_client.fallback import MAX_LEAD, STILL_SECONDS, Fallback

SECOND = TICKS_PER_SECOND
YEAR = 365 * 86400 * SECOND


@pytest.fixture
def time() -> Time:
    """Return a clock that is moved by hand, at START."""
    return Time()


@pytest.fixture
def here(time: Time) -> Fallback:
    """Return a fallback that has given nothing yet."""
    return Fallback(time)


def utc(here: Fallback, count: int = 1) -> tuple[range, Origin]:
    """Return the ticks of UTC that it gives, counted from START, and their origin."""
    first, taken, origin = here.utc(count)
    return range(first - START, first - START + taken), origin


def steady(here: Fallback, count: int = 1, past: int = -START) -> range:
    """Return the steady ticks that it gives, counted from START; so does *past*."""
    first, taken, _ = here.steady(count, START + past)
    return range(first - START, first - START + taken)


def test_a_block_is_of_the_latest_ticks(here: Fallback) -> None:
    """Up to now, and none past it."""
    assert utc(here, 10)[0] == steady(here, 10) == range(-9, 1)


def test_no_tick_comes_twice(here: Fallback, time: Time) -> None:
    """A block has only what is free, and waits until there is something."""
    takes: list[Callable[[], range]] = [lambda: utc(here, 4)[0], lambda: steady(here, 4)]
    for take in takes:
        blocks = []
        for pause in (0, 0, 2, 100, 0):
            time.utc += pause
            blocks.append(take())
        assert all(one[-1] < other[0] for one, other in pairwise(blocks))


def test_nodes_are_random_and_marked_so(time: Time) -> None:
    """No card's address has the multicast bit. Each timeline draws its own node."""
    origins = [
        origin
        for here in (Fallback(time), Fallback(time))
        for origin in (here.utc(1)[2], here.steady(1, 0)[2])
    ]
    assert all(origin.node & MULTICAST for origin in origins)
    assert len({origin.node for origin in origins}) == len({tuple(each) for each in origins}) == 4
    assert len({origin.clock_seq for origin in origins}) > 1


def test_ids_without_a_daemon_have_no_lane_and_no_worker_number(here: Fallback) -> None:
    """The bits of the lane are random too."""
    for origin in (here.utc(1)[2], here.steady(1, 0)[2]):
        assert (origin.lane, origin.worker) == (None, None)


# --- UTC


@pytest.mark.parametrize("back", [1, TOLERANCE - 1])
def test_a_small_step_back_of_utc_is_waited_out(here: Fallback, time: Time, back: int) -> None:
    """The same node goes on, later."""
    _, before = utc(here)
    time.utc -= back
    assert utc(here) == (range(1, 2), before)


def test_after_a_large_step_back_of_utc_the_node_is_another(here: Fallback, time: Time) -> None:
    """Nobody waits, and ticks come again."""
    _, before = utc(here)
    time.utc -= TOLERANCE
    ticks, after = utc(here)
    assert ticks == range(-TOLERANCE, 1 - TOLERANCE)
    assert after.node != before.node


class Still(Time):
    """A clock whose UTC stands still, while the time elapsed goes on: a millisecond at least."""

    waited = 0.0

    def pause(self, seconds: float) -> None:
        """Let so much time elapse."""
        self.waited += max(seconds, 0.001)
        assert self.waited < 1, "nobody waits for long"
        self.ticks += round(max(seconds, 0.001) * SECOND)


def test_a_clock_that_stands_still_is_waited_for_once() -> None:
    """For 20 ms; then each block is of another node, at once."""
    here = Fallback(time := Still())
    blocks = [utc(here) for _ in range(50)]
    assert {ticks for ticks, _ in blocks} == {range(1)}
    assert len({origin.node for _, origin in blocks}) == 50
    assert time.waited == pytest.approx(STILL_SECONDS, abs=0.002)


def test_a_clock_that_goes_on_again_is_waited_for_as_ever() -> None:
    """Another node costs the order of its ids."""
    here = Fallback(time := Still())
    utc(here), utc(here)
    time.utc += 5
    _, before = utc(here)
    waited = time.waited
    utc(here)
    assert time.waited == pytest.approx(waited + STILL_SECONDS, abs=0.002)
    time.utc += 1
    ticks, after = utc(here)
    assert ticks == range(6, 7)
    assert after != before


def test_a_clock_that_moves_on_slowly_needs_no_other_node() -> None:
    """However long its next tick takes."""

    class Slow(Still):
        def pause(self, seconds: float) -> None:
            super().pause(2 * STILL_SECONDS)
            self.utc += 1

    here = Fallback(Slow())
    _, before = utc(here)
    assert utc(here) == (range(1, 2), before)


# --- steady ticks


def test_steady_ticks_go_on_at_half_speed_when_utc_steps_back(here: Fallback, time: Time) -> None:
    """So they neither repeat nor stand still."""
    before = steady(here, 10)
    time.move(1)
    time.utc = START - 3500 * SECOND
    after = steady(here, 10)
    assert after == range(SECOND // 2 - 9, SECOND // 2 + 1)
    assert before[-1] < after[0]


def test_steady_ticks_lie_past_what_the_daemon_gave(here: Fallback) -> None:
    """Also if that was ahead of UTC, by up to an hour."""
    for ahead in (15 * SECOND, MAX_LEAD):
        assert steady(here, 5, ahead)[0] == ahead


def test_steady_ticks_rise_however_the_clock_steps(here: Fallback, time: Time) -> None:
    """Blocks lie after one another."""
    clocks = [(0, 0), (5, 5), (5, 10), (-900, 20), (30, 30), (31, 1000), (600, 1001)]
    blocks = []
    for now, elapsed in clocks:
        time.utc, time.ticks = START + now * SECOND, elapsed * SECOND
        blocks.append(steady(here, 4))
    assert all(one[-1] < other[0] for one, other in pairwise(blocks))


def test_more_than_an_hour_ahead_order_begins_anew(here: Fallback, time: Time) -> None:
    """One id of a clock that a test has set to 2040 does not leave all later ones there."""
    time.utc += 14 * YEAR
    first, _, before = here.steady(10, 0)
    assert first == time.utc - 9
    time.utc = START
    time.ticks += SECOND
    first, count, after = here.steady(10, START + 14 * YEAR)
    assert (first, count) == (START - 9, 10)
    assert after.node != before.node


def test_steady_ticks_of_a_clock_that_stands_still_lead_it_by_an_hour_at_most() -> None:
    """They go on at half speed, and after two hours begin anew."""
    here = Fallback(time := Still())
    ticks = []
    for _ in range(6):
        ticks.append(steady(here, 3)[-1])
        time.ticks += 3600 * SECOND
    assert [tick / SECOND / 3600 for tick in ticks] == [0, 0.5, 1, 0, 0.5, 1]
