"""``python -m tests.coverage``: what tests execute of the product, compared with the floors.

It runs the quick tests, and those with processes that execute what no quick test does. Branches
count, and so does what processes execute that tests start. What a process executes that is killed,
or forked by C, is lost.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

import coverage

from tests.coverage.floors import complaints, raised, read, written
from tests.coverage.measuring import SETTINGS, TOP, in_checkout, run_tests
from tests.mutations import executed

TABLE = Path(__file__).with_name("floors.txt")

PROCESSES = [
    "tests/daemon",
    *(
        f"tests/client/test_{name}.py"
        for name in (
            "aio",
            "connection",
            "inspect",
            "opentelemetry",
            "pytest_plugin",
            "scrape",
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
    parser.add_argument(
        "--map", metavar="FILE", help="write which quick test executes which line, for mutants"
    )
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="coverage-") as name:
        folder = Path(name)
        # Processes write there that have become other users.
        folder.chmod(0o1777)
        # To measure the visits of all states, or what is as in Python, shows nothing new.
        quick = ["-m", "quick and not worlds and not extension"]
        if executed.record(quick, folder, jobs=given.jobs, quiet=False).returncode:
            return 1
        if given.map:
            executed.write(executed.read(folder), Path(given.map))
        for tests, measured in (
            (["-m", "quick and extension", "tests/client"], False),
            (["-m", "process", *PROCESSES], True),
        ):
            if run_tests(tests, folder, jobs=given.jobs, measured=measured).returncode:
                return 1
        found = _percentages(folder)
    if given.raising:
        TABLE.write_text(written(raised(read(TABLE.read_text()), found)))
    told = complaints(read(TABLE.read_text()), found)
    told.append(f"{len(found)} files, {len(told)} of them not as the floors demand")
    sys.stdout.write("\n".join(told) + "\n")
    return 1 if len(told) > 1 else 0


def _percentages(folder: Path) -> dict[str, float]:
    """Return the percentage of each file that is executed, by its path in the checkout."""
    measured = coverage.Coverage(data_file=str(folder / "data"), config_file=str(SETTINGS))
    measured.combine([str(folder)])
    report = folder / "report.json"
    measured.json_report(outfile=str(report))
    files = json.loads(report.read_text())["files"]
    found = {}
    for name, file in files.items():
        path = in_checkout(TOP / name)
        if path is not None:
            found[path] = file["summary"]["percent_covered"]
    return found


if __name__ == "__main__":
    sys.exit(main())
