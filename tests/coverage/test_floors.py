"""What the table of floors demands."""

from __future__ import annotations

import pytest

from tests.coverage.floors import Floor, complaints, raised, read, written


def test_a_table_is_read_as_it_was_written() -> None:
    """With reasons, which have any words."""
    floors = {"a.py": Floor(100), "long/b.py": Floor(80, "only root, on 2 CPUs, can")}
    assert read(written(floors)) == floors


@pytest.mark.parametrize("percent", [94.0, 95.0, 100.0])
def test_a_file_at_its_floor_is_well(percent: float) -> None:
    """Also one that is a point below it, because runs differ."""
    assert complaints({"a.py": Floor(95)}, {"a.py": percent}) == []


@pytest.mark.parametrize(
    ("floors", "found", "told"),
    [
        ({"a.py": Floor(95)}, {"a.py": 93.9}, "tests execute 93.9 %, but its floor is 95 %"),
        ({}, {"a.py": 100.0}, "has no floor"),
        ({"a.py": Floor(95)}, {}, "no such file"),
        ({"a.py": Floor(89)}, {"a.py": 100.0}, "say why"),
    ],
)
def test_what_is_not_well_has_a_line(
    floors: dict[str, Floor], found: dict[str, float], told: str
) -> None:
    """It names the file and the rule."""
    (line,) = complaints(floors, found)
    assert line.startswith("a.py")
    assert told in line


@pytest.mark.parametrize(("percent", "floor"), [(80.9, 85), (86.9, 86), (100.0, 100)])
def test_a_floor_is_raised_and_never_lowered(percent: float, floor: int) -> None:
    """It is a whole number."""
    assert raised({"a.py": Floor(85)}, {"a.py": percent})["a.py"].percent == floor


def test_a_reason_stays_while_the_floor_needs_one() -> None:
    """Above that it goes, and so does the floor of a file that is gone."""
    floors = {"a.py": Floor(80, "no"), "b.py": Floor(80, "no"), "gone.py": Floor(80, "no")}
    new = raised(floors, {"a.py": 89.9, "b.py": 90.0})
    assert new == {"a.py": Floor(89, "no"), "b.py": Floor(90)}
