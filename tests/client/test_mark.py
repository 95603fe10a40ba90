"""Marks, which two implementations have."""

from __future__ import annotations

import pytest

from uuidd_client import extension
from uuidd_client.mark import Mark


@pytest.fixture
def mark(implementation: str) -> Mark:
    """Return a new mark."""
    if implementation == "python":
        return Mark()
    assert extension.core is not None
    made: Mark = extension.core.Mark()
    return made


def test_a_mark_is_raised(mark: Mark) -> None:
    """Whoever raises it learns where it was."""
    assert mark.end == 0
    assert mark.raise_to(1 << 60) == 0
    assert mark.raise_to((1 << 60) + 1) == 1 << 60
    assert mark.end == (1 << 60) + 1


def test_a_mark_does_not_fall(mark: Mark) -> None:
    """Another has used the ticks up to there."""
    mark.raise_to(7)
    assert mark.raise_to(6) == 7
    assert mark.end == 7


def test_a_mark_can_be_set(mark: Mark) -> None:
    """As after a clock that was far ahead."""
    mark.raise_to(7)
    mark.end = 3
    assert mark.end == 3
