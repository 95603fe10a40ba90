"""Which quick tests execute which line of the product, as coverage saw it.

The map is kept in the folder `.mutations` of the checkout. After a change, only those files of
tests run again that differ, or that execute a file of the product which differs.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Collection, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from coverage import CoverageData

from tests.coverage.measuring import TOP, in_checkout, run_tests
from tests.mutations.recording import FOLDER

KEPT = TOP / ".mutations"
"""What is made, and no part of the repository."""

FILE = KEPT / "executed.json"

IMPORT = ""
"""Stands for a test, where a line runs while its module, or a module of tests, is imported."""


class Ran(NamedTuple):
    """What a test took of the processor, with coverage; whether it failed; lines by their file."""

    seconds: float
    failed: bool
    lines: dict[str, list[int]]


class Map(NamedTuple):
    """What the tests execute, and the digest of each file that it was seen with."""

    tests: dict[str, Ran]
    files: dict[str, str]

    def executing(self, path: str, lines: Collection[int]) -> list[str]:
        """Return the tests of lines of a file, or without lines of the file, the fastest first.

        Those that failed are left out. What only runs when its module is imported belongs to no
        test, so all tests that execute anything of the file may see a change of it.
        """
        of_file = {test: ran for test, ran in self.tests.items() if path in ran.lines}
        found = {t: ran for t, ran in of_file.items() if not {*lines}.isdisjoint(ran.lines[path])}
        if not lines or found.keys() == {IMPORT}:
            found = of_file
        usable = [
            (ran.seconds, test) for test, ran in found.items() if test != IMPORT and not ran.failed
        ]
        return [test for _, test in sorted(usable)]


def executed() -> Map:
    """Return the map of this checkout; run what differs under coverage if it was kept before."""
    before, now = loaded(FILE), digests()
    if before.files == now:
        return before
    again = to_run(before, now)
    wanted = sorted(path for path in again if (TOP / path).exists()) if before.files else ["tests"]
    found = Map({}, now)
    if wanted:
        # In memory, if possible: what is forked and killed writes too.
        with tempfile.TemporaryDirectory(prefix="executed-") as name:
            ended = record(["-m", "quick", "--continue-on-collection-errors", *wanted], Path(name))
            if ended.returncode not in (0, 1, 5):
                raise RuntimeError(f"pytest cannot run:\n{ended.stdout[-5000:]}{ended.stderr}")
            found = read(Path(name))
    found = merged(before, found, without=again)
    write(found, FILE)
    return found


def loaded(file: Path) -> Map:
    """Return the map in a file, whatever has changed since then; an empty one without the file."""
    if not file.exists():
        return Map({}, {})
    tests, files = json.loads(file.read_text())
    return Map({test: Ran(*ran) for test, ran in tests.items()}, files)


def write(new: Map, file: Path) -> None:
    """Write a map to a *file*, which has all of it as soon as it is there."""
    file.parent.mkdir(exist_ok=True)
    written = file.with_suffix(".new")
    written.write_text(json.dumps(new))
    written.replace(file)


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


def to_run(before: Map, now: Mapping[str, str]) -> set[str]:
    """Return the files of tests that may execute other lines than before."""
    both = before.files.keys() | now.keys()
    differing = {path for path in both if before.files.get(path) != now.get(path)}
    every = {path for path in both if Path(path).name.startswith("test_")}
    if any(not path.startswith(("uuidd/", "client/")) for path in differing - every):
        # A helper, which any test may use.
        return every
    found = {
        test.partition("::")[0]
        for test, ran in before.tests.items()
        if not differing.isdisjoint(ran.lines)
    }
    return (found | differing & every) - {IMPORT}


def merged(old: Map, new: Map, *, without: set[str]) -> Map:
    """Return the *old* map *without* some files of tests, and what the *new* one has."""
    tests = {t: ran for t, ran in old.tests.items() if t.partition("::")[0] not in without}
    for test, ran in new.tests.items():
        before = tests.get(test, ran).lines
        both = {
            path: sorted({*before.get(path, ()), *ran.lines.get(path, ())})
            for path in before.keys() | ran.lines.keys()
        }
        tests[test] = ran._replace(lines=both)
    return Map(tests, new.files)


def record(
    arguments: Sequence[str], place: Path, *, jobs: int = 2, quiet: bool = True
) -> subprocess.CompletedProcess[str]:
    """Run pytest under coverage, which writes to a folder what ``read`` reads."""
    arguments = ["-p", "tests.mutations.recording", *arguments]
    variables = {FOLDER: f"{place}/", "CI": "true"}
    return run_tests(arguments, place, jobs=jobs, variables=variables, quiet=quiet)


def read(place: Path) -> Map:
    """Return what coverage and the plugin have written in a folder, with today's digests."""
    found = Map({IMPORT: Ran(0.0, False, {})}, digests())
    for file in place.glob("tests-*.json"):
        for test, (seconds, failed) in json.loads(file.read_text()).items():
            # Of a failure, two processes tell.
            before = found.tests.get(test, Ran(0.0, False, {}))
            both = max(seconds, before.seconds), failed or before.failed
            found.tests[test] = Ran(*both, {})
    for file in place.glob("data*"):
        data = CoverageData(str(file))
        data.read()
        for measured in data.measured_files():
            path = in_checkout(Path(measured))
            if path is None:
                continue
            for line, tests in data.contexts_by_lineno(measured).items():
                for test in tests:
                    if test in found.tests:
                        found.tests[test].lines.setdefault(path, []).append(line)
    return found
