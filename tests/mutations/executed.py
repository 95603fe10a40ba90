"""Which quick tests execute which line of the product, as coverage saw it.

The map is kept in the folder `.mutations` of the checkout. After a change, only those files of
tests run again that differ, or that execute a file of the product which differs.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from coverage import CoverageData

from tests.mutations.recording import FOLDER
from tests.mutations.trial import TOP, folder

KEPT = TOP / ".mutations"
"""What is made, and no part of the repository."""

FILE = KEPT / "executed.json"

IMPORT = ""
"""Stands for a test, where a line runs while its module, or a module of tests, is imported."""

_SETTINGS = """
[run]
branch = false
source = uuidd, uuidd_client
patch = subprocess
parallel = true
data_file = {folder}/data
disable_warnings = no-data-collected
"""


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
    _keep(Kept(found, now))
    return found


def kept() -> Kept | None:
    """Return the map that was made last, if there is one, whatever has changed since then."""
    if not FILE.exists():
        return None
    found = json.loads(FILE.read_text())
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


def _keep(new: Kept) -> None:
    names = sorted(
        {test for lines in new.executed.by_line.values() for t in lines.values() for test in t}
    )
    numbers = {name: number for number, name in enumerate(names)}
    by_line = {
        path: {line: [numbers[test] for test in tests] for line, tests in lines.items()}
        for path, lines in new.executed.by_line.items()
    }
    KEPT.mkdir(exist_ok=True)
    rest = {"seconds": new.executed.seconds, "failed": new.executed.failed, "files": new.files}
    written = FILE.with_suffix(".new")
    written.write_text(json.dumps({"tests": names, "by_line": by_line, **rest}))
    written.replace(FILE)


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
        settings = place / "coveragerc"
        settings.write_text(_SETTINGS.format(folder=place))
        command = [sys.executable, "-m", "coverage", "run", f"--rcfile={settings}"]
        command += ["-m", "pytest", "-q", "-m", "quick", "-n", "2", "--dist", "loadfile"]
        command += ["--continue-on-collection-errors", "-p", "no:cacheprovider"]
        command += ["-p", "tests.mutations.recording", *files]
        environment = {**os.environ, FOLDER: f"{place}/", "CI": "true"}
        ended = subprocess.run(
            command, cwd=TOP, env=environment, capture_output=True, text=True, check=False
        )
        if ended.returncode not in (0, 1, 5):
            raise RuntimeError(f"pytest cannot run:\n{ended.stdout[-5000:]}{ended.stderr}")
        return read(place)


def read(place: Path) -> Executed:
    """Return what coverage and the plugin have written in a folder."""
    by_line: dict[str, dict[int, list[str]]] = {}
    for file in place.glob("data*"):
        data = CoverageData(str(file))
        data.read()
        for path in data.measured_files():
            lines = by_line.setdefault(str(Path(path).relative_to(TOP)), {})
            for line, tests in data.contexts_by_lineno(path).items():
                lines[line] = sorted({*lines.get(line, ()), *tests})
    seconds: dict[str, float] = {}
    failed: set[str] = set()
    for file in place.glob("tests-*.json"):
        found = json.loads(file.read_text())
        seconds.update(found["seconds"])
        failed.update(found["failed"])
    return Executed(by_line, seconds, sorted(failed))
