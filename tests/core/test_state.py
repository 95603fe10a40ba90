"""What a state allows: horizons, and the epochs of Snowflakes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uuidd.core.ids.snowflake import of_place, places
from uuidd.core.ids.ticks import TICKS_PER_MS, UNIX_EPOCH
from uuidd.core.timeline.state import NO_EPOCHS, Horizon, LaterEpoch, with_epoch

NOW = UNIX_EPOCH + 1_000_000 * TICKS_PER_MS


@given(
    st.integers(0, 9),
    st.lists(st.tuples(st.integers(0, 9), st.sampled_from(["completed", "failed", "void"]))),
)
def test_the_limit_is_the_lowest_mark_that_the_disk_may_hold(
    stored: int, saves: list[tuple[int, str]]
) -> None:
    """A crash at this moment may leave any of them. Void saves were in a folder that is gone."""
    horizon, disk = Horizon(stored), {stored}
    for mark, fate in saves:
        if fate == "void":
            horizon.void()
            disk.add(0)
        horizon.begin_save(mark)
        disk.add(mark)
        assert horizon.limit == min(disk)
        horizon.end_save(mark, completed=fate == "completed")
        disk = {mark} if fate == "completed" else disk
        assert horizon.limit == min(disk)


@pytest.mark.parametrize(
    ("before", "number", "epoch", "after"),
    [
        pytest.param({}, 5, 1000, {5: 1000}, id="the first"),
        pytest.param({5: 1000}, 6, 2000, {5: 1000, 6: 2000}, id="that of another number"),
        pytest.param({5: 1000}, 5, 1000, {5: 1000}, id="the same"),
        # Its Snowflakes are higher than all those so far.
        pytest.param({5: 1000}, 5, 999, {5: 999}, id="an earlier one"),
    ],
)
def test_an_epoch_is_kept(
    before: dict[int, int], number: int, epoch: int, after: dict[int, int]
) -> None:
    assert with_epoch(before, number, epoch) == after


def test_a_later_epoch_is_refused_and_changes_nothing() -> None:
    epochs = {5: 1000}
    with pytest.raises(LaterEpoch) as refused:
        with_epoch(epochs, 5, 1001)
    assert refused.value.earliest == 1000
    assert epochs == {5: 1000}


@given(
    st.lists(
        st.tuples(st.integers(0, 1), st.integers(0, 8), st.integers(0, 3), st.integers(1, 20_000)),
        max_size=30,
    )
)
def test_no_snowflake_comes_twice_whatever_epochs_are_asked_for(
    starts: list[tuple[int, int, int, int]],
) -> None:
    """Each start has a number, an epoch, time that passed, and ticks that it gives out."""
    epochs, tick = NO_EPOCHS, NOW
    made: set[int] = set()
    for machine, epoch, gone, count in starts:
        try:
            epochs = with_epoch(epochs, machine, epoch)
        except LaterEpoch:
            continue
        tick += gone * TICKS_PER_MS
        first, end = places(tick, count)
        tick += count
        # The ends tell of all between, and every thousandth is looked at besides.
        for place in {*range(first, end, 1000), end - 1} if end > first else ():
            value = of_place(place, machine, epoch=epoch)
            assert value not in made
            made.add(value)
