"""What a state allows: the horizon of a supply of ticks."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from uuidd.core.timeline.state import Horizon


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
