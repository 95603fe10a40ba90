from __future__ import annotations

from pathlib import Path

import pytest

import uuidd
from tests.coverage.measuring import in_checkout
from tests.mutations.executed import IMPORT, Executed, Kept, loaded, merged, to_run, write

FILES = {"uuidd/a.py": "1", "uuidd/b.py": "1", "tests/test_a.py": "1", "tests/test_b.py": "1"}

MAP = Executed(
    {
        "uuidd/a.py": {1: [IMPORT], 2: ["tests/test_a.py::f"]},
        "uuidd/b.py": {2: ["tests/test_a.py::f", "tests/test_b.py::g"]},
    },
    {"tests/test_a.py::f": 1.0, "tests/test_b.py::g": 1.0},
    ["tests/test_b.py::g"],
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
    assert to_run(Kept(MAP, FILES), {**FILES, changed: "2"}) == again


def test_the_map_forgets_what_ran_again() -> None:
    """And has what coverage saw this time."""
    new = Executed({"uuidd/b.py": {3: ["tests/test_b.py::h"]}}, {"tests/test_b.py::h": 2.0}, [])
    found = merged(MAP, new, without={"tests/test_b.py"})
    assert found.by_line["uuidd/b.py"] == {2: ["tests/test_a.py::f"], 3: ["tests/test_b.py::h"]}
    assert found.seconds == {"tests/test_a.py::f": 1.0, "tests/test_b.py::h": 2.0}
    assert found.failed == []


def test_a_map_is_read_as_it_was_written(tmp_path: Path) -> None:
    """With the digests of the files that it was made of."""
    write(Kept(MAP, FILES), tmp_path / "map")
    assert loaded(tmp_path / "map") == Kept(MAP, FILES)


def test_a_measured_file_has_its_path_in_the_checkout() -> None:
    """Wherever its package is installed; a file of another package has none."""
    package = Path(uuidd.__file__ or "").parent
    assert in_checkout(package / "core" / "wire" / "rpc.py") == "uuidd/core/wire/rpc.py"
    assert in_checkout(Path(pytest.__file__)) is None


def test_a_line_of_an_import_has_the_tests_of_its_file() -> None:
    """A line that nothing executes has none. Tests that always fail are of no use."""
    assert MAP.tests("uuidd/a.py", [1]) == ["tests/test_a.py::f"]
    assert MAP.tests("uuidd/a.py", [3]) == []
    assert MAP.tests("uuidd/b.py", [2]) == ["tests/test_a.py::f"]
