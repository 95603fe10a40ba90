from __future__ import annotations

from pathlib import Path

from tests.mutations.results import Results


def test_results_stay_until_the_code_differs(tmp_path: Path) -> None:
    """A row of a state before can be read until there is another of its name."""
    file = tmp_path / "made" / "rows"
    first = Results(file, "state 1")
    first.add("a", ["killed"])
    Results(file, "state 1").add("b", ["survived"])
    assert Results(file, "state 1").rows == {"a": ["killed"], "b": ["survived"]}
    later = Results(file, "state 2")
    assert (later.rows, later.former) == ({}, {"a": ["killed"], "b": ["survived"]})
    later.add("a", ["survived"])
    again = Results(file, "state 2")
    assert (again.rows, again.former) == ({"a": ["survived"]}, {"b": ["survived"]})


def test_a_row_that_was_broken_off_is_left_out(tmp_path: Path) -> None:
    """The run that wrote it was killed."""
    file = tmp_path / "rows"
    Results(file, "state").add("a", ["killed"])
    with file.open("a") as lines:
        lines.write('\n["state", "b", ["kil')
    again = Results(file, "state")
    assert again.rows == {"a": ["killed"]}
    again.add("c", ["killed"])
    assert Results(file, "state").rows == {"a": ["killed"], "c": ["killed"]}
