"""The steady clock: it follows UTC up, goes on at half speed after a step back, never goes back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uuidd.core.timeline.slew import Slew

NOW = 1_000_000


def test_it_is_utc_while_utc_goes_on() -> None:
    """Both clocks go on alike, and S is UTC."""
    slew = Slew(0, now=NOW, elapsed=50)
    assert [slew.read(now=NOW + gone, elapsed=50 + gone) for gone in (0, 1, 7, 10_000)] == [
        NOW,
        NOW + 1,
        NOW + 7,
        NOW + 10_000,
    ]


def test_it_follows_utc_ahead() -> None:
    """A step ahead of UTC is taken at once, however little time elapsed."""
    slew = Slew(0, now=NOW, elapsed=0)
    assert slew.read(now=NOW + 5_000, elapsed=0) == NOW + 5_000


def test_it_goes_on_at_half_speed_after_a_step_back() -> None:
    """UTC steps back by 1000: S gains one tick for every two that elapse."""
    slew = Slew(0, now=NOW, elapsed=0)
    back = NOW - 1000
    assert [slew.read(now=back + gone, elapsed=gone) for gone in (0, 1, 2, 3, 500, 1999)] == [
        NOW,
        NOW,
        NOW + 1,
        NOW + 1,
        NOW + 250,
        NOW + 999,
    ]


def test_utc_catches_up_after_twice_the_step() -> None:
    """UTC is 1000 behind and gains on S at half speed: at 2000 they meet, then S is UTC."""
    slew = Slew(0, now=NOW, elapsed=0)
    back = NOW - 1000
    slew.read(now=back, elapsed=0)
    assert slew.read(now=back + 2000, elapsed=2000) == back + 2000
    assert slew.read(now=back + 2001, elapsed=2001) == back + 2001
    assert slew.read(now=back + 3000, elapsed=3000) == back + 3000


def test_a_second_step_back_changes_nothing() -> None:
    """How far UTC is behind does not matter to S, only what elapsed."""
    slew = Slew(0, now=NOW, elapsed=0)
    assert slew.read(now=NOW - 10, elapsed=100) == NOW + 50
    assert slew.read(now=0, elapsed=200) == NOW + 100


def test_halves_that_are_rounded_off_do_not_add_up() -> None:
    """A reading at every tick is as far at the end as a single one."""
    slew = Slew(0, now=NOW, elapsed=0)
    readings = [slew.read(now=NOW - 5000, elapsed=gone) for gone in range(1001)]
    assert readings[-1] == NOW + 500


def test_halves_do_not_add_up_where_utc_stands_still_either() -> None:
    """UTC stands on the tick that S is on, a half below it: that half is not lost."""
    slew = Slew(0, now=NOW, elapsed=0)
    readings = [slew.read(now=NOW, elapsed=gone) for gone in range(1001)]
    assert readings[-1] == NOW + 500


def test_a_begin_past_utc_is_gone_on_from() -> None:
    """A stored mark past UTC is where S begins, at half speed."""
    slew = Slew(NOW + 100, now=NOW, elapsed=7)
    assert slew.read(now=NOW, elapsed=7) == NOW + 100
    assert slew.read(now=NOW + 10, elapsed=17) == NOW + 105


def test_a_begin_before_utc_is_no_matter() -> None:
    """A stored mark that UTC is past does not hold S back."""
    assert Slew(NOW - 100, now=NOW, elapsed=7).read(now=NOW, elapsed=7) == NOW


def test_utc_as_it_was_at_the_begin_counts() -> None:
    """UTC steps back before the first reading: S goes on from UTC as it was at the begin."""
    assert Slew(0, now=NOW, elapsed=0).read(now=NOW - 100, elapsed=20) == NOW + 10


def test_a_lift_past_it_moves_it() -> None:
    """S goes on from the tick lifted to, at half speed from then."""
    slew = Slew(0, now=NOW, elapsed=0)
    slew.lift(NOW + 1000, now=NOW + 10, elapsed=10)
    assert slew.read(now=NOW + 10, elapsed=10) == NOW + 1000
    assert slew.read(now=NOW + 50, elapsed=50) == NOW + 1020


@pytest.mark.parametrize("tick", [0, NOW, NOW + 5])
def test_a_lift_to_where_it_is_or_before_does_nothing(tick: int) -> None:
    """S does not go back, nor does it lose the half tick that it had."""
    slew = Slew(0, now=NOW, elapsed=0)
    slew.lift(tick, now=NOW - 100, elapsed=11)
    assert slew.read(now=NOW - 100, elapsed=12) == NOW + 6


@given(
    st.integers(-50, 50),
    st.lists(
        st.tuples(st.integers(0, 20), st.integers(-30, 30) | st.none()), min_size=1, max_size=30
    ),
)
def test_it_is_the_highest_of_all_that_it_ever_read(
    begin: int, steps: list[tuple[int, int | None]]
) -> None:
    """S is UTC at some reading and half of what elapsed since, whichever gives most, rounded once.

    None stands for a lift by 5 past where S is.
    """
    now, elapsed, last = 0, 0, begin
    slew = Slew(begin, now=now, elapsed=elapsed)
    twice = 2 * max(begin, now)
    for gone, step in steps:
        elapsed += gone
        now += gone + (step or 0)
        twice = max(twice, 2 * now - elapsed)
        steady = (twice + elapsed) // 2
        if step is None:
            slew.lift(steady + 5, now=now, elapsed=elapsed)
            steady += 5
            twice = 2 * steady - elapsed
        assert slew.read(now=now, elapsed=elapsed) == steady
        assert steady >= max(now, last)
        last = steady
