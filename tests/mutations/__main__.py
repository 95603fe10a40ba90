"""``python -m tests.mutations``: break the code in each way of the catalogue; print who saw it."""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from tests.mutations.catalogue import MUTATIONS
from tests.mutations.mutation import Mutation, apply, faults
from tests.mutations.table import Row, Table
from tests.mutations.tree import copied, environment, unbroken
from tests.mutations.trial import FAILED, PASSED, Trial, run

JOBS = 2

MAX_SECONDS = 540.0
"""After so many no other mutation is tried, so that it ends within ten minutes anywhere."""

Given = TypeVar("Given")
Found = TypeVar("Found")


def main() -> int:
    """Try the mutations that were asked for; 1 if one survives, or nothing could be told."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutations", description=__doc__)
    parser.add_argument(
        "--only",
        action="append",
        metavar="NAME",
        choices=[mutation.name for mutation in MUTATIONS],
        help="may be repeated",
    )
    parser.add_argument(
        "--jobs", type=int, choices=range(1, JOBS + 1), default=JOBS, help=f"default: {JOBS}"
    )
    given = parser.parse_args()
    # As on Ctrl-C: no other run is begun, and the copies are removed.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    wanted = [m for m in MUTATIONS if not given.only or m.name in given.only]
    ends = time.monotonic() + MAX_SECONDS
    with unbroken() as tree:
        wrong = faults(wanted, tree) or _import_faults(tree) or _baseline(tree, wanted, given.jobs)
        if wrong:
            _say("\n".join(wrong))
            return 1
        table = Table(wanted)
        _say(table.head)
        caught = 0
        for row in _side_by_side(lambda m: _tried(m, tree, ends), wanted, given.jobs):
            caught += row.caught
            _say(table.line(row))
    _say(f"\n{caught} of {len(wanted)} caught")
    return 0 if caught == len(wanted) else 1


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _import_faults(tree: Path) -> list[str]:
    """See to it that a program started from elsewhere, as tests do, imports the copy too."""
    told = subprocess.run(
        [
            sys.executable,
            "-c",
            "import uuidd, uuidd_client as c; print(uuidd.__file__, c.__file__)",
        ],
        cwd="/",
        env=environment(tree),
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stdout.split()
    return [f"{path} is imported, not the copy" for path in told if tree not in Path(path).parents]


def _baseline(tree: Path, mutations: list[Mutation], jobs: int) -> list[str]:
    """Run all tests that are needed on the unbroken copy, each once; give those that fail there."""
    by_file: dict[str, set[str]] = defaultdict(set)
    for mutation in mutations:
        for test in mutation.tests:
            by_file[test.partition("::")[0]].add(test)
    # A file that is needed whole is run once, whatever single tests of it are needed too.
    wanted = [[file] if file in tests else sorted(tests) for file, tests in by_file.items()]
    trials = _side_by_side(lambda tests: run(tree, tests), wanted, jobs)
    return [
        f"the unbroken code fails {trial.failed or ' '.join(tests)}:\n{trial.output}"
        for tests, trial in zip(wanted, trials, strict=True)
        if trial.status != PASSED
    ]


def _tried(mutation: Mutation, tree: Path, ends: float) -> Row:
    if time.monotonic() > ends:
        return Row(mutation, False, "NOT TRIED: it takes too long", 0.0)
    with copied(tree) as broken:
        apply(mutation, broken)
        trial = run(broken, mutation.tests)
    # By a test, not by a warning when all have passed.
    caught = trial.status is None or (trial.status == FAILED and trial.failed != "")
    row = Row(mutation, caught, _verdict(trial), trial.seconds)
    if not row.caught:
        sys.stderr.write(f"{mutation.name}: {row.seen_by}\n{trial.output}\n")
    return row


def _verdict(trial: Trial) -> str:
    if trial.status is None:
        return "(it hung)"
    if trial.status == PASSED:
        return "NOBODY: IT SURVIVES"
    if trial.status == FAILED and trial.failed:
        return trial.failed
    return f"NOT TESTED: pytest exited with {trial.status}"


def _side_by_side(
    work: Callable[[Given], Found], items: Iterable[Given], jobs: int
) -> Iterator[Found]:
    """Give what comes of each item, in order; when it breaks off no other item is begun."""
    pool = ThreadPoolExecutor(jobs)
    try:
        yield from pool.map(work, items)
    finally:
        pool.shutdown(cancel_futures=True)


if __name__ == "__main__":
    sys.exit(main())
