from __future__ import annotations

from pathlib import Path

import pytest

import uuidd
from tests.coverage.measuring import in_checkout
from tests.mutations.executed import IMPORT, Map, Ran, loaded, merged, to_run, write

FILES = {"uuidd/a.py": "1", "uuidd/b.py": "1", "tests/test_a.py": "1", "tests/test_b.py": "1"}

F, G, SLOW = "tests/test_a.py::f", "tests/test_b.py::g", "tests/test_b.py::slow"

MAP = Map(
    {
        IMPORT: Ran(0.0, False, {"uuidd/a.py": [1]}),
        F: Ran(1.0, False, {"uuidd/a.py": [2], "uuidd/b.py": [2]}),
        G: Ran(1.0, True, {"uuidd/b.py": [2]}),
        SLOW: Ran(9.0, False, {"uuidd/b.py": [2]}),
    },
    FILES,
)


@pytest.mark.parametrize(
    ("changed", "again"),
    [
        ("uuidd/a.py", {"tests/test_a.py"}),
        ("uuidd/b.py", {"tests/test_a.py", "tests/test_b.py"}),
        ("uuidd/new.py", set()),
        ("tests/test_b.py", {"tests/test_b.py"}),
        ("tests/test_new.py", {"tests/test_new.py"}),
        ("tests/fakes.py", {"tests/test_a.py", "tests/test_b.py"}),
    ],
)
def test_only_tests_that_may_execute_other_lines_run_again(changed: str, again: set[str]) -> None:
    """Those that differ, those of a product's file that differs, and all for a helper."""
    assert to_run(MAP, {**FILES, changed: "2"}) == again


def test_the_map_forgets_what_ran_again() -> None:
    """And has what coverage saw this time."""
    lines = {"uuidd/b.py": [3]}
    new = Map({IMPORT: Ran(0.0, False, {"uuidd/b.py": [1]}), G: Ran(2.0, False, lines)}, {"x": "2"})
    found = merged(MAP, new, without={"tests/test_b.py"})
    both = Ran(0.0, False, {"uuidd/a.py": [1], "uuidd/b.py": [1]})
    assert found == Map({IMPORT: both, F: MAP.tests[F], G: Ran(2.0, False, lines)}, {"x": "2"})


def test_a_map_is_read_as_it_was_written(tmp_path: Path) -> None:
    write(MAP, tmp_path / "made" / "map")
    assert loaded(tmp_path / "made" / "map") == MAP


def test_a_measured_file_has_its_path_in_the_checkout() -> None:
    """Wherever its package is installed; a file of another package has none."""
    package = Path(uuidd.__file__ or "").parent
    assert in_checkout(package / "core" / "wire" / "rpc.py") == "uuidd/core/wire/rpc.py"
    assert in_checkout(Path(pytest.__file__)) is None


@pytest.mark.parametrize(
    ("path", "lines", "tests"),
    [
        ("uuidd/a.py", [2], [F]),
        ("uuidd/a.py", [1], [F]),
        ("uuidd/a.py", [3], []),
        ("uuidd/b.py", [2], [F, SLOW]),
        ("uuidd/b.py", [], [F, SLOW]),
    ],
)
def test_a_line_has_the_tests_that_execute_it(
    path: str, lines: list[int], tests: list[str]
) -> None:
    """That of an import has those of its file. Those that always fail are left out."""
    assert MAP.executing(path, lines) == tests
