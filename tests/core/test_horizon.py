from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from uuidd.core.timeline.state import Horizon


def test_without_a_save_nothing_may_be_given_out() -> None:
    """A supply with no mark on the disk may give out no tick."""
    assert Horizon().limit == 0


def test_a_stored_mark_is_the_first_limit() -> None:
    """Everything below the mark that a start found may be given out."""
    assert Horizon(5).limit == 5


def test_only_a_completed_save_raises_the_limit() -> None:
    """A save in flight may never reach the disk."""
    horizon = Horizon(5)
    horizon.begin_save(9)
    assert horizon.limit == 5
    horizon.end_save(9, completed=True)
    assert horizon.limit == 9


def test_a_lower_mark_counts_as_soon_as_its_save_begins() -> None:
    """The save may reach the disk at any moment."""
    horizon = Horizon(5)
    horizon.begin_save(3)
    assert horizon.limit == 3


def test_a_failed_save_counts_until_a_later_one_completes() -> None:
    """Its rename may have been done, whatever the next save has begun to write."""
    horizon = Horizon(5)
    horizon.begin_save(3)
    horizon.end_save(3, completed=False)
    horizon.begin_save(9)
    assert horizon.limit == 3
    horizon.end_save(9, completed=True)
    assert horizon.limit == 9


def test_after_void_saves_only_a_completed_one_counts() -> None:
    """A start would not find what was saved in a folder that was moved away."""
    horizon = Horizon(5)
    horizon.void()
    assert horizon.limit == 0
    horizon.begin_save(9)
    horizon.end_save(9, completed=False)
    assert horizon.limit == 0
    horizon.begin_save(10)
    horizon.end_save(10, completed=True)
    assert horizon.limit == 10


@given(st.integers(0, 9), st.lists(st.tuples(st.integers(0, 9), st.booleans()), max_size=8))
def test_the_limit_never_passes_a_mark_that_the_disk_may_hold(
    stored: int, saves: list[tuple[int, bool]]
) -> None:
    """The limit is the lowest of all marks that a crash at this moment may leave behind."""
    horizon, disk = Horizon(stored), {stored}
    for mark, completed in saves:
        horizon.begin_save(mark)
        disk.add(mark)
        assert horizon.limit == min(disk)
        horizon.end_save(mark, completed=completed)
        disk = {mark} if completed else disk
        assert horizon.limit == min(disk)
