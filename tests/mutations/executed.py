"""Which quick tests execute which line of the product, as coverage saw it.

The map is kept in the folder `.mutations` of the checkout, and made anew when the product or the
tests have changed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from coverage import CoverageData

from tests.mutations.recording import FOLDER
from tests.mutations.trial import TOP

KEPT = TOP / ".mutations"
"""What is made, and no part of the repository."""

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
    """The tests of each line of each file, what each took, and those that fail in any case."""

    by_line: dict[str, dict[int, list[str]]]
    seconds: dict[str, float]
    failed: list[str]

    def tests(self, path: str, lines: Sequence[int]) -> list[str]:
        """Return the tests of lines of a file, the fastest first; of the file, if they have none.

        A line that runs when its module is imported belongs to no test, so all tests that execute
        anything of the file may see a change of it.
        """
        file = self.by_line.get(path, {})
        found = {test for line in lines for test in file.get(line, ())}
        if not found:
            found = {test for tests in file.values() for test in tests}
        found.difference_update(self.failed)
        return sorted(found, key=lambda test: (self.seconds.get(test, 0.0), test))


def executed() -> Executed:
    """Return the map of this checkout; run the quick tests under coverage if there is none yet."""
    kept = KEPT / "executed.json"
    now = state()
    if kept.exists():
        found = json.loads(kept.read_text())
        if found["state"] == now:
            by_line = {
                path: {int(line): tests for line, tests in lines.items()}
                for path, lines in found["by_line"].items()
            }
            return Executed(by_line, found["seconds"], found["failed"])
    recorded = _recorded()
    KEPT.mkdir(exist_ok=True)
    kept.write_text(json.dumps({"state": now, **recorded._asdict()}))
    return recorded


def state() -> str:
    """Return a text that changes with the product, the tests and the Python."""
    digest = sha256(sys.version.encode())
    paths = [path for part in ("uuidd", "client", "tests") for path in (TOP / part).rglob("*.py")]
    for path in sorted(paths):
        if Path(__file__).parent not in path.parents:
            digest.update(f"{path.relative_to(TOP)}\0".encode() + path.read_bytes())
    return digest.hexdigest()


def _recorded() -> Executed:
    with tempfile.TemporaryDirectory(prefix="executed-") as folder:
        settings = Path(folder, "coveragerc")
        settings.write_text(_SETTINGS.format(folder=folder))
        command = [sys.executable, "-m", "coverage", "run", f"--rcfile={settings}"]
        command += ["-m", "pytest", "-q", "-m", "quick", "-n", "2", "--dist", "loadfile"]
        command += ["--continue-on-collection-errors", "-p", "no:cacheprovider"]
        command += ["-p", "tests.mutations.recording"]
        environment = {**os.environ, FOLDER: folder, "CI": "true"}
        ended = subprocess.run(
            command, cwd=TOP, env=environment, capture_output=True, text=True, check=False
        )
        if ended.returncode not in (0, 1):
            raise RuntimeError(f"pytest cannot run:\n{ended.stdout[-5000:]}{ended.stderr}")
        by_line: dict[str, dict[int, list[str]]] = {}
        for file in Path(folder).glob("data*"):
            _add(file, by_line)
        seconds: dict[str, float] = {}
        failed: set[str] = set()
        for file in Path(folder).glob("tests-*.json"):
            found = json.loads(file.read_text())
            seconds.update(found["seconds"])
            failed.update(found["failed"])
        return Executed(by_line, seconds, sorted(failed))


def _add(file: Path, by_line: dict[str, dict[int, list[str]]]) -> None:
    data = CoverageData(str(file))
    data.read()
    for path in data.measured_files():
        lines = by_line.setdefault(str(Path(path).relative_to(TOP)), {})
        for line, tests in data.contexts_by_lineno(path).items():
            lines[line] = sorted({*lines.get(line, ()), *filter(None, tests)})
