"""The steady clock: it follows UTC up, goes on at half speed after a step back, never goes back."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from uuidd.core.timeline.slew import Slew

NOW = 1_000_000


def test_it_goes_on_at_half_speed_after_a_step_back_until_utc_has_caught_up() -> None:
    slew = Slew(0, now=NOW, elapsed=0)
    steps = {0: 0, 1: 0, 2: 1, 3: 1, 500: 250, 1999: 999, 2000: 1000, 2001: 1001, 3000: 2000}
    for gone, ahead in steps.items():
        assert slew.read(now=NOW - 1000 + gone, elapsed=gone) == NOW + ahead


def test_halves_that_are_rounded_off_do_not_add_up() -> None:
    """A reading at every tick is as far at the end as a single one, also where UTC stands still."""
    for now in (NOW, NOW - 5000):
        slew = Slew(0, now=NOW, elapsed=0)
        readings = [slew.read(now=now, elapsed=gone) for gone in range(1001)]
        assert readings[-1] == NOW + 500


@given(
    st.integers(-50, 50),
    st.lists(
        st.tuples(st.integers(0, 20), st.integers(-30, 30), st.none() | st.integers(-5, 5)),
        min_size=1,
        max_size=30,
    ),
)
def test_it_is_the_highest_of_all_that_it_ever_read(
    begin: int, steps: list[tuple[int, int, int | None]]
) -> None:
    """S is UTC at some reading and half of what elapsed since, whichever gives most, rounded once.

    A step has what elapsed, how far UTC was set, and how far past S a lift asked for goes. A lift
    to S or below does nothing: it loses no half of a tick.
    """
    now, elapsed, last = 0, 7, begin
    slew = Slew(begin, now=now, elapsed=elapsed)
    twice = 2 * max(begin, now) - elapsed
    for gone, step, lift in steps:
        elapsed += gone
        now += gone + step
        twice = max(twice, 2 * now - elapsed)
        steady = (twice + elapsed) // 2
        if lift is not None:
            slew.lift(steady + lift, now=now, elapsed=elapsed)
            if lift > 0:
                steady += lift
                twice = 2 * steady - elapsed
        assert slew.read(now=now, elapsed=elapsed) == steady
        assert steady >= max(now, last)
        last = steady
