"""``python -m tests.benchmarks``: run them, and print a table."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Callable, Iterator

from tests.benchmarks import idle, kinds, loading, making, serving, table
from tests.benchmarks.place import Missing, Place, a_place
from tests.benchmarks.table import Row

CORES = 2
"""Daemon, load and client share so many, whatever the machine has."""

ROUNDS = 15

# In this order: libuuid, once in touch with a daemon, goes on for a second or two without it.
BENCHMARKS: dict[str, Callable[[Place, int], Iterator[Row]]] = {
    "alone": making.uuid1_alone,
    "uuid1": making.uuid1,
    "text": making.text,
    "kinds": kinds.rows,
    "import": loading.rows,
    "rpc": serving.rpc,
    "libuuid": serving.libuuid,
    "idle": idle.rows,
}


def main() -> int:
    """Run the benchmarks that were asked for; 0 whether or not the goals are met."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("--only", action="append", choices=BENCHMARKS, help="may be repeated")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"default: {ROUNDS}")
    given = parser.parse_args()
    if given.rounds < 1:
        parser.error("--rounds takes 1 or more")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])
    load_before = os.getloadavg()[0]
    rows: list[Row] = []
    left_out: list[str] = []
    with a_place() as place:
        for name, benchmark in BENCHMARKS.items():
            if given.only and name not in given.only:
                continue
            try:
                for row in benchmark(place, given.rounds):
                    rows.append(row)
                    _tell(f"{row.name}: done")
            except Missing as missing:
                left_out.append(f"left out: {name}: {missing}")
    sys.stdout.write("\n".join([*table.lines(rows), *left_out, _disturbance(load_before)]) + "\n")
    return 0


def _disturbance(load_before: float) -> str:
    """Say how busy others kept the machine: with all cores in use, verdicts mean little."""
    cores = len(os.sched_getaffinity(0))
    verdict = "quiet" if load_before < cores / 4 else "NOT QUIET: measure again"
    return f"load average before the run: {load_before:.1f} for {cores} cores, {verdict}"


def _tell(line: str) -> None:
    """Show that it goes on, to a person who waits."""
    if sys.stderr.isatty():
        sys.stderr.write(line + "\n")


if __name__ == "__main__":
    sys.exit(main())
