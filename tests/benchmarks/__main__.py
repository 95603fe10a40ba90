"""``python -m tests.benchmarks``: measure uuidd beside others, or beside another checkout of it."""

from __future__ import annotations

import argparse
import os
import platform
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import metadata
from pathlib import Path

from tests.benchmarks import footprint, makers, making, quote, record, serving, together, waiting
from tests.benchmarks.record import Record
from tests.benchmarks.rows import Missing, Result, Row, joined
from tests.benchmarks.workspace import (
    Checkout,
    Workspace,
    checkout,
    run_in_private_mounts,
    workspace,
)
from uuidd_client import implementation

CORES = 2
"""Daemon, load and client share these, however many the machine has."""

RUNS, ROUNDS = 2, 13

NO_SLOWER = 0.97
"""The goal for each row beside another checkout: not more than 3 % slower."""

BENCHMARKS: dict[str, Callable[[Workspace, int], Iterator[Result]]] = {
    "alone": making.without_daemon,
    "util-linux": making.beside_util_linux,
    "one": partial(making.rows, makers.ONE),
    "bulk": partial(making.rows, makers.BULK),
    "kinds": partial(making.rows, makers.KINDS),
    "few": making.now_and_then,
    "import": footprint.imports,
    "rpc": serving.rpc,
    "libuuid": serving.libuuid,
    "latency": waiting.rows,
    "greed": waiting.greed,
    "processes": together.processes,
    "stdlib": together.stdlib,
    "idle": footprint.idle,
}

DEPENDS = {"few", "rpc", "libuuid", "latency", "greed", "processes", "stdlib"}
"""In these, processes wait for each other: cores, kernel and virtualisation decide who wins."""

BROKEN = (RuntimeError, OSError, subprocess.SubprocessError)
"""What a benchmark raises when it could not be measured, or what it measured was wrong."""


@dataclass(slots=True)
class Run:
    """What one run of the benchmarks brought."""

    rows: list[Row] = field(default_factory=list)
    trouble: dict[str, None] = field(default_factory=dict)
    failed: bool = False


def main() -> int:
    """Run the benchmarks that are named; 0 even when a goal is not met, 1 if one broke."""
    run_in_private_mounts("tests.benchmarks")
    parser = _parser()
    given = parser.parse_args()
    if min(given.rounds, given.runs) < 1:
        parser.error("--rounds and --runs take 1 or more")
    try:
        other = checkout(given.against) if given.against else None
    except Missing as missing:
        parser.error(f"--against {given.against}: {missing}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])
    load_before, begun = os.getloadavg()[0], time.monotonic()
    runs = []
    for number in range(1, given.runs + 1):
        names = given.only or list(BENCHMARKS)
        runs.append(_run(names, given.rounds, other, f"run {number} of {given.runs}"))
    rows = joined(run.rows for run in runs)
    if other:
        rows = [replace(row, at_least=NO_SLOWER, at_most=None) for row in rows if row.ratios]
    trouble = dict.fromkeys(line for run in runs for line in run.trouble)
    seconds = round(time.monotonic() - begun, 1)
    measured = _record(given, rows, load_before, seconds)
    if given.only or other:
        written = "nothing was written"
    elif trouble:
        written = f"{record.FILE} stays as it was, because not everything was measured"
    else:
        for path, text in {**quote.pages(measured), record.FILE: record.dump(measured)}.items():
            path.write_text(text)
        written = f"{record.FILE} has the same, and both READMEs quote it"
    lines = [
        quote.whole(measured),
        *(f"NOT MET: {row.name} / {row.beside}: {row.goal}" for row in rows if row.met is False),
        *trouble,
        f"uuidd_client made ids in {implementation}, except in the rows that say otherwise",
        _quietness(load_before),
        f"{seconds:g} s; {written}",
    ]
    sys.stdout.write("\n".join(lines) + "\n")
    return int(any(run.failed for run in runs))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("--only", action="append", choices=BENCHMARKS, help="may be repeated")
    parser.add_argument("--runs", type=int, default=RUNS, help="default: %(default)s")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="of a run; default: %(default)s")
    parser.add_argument(
        "--against",
        type=Path,
        metavar="CHECKOUT",
        help="compare with another checkout of uuidd, which has its own .venv",
    )
    return parser


def _record(
    given: argparse.Namespace, rows: list[Row], load_before: float, seconds: float
) -> Record:
    run = {
        "implementation": platform.python_implementation(),
        "python": platform.python_version(),
        "uuidd": metadata.version("uuidd"),
        "client": implementation,
        "peers": making.versions(),
        "runs": given.runs,
        "rounds": given.rounds,
        "cores": len(os.sched_getaffinity(0)),
        "load_before": round(load_before, 2),
        "seconds": seconds,
    }
    return Record(record.hardware(), record.kernel(), run, rows)


def _run(names: list[str], rounds: int, other: Checkout | None, title: str) -> Run:
    """Run the benchmarks once, each with daemons and other processes of its own."""
    run = Run()
    with workspace(other) as space:
        for name in names:
            begun = time.monotonic()
            try:
                for result in BENCHMARKS[name](space, rounds):
                    if isinstance(result, Missing):
                        run.trouble[f"left out: {name}: {result}"] = None
                    else:
                        depends = other is None and name in DEPENDS
                        run.rows.append(replace(result, depends=depends))
            except Missing as missing:
                run.trouble[f"left out: {name}: {missing}"] = None
            except BROKEN as error:
                run.trouble[f"FAILED: {name}: {error}"] = None
                run.failed = True
            _tell(f"{title}, {name}: {time.monotonic() - begun:.1f} s")
    return run


def _quietness(load: float) -> str:
    """Say how busy others kept the machine: with all cores in use, ratios mean little."""
    cores = len(os.sched_getaffinity(0))
    verdict = "quiet" if load < cores / 4 else "NOT QUIET: measure again"
    return f"load average before: {load:.1f} for {cores} cores, {verdict}"


def _tell(line: str) -> None:
    """Show progress to a person who waits."""
    if sys.stderr.isatty():
        sys.stderr.write(line + "\n")


if __name__ == "__main__":
    sys.exit(main())
