"""``python -m tests.coverage``: what tests execute of the product, compared with the floors.

It runs the quick tests, and those with processes that execute what no quick test does. Branches
count, and so does what processes execute that tests start. What a process executes that is killed,
or forked by C, is lost.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import coverage

import pytest_uuidd
import uuidd
import uuidd_client
from tests.coverage.floors import complaints, raised, read, written

TOP = Path(__file__).parents[2]
"""Of the checkout."""

TABLE = Path(__file__).with_name("floors.txt")

PACKAGES = {
    "uuidd": uuidd,
    "client/uuidd_client": uuidd_client,
    "client/pytest_uuidd": pytest_uuidd,
}
"""By their folders in the checkout. They may be installed elsewhere."""

WORLDS = [
    "tests/core/test_every_leased_state.py",
    "tests/core/test_every_state.py",
    "tests/workers/test_claims_world.py",
]
"""Quick tests that visit so many states that measuring them takes long, and shows nothing new."""

PROCESSES = [
    "tests/daemon",
    *(
        f"tests/client/test_{name}.py"
        for name in (
            "aio",
            "errors",
            "familiar",
            "inspect",
            "lease",
            "opentelemetry",
            "private_daemon",
            "pytest_plugin",
            "renew",
            "stats",
            "status",
            "testing",
            "times",
            "uuidctl",
        )
    ),
]
"""Where the tests with processes are that execute what no quick test does."""


def main() -> int:
    """Run the tests; 1 if one fails, or if a file is below its floor."""
    parser = argparse.ArgumentParser(prog="python -m tests.coverage", description=__doc__)
    parser.add_argument(
        "--raise", dest="raising", action="store_true", help="raise floors to what is executed now"
    )
    parser.add_argument("--jobs", type=int, default=2, help="side by side; default: %(default)s")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="coverage-") as folder:
        # Processes write there that have become other users.
        Path(folder).chmod(0o1777)
        for tests, measured in (
            (["-m", "quick", *(f"--ignore={path}" for path in WORLDS)], True),
            (["-m", "quick", *WORLDS], False),
            (["-m", "process", *PROCESSES], True),
        ):
            if not _passed([*tests, "-n", str(given.jobs)], folder, measured=measured):
                return 1
        found = _executed(folder)
    if given.raising:
        TABLE.write_text(written(raised(read(TABLE.read_text()), found)))
    told = complaints(read(TABLE.read_text()), found)
    told.append(f"{len(found)} files, {len(told)} of them not as the floors demand")
    sys.stdout.write("\n".join(told) + "\n")
    return 1 if len(told) > 1 else 0


def _passed(arguments: list[str], folder: str, *, measured: bool) -> bool:
    command = [sys.executable, *(["-m", "coverage", "run"] if measured else []), "-m", "pytest"]
    command += ["-q", "--dist", "loadfile", "-p", "no:cacheprovider", *arguments]
    environment = {**os.environ, "COVERAGE_FILE": f"{folder}/data"}
    return subprocess.run(command, cwd=TOP, env=environment, check=False).returncode == 0


def _executed(folder: str) -> dict[str, float]:
    """Return the percentage of each file, by its path in the checkout."""
    measured = coverage.Coverage(
        data_file=f"{folder}/data", config_file=str(TOP / "pyproject.toml")
    )
    measured.combine([folder])
    measured.json_report(outfile=f"{folder}/report.json")
    files = json.loads(Path(folder, "report.json").read_text())["files"]
    found = {}
    for place, package in PACKAGES.items():
        base = Path(package.__file__ or "").parent
        for name, file in files.items():
            path = TOP / name
            if base in path.parents:
                found[f"{place}/{path.relative_to(base)}"] = file["summary"]["percent_covered"]
    return found


if __name__ == "__main__":
    sys.exit(main())
