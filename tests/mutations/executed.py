"""Which quick tests execute which line of the product, as coverage saw it.

The map is kept in the folder `.mutations` of the checkout. After a change, only those files of
tests run again that differ, or that execute a file of the product which differs.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from coverage import CoverageData

from tests.coverage.measuring import TOP, in_checkout, run_tests
from tests.mutations.folders import folder
from tests.mutations.recording import FOLDER

KEPT = TOP / ".mutations"
"""What is made, and no part of the repository."""

FILE = KEPT / "executed.json"

IMPORT = ""
"""Stands for a test, where a line runs while its module, or a module of tests, is imported."""


class Executed(NamedTuple):
    """The tests of each line of each file, the seconds of each, and those that are of no use.

    The seconds are of the processor, and with coverage.
    """

    by_line: dict[str, dict[int, list[str]]]
    seconds: dict[str, float]
    failed: list[str]

    def without_slow(self, most: float) -> Executed:
        """Return the map without tests that take more seconds than *most*."""
        slow = [test for test, took in self.seconds.items() if took > most]
        return self._replace(failed=sorted({*self.failed, *slow}))

    def tests(self, path: str, lines: Sequence[int]) -> list[str]:
        """Return the tests of lines of a file, or without lines of the file, the fastest first.

        What only runs when its module is imported belongs to no test, so all tests that execute
        anything of the file may see a change of it.
        """
        file = self.by_line.get(path, {})
        found = {test for line in lines for test in file.get(line, ())}
        if not lines or found == {IMPORT}:
            found = {test for tests in file.values() for test in tests}
        found.difference_update(self.failed, [IMPORT])
        return sorted(found, key=lambda test: (self.seconds.get(test, 0.0), test))

    def is_imported(self, path: str, lines: Sequence[int]) -> bool:
        """Return whether one of the lines runs outside of tests too."""
        file = self.by_line.get(path, {})
        return any(IMPORT in file.get(line, ()) for line in lines)


class Kept(NamedTuple):
    """A map, and what it was made of: the digest of each file."""

    executed: Executed
    files: dict[str, str]


def executed() -> Executed:
    """Return the map of this checkout; run what differs under coverage if it was kept before."""
    before, now = kept(), digests()
    if before is None:
        found = _recorded(["tests"])
    elif before.files == now:
        return before.executed
    else:
        again = to_run(before, now)
        files = sorted(path for path in again if (TOP / path).exists())
        new = _recorded(files) if files else Executed({}, {}, [])
        found = merged(before.executed, new, without=again)
    KEPT.mkdir(exist_ok=True)
    write(Kept(found, now), FILE)
    return found


def kept() -> Kept | None:
    """Return the map that was made last, if there is one, whatever has changed since then."""
    return loaded(FILE) if FILE.exists() else None


def loaded(file: Path) -> Kept:
    """Return the map that ``write`` has written to a file."""
    found = json.loads(file.read_text())
    names = found["tests"]
    by_line = {
        path: {int(line): [names[number] for number in tests] for line, tests in lines.items()}
        for path, lines in found["by_line"].items()
    }
    return Kept(Executed(by_line, found["seconds"], found["failed"]), found["files"])


def digests() -> dict[str, str]:
    """Return a digest of each file that the tests depend on."""
    paths = [path for part in ("uuidd", "client", "tests") for path in (TOP / part).rglob("*.py")]
    found = {"": sys.version}
    for path in sorted(paths):
        if Path(__file__).parent not in path.parents:
            found[str(path.relative_to(TOP))] = sha256(path.read_bytes()).hexdigest()
    return found


def state() -> str:
    """Return a text that changes with the product, the tests and the Python."""
    return sha256(json.dumps(digests()).encode()).hexdigest()


def write(new: Kept, file: Path) -> None:
    """Write a map to a *file*, which has all of it as soon as it is there."""
    names = sorted(
        {test for lines in new.executed.by_line.values() for t in lines.values() for test in t}
    )
    numbers = {name: number for number, name in enumerate(names)}
    by_line = {
        path: {line: [numbers[test] for test in tests] for line, tests in lines.items()}
        for path, lines in new.executed.by_line.items()
    }
    rest = {"seconds": new.executed.seconds, "failed": new.executed.failed, "files": new.files}
    written = file.with_suffix(".new")
    written.write_text(json.dumps({"tests": names, "by_line": by_line, **rest}))
    written.replace(file)


def to_run(before: Kept, now: Mapping[str, str]) -> set[str]:
    """Return the files of tests that may execute other lines than before."""
    differing = {
        path for path in before.files.keys() | now.keys() if before.files.get(path) != now.get(path)
    }
    tests = {path for path in differing if _is_of_tests(path)}
    if (
        differing
        - tests
        - before.executed.by_line.keys()
        - {path for path in now if _is_product(path)}
    ):
        # A helper, which any test may use.
        return {path for path in before.files.keys() | now.keys() if _is_of_tests(path)}
    for path in differing - tests:
        for found in before.executed.by_line.get(path, {}).values():
            tests.update(test.partition("::")[0] for test in found)
    return tests - {IMPORT}


def _is_of_tests(path: str) -> bool:
    return path.startswith("tests/") and Path(path).name.startswith("test_")


def _is_product(path: str) -> bool:
    return path.startswith(("uuidd/", "client/uuidd_client/"))


def merged(old: Executed, new: Executed, *, without: set[str]) -> Executed:
    """Return the *old* map *without* some files of tests, and what the *new* one says of them."""

    def stays(test: str) -> bool:
        return test.partition("::")[0] not in without

    by_line: dict[str, dict[int, list[str]]] = {}
    for path in old.by_line.keys() | new.by_line.keys():
        lines = by_line.setdefault(path, {})
        before, after = old.by_line.get(path, {}), new.by_line.get(path, {})
        for line in before.keys() | after.keys():
            tests = {*filter(stays, before.get(line, ())), *after.get(line, ())}
            if tests:
                lines[line] = sorted(tests)
    seconds = {test: took for test, took in old.seconds.items() if stays(test)}
    failed = {*filter(stays, old.failed), *new.failed}
    return Executed(by_line, {**seconds, **new.seconds}, sorted(failed))


def _recorded(files: Sequence[str]) -> Executed:
    with folder() as place:
        ended = record(["-m", "quick", "--continue-on-collection-errors", *files], place)
        if ended.returncode not in (0, 1, 5):
            raise RuntimeError(f"pytest cannot run:\n{ended.stdout[-5000:]}{ended.stderr}")
        return read(place)


def record(
    arguments: Sequence[str], place: Path, *, jobs: int = 2, quiet: bool = True
) -> subprocess.CompletedProcess[str]:
    """Run pytest under coverage, which writes to a folder what ``read`` reads."""
    arguments = ["-p", "tests.mutations.recording", *arguments]
    variables = {FOLDER: f"{place}/", "CI": "true"}
    return run_tests(arguments, place, jobs=jobs, variables=variables, quiet=quiet)


def read(place: Path) -> Executed:
    """Return what coverage and the plugin have written in a folder."""
    by_line: dict[str, dict[int, list[str]]] = {}
    for file in place.glob("data*"):
        data = CoverageData(str(file))
        data.read()
        for measured in data.measured_files():
            path = in_checkout(Path(measured))
            lines = by_line.setdefault(path, {}) if path is not None else {}
            for line, tests in data.contexts_by_lineno(measured).items():
                lines[line] = sorted({*lines.get(line, ()), *tests})
    seconds: dict[str, float] = {}
    failed: set[str] = set()
    for file in place.glob("tests-*.json"):
        found = json.loads(file.read_text())
        seconds.update(found["seconds"])
        failed.update(found["failed"])
    return Executed(by_line, seconds, sorted(failed))
