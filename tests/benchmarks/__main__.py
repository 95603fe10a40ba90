"""``python -m tests.benchmarks``: run them; print a table, write it as JSON, and draw it."""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import uuidd_client
from tests.benchmarks import (
    chart,
    greed,
    idle,
    kinds,
    loading,
    making,
    report,
    serving,
    table,
    together,
    waiting,
)
from tests.benchmarks.place import Missing, Place, a_place
from tests.benchmarks.table import Curve, Result, Row

CORES = 2
"""Daemon, load and client share so many, whatever the machine has."""

ROUNDS = 13

FILE = Path(__file__).with_name("results.json")

# In this order: libuuid, once in touch with a daemon, goes on for a second or two without it.
BENCHMARKS: dict[str, Callable[[Place, int], Iterator[Result]]] = {
    "alone": making.uuid1_alone,
    "util-linux": making.beside_util_linux,
    "one": making.one,
    "bulk": making.bulk,
    "kinds": kinds.rows,
    "import": loading.rows,
    "rpc": serving.rpc,
    "many": serving.many,
    "libuuid": serving.libuuid,
    "latency": waiting.rows,
    "greed": greed.rows,
    "processes": together.processes,
    "stdlib": together.stdlib,
    "loops": together.loops,
    "idle": idle.rows,
}

BROKEN = (RuntimeError, OSError, subprocess.SubprocessError, uuidd_client.DaemonUnavailable)
"""What a benchmark raises when it could not be measured, or what it measured was wrong."""


@dataclass(slots=True)
class Outcome:
    """What a run brought."""

    rows: list[Row] = field(default_factory=list)
    curves: list[Curve] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)


def main() -> int:
    """Run the benchmarks that were asked for; 0 whatever goals are met, 1 if one broke."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("--only", action="append", choices=BENCHMARKS, help="may be repeated")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"default: {ROUNDS}")
    parser.add_argument(
        "--json",
        type=Path,
        default=FILE,
        help="the drawing is beside it, as .svg; default: %(default)s",
    )
    given = parser.parse_args()
    if given.rounds < 1:
        parser.error("--rounds takes 1 or more")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])
    cores = len(os.sched_getaffinity(0))
    load_before, begun = os.getloadavg()[0], time.monotonic()
    outcome = _run(given.only or list(BENCHMARKS), given.rounds)
    run = {
        "rounds": given.rounds,
        "cores": cores,
        "load_before": round(load_before, 2),
        "seconds": round(time.monotonic() - begun, 1),
        "seconds_of_each": outcome.seconds,
    }
    given.json.write_text(
        report.document(outcome.rows, outcome.curves, outcome.left_out, outcome.failed, run)
    )
    drawing = given.json.with_suffix(".svg")
    drawing.write_text(chart.drawn(outcome.rows, outcome.curves))
    lines = [
        *table.lines(outcome.rows),
        *(f"left out: {line}" for line in outcome.left_out),
        *(f"FAILED: {line}" for line in outcome.failed),
        _disturbance(load_before, cores),
        f"{run['seconds']:g} s; {given.json} and {drawing} have the same",
    ]
    sys.stdout.write("\n".join(lines) + "\n")
    return 1 if outcome.failed else 0


def _run(names: list[str], rounds: int) -> Outcome:
    outcome = Outcome()
    with a_place() as place:
        for name, benchmark in BENCHMARKS.items():
            if name not in names:
                continue
            begun = time.monotonic()
            try:
                for result in benchmark(place, rounds):
                    match result:
                        case Row():
                            outcome.rows.append(result)
                        case Curve():
                            outcome.curves.append(result)
                        case Missing():
                            outcome.left_out.append(f"{name}: {result}")
            except Missing as missing:
                outcome.left_out.append(f"{name}: {missing}")
            except BROKEN as error:
                outcome.failed.append(f"{name}: {error}")
            outcome.seconds[name] = round(time.monotonic() - begun, 1)
            _tell(f"{name}: {outcome.seconds[name]:g} s")
    return outcome


def _disturbance(load_before: float, cores: int) -> str:
    """Say how busy others kept the machine: with all cores in use, verdicts mean little."""
    verdict = "quiet" if load_before < cores / 4 else "NOT QUIET: measure again"
    return f"load average before the run: {load_before:.1f} for {cores} cores, {verdict}"


def _tell(line: str) -> None:
    """Show that it goes on, to a person who waits."""
    if sys.stderr.isatty():
        sys.stderr.write(line + "\n")


if __name__ == "__main__":
    sys.exit(main())
