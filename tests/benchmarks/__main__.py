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
from tests.benchmarks.record import Machine
from tests.benchmarks.rows import Missing, Result, Row, joined, table
from tests.benchmarks.workspace import Checkout, Workspace, checkout, workspace
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
    "inspect": partial(making.rows, makers.INSPECT),
    "few": making.now_and_then,
    "import": footprint.imports,
    "rpc": serving.rpc,
    "many": serving.many,
    "libuuid": serving.libuuid,
    "latency": waiting.rows,
    "engine": waiting.silent_engine,
    "greed": waiting.greed,
    "processes": together.processes,
    "stdlib": together.stdlib,
    "loops": together.loops,
    "idle": footprint.idle,
}

DEPENDS = {"few", "rpc", "many", "libuuid", "latency", "engine", "greed", "processes", "stdlib"}
DEPENDS |= {"loops"}
"""In these, processes wait for each other: cores, kernel and virtualisation decide who wins."""

BROKEN = (RuntimeError, OSError, subprocess.SubprocessError)
"""What a benchmark raises when it could not be measured, or what it measured was wrong."""


@dataclass(slots=True)
class Run:
    """What one run of the benchmarks brought."""

    rows: list[Row] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)


def main() -> int:
    """Run the benchmarks that are named; 0 even when a goal is not met, 1 if one broke."""
    parser = _parser()
    given = parser.parse_args()
    if min(given.rounds, given.runs) < 1:
        parser.error("--rounds and --runs take 1 or more")
    if given.against and given.json == record.FILE:
        parser.error("--against measures no other program; --json names another file for it")
    whole = not (given.only or given.against or given.json)
    try:
        other = checkout(given.against) if given.against else None
    except Missing as missing:
        parser.error(f"--against {given.against}: {missing}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])
    measured = _measured(given, other)
    written = _written(given.json, whole, measured)
    lines = [
        *table(measured.rows),
        *(f"left out: {line}" for line in measured.left_out),
        *(f"FAILED: {line}" for line in measured.failed),
        f"uuidd_client made ids in {implementation}, except in the rows that say otherwise",
        _quietness(measured),
        f"{measured.run['seconds']:g} s; {written}",
    ]
    sys.stdout.write("\n".join(lines) + "\n")
    return 1 if measured.failed else 0


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
    parser.add_argument("--machine", default="A", help="the name of the record; default: A")
    parser.add_argument(
        "--json",
        type=Path,
        metavar="FILE",
        help="where the results go; default: results.json, and with --only or --against nowhere",
    )
    return parser


def _measured(given: argparse.Namespace, other: Checkout | None) -> Machine:
    load_before, begun = os.getloadavg()[0], time.monotonic()
    runs = [
        _run(given.only or list(BENCHMARKS), given.rounds, other, f"run {number} of {given.runs}")
        for number in range(1, given.runs + 1)
    ]
    rows = joined(run.rows for run in runs)
    if other:
        rows = [replace(row, at_least=NO_SLOWER, at_most=None) for row in rows if row.ratios]
    return Machine(
        given.machine,
        record.hardware(),
        record.kernel(),
        {
            "implementation": platform.python_implementation(),
            "python": platform.python_version(),
            "uuidd": metadata.version("uuidd"),
            "client": implementation,
            "peers": making.versions(),
            "runs": given.runs,
            "rounds": given.rounds,
            "cores": len(os.sched_getaffinity(0)),
            "load_before": round(load_before, 2),
            "seconds": round(time.monotonic() - begun, 1),
        },
        rows,
        list(dict.fromkeys(line for run in runs for line in run.left_out)),
        list(dict.fromkeys(line for run in runs for line in run.failed)),
    )


def _run(names: list[str], rounds: int, other: Checkout | None, title: str) -> Run:
    """Run the benchmarks once, each with daemons and other processes of its own."""
    run = Run()
    with workspace(other) as space:
        for name in names:
            begun = time.monotonic()
            try:
                for result in BENCHMARKS[name](space, rounds):
                    match result:
                        case Row():
                            depends = other is None and name in DEPENDS
                            run.rows.append(replace(result, depends=depends))
                        case Missing():
                            run.left_out.append(f"{name}: {result}")
            except Missing as missing:
                run.left_out.append(f"{name}: {missing}")
            except BROKEN as error:
                run.failed.append(f"{name}: {error}")
            _tell(f"{title}, {name}: {time.monotonic() - begun:.1f} s")
    return run


def _written(file: Path | None, whole: bool, measured: Machine) -> str:
    """Write the results where they belong, and say where that is."""
    if file:
        file.write_text(record.dump([measured]))
        return f"{file} has the same"
    if not whole:
        return "nothing was written"
    if measured.left_out or measured.failed:
        return f"{record.FILE} stays as it was, because not everything was measured"
    machines = record.with_machine(record.load(record.FILE.read_text()), measured)
    for path, text in {**quote.pages(machines), record.FILE: record.dump(machines)}.items():
        path.write_text(text)
    return f"{record.FILE} has the same, and both READMEs quote it"


def _quietness(measured: Machine) -> str:
    """Say how busy others kept the machine: with all cores in use, ratios mean little."""
    load, cores = measured.run["load_before"], measured.run["cores"]
    verdict = "quiet" if load < cores / 4 else "NOT QUIET: measure again"
    return f"load average before: {load:.1f} for {cores} cores, {verdict}"


def _tell(line: str) -> None:
    """Show progress to a person who waits."""
    if sys.stderr.isatty():
        sys.stderr.write(line + "\n")


if __name__ == "__main__":
    sys.exit(main())
