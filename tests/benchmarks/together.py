"""Ids a second in all: processes side by side, and libuuid's own callers through our daemon."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import uuidd_client
from tests.benchmarks.compiling import compiled
from tests.benchmarks.daemons import Running, let_answer, ours, side_by_side, util_linux
from tests.benchmarks.place import Place
from tests.benchmarks.rounds import Side, interleaved, median, ratio
from tests.benchmarks.table import Row

TURN_SECONDS = 0.3
DRAWING = Path(__file__).with_name("drawing.py")

PROCESSES = {2: 3.5, 4: 3.5, 8: 3.5, 64: 2.5}
"""How many processes draw, and the goal."""

LOOPS = {1: 0.5, 4: 0.5}
"""How many processes call libuuid, and the goal."""

EACH = 3_000_000
"""Ids of each such process."""


def processes(place: Place, rounds: int) -> Iterator[Row]:
    """Compare processes that draw from ours with as many that use Python's own uuid1()."""
    # So many processes take long to start.
    rounds = (rounds + 1) // 2
    with ours(place), util_linux(place):
        for count, at_least in PROCESSES.items():
            mine, theirs = interleaved(
                rounds,
                _rate(_drawing(place, "ours", count)),
                _rate(_drawing(place, "stdlib", count)),
            )
            yield _row(f"{count} processes, uuid1() / stdlib with C uuidd", mine, theirs, at_least)


def stdlib(place: Place, rounds: int) -> Iterator[Row]:
    """Compare the daemons behind Python's own uuid1()."""
    with side_by_side(place) as daemons:
        name = "stdlib uuid1() through our daemon / C uuidd"
        yield _through(name, daemons, rounds, _drawing(place, "stdlib", 1), 1.0)


def loops(place: Place, rounds: int) -> Iterator[Row]:
    """Compare the daemons behind a loop in C; no id of a turn may come twice."""
    program = compiled(place, "uuids", library="uuid", package="uuid-dev")
    with side_by_side(place) as daemons:
        for count, at_least in LOOPS.items():
            name = f"{count} C loop{'s' if count > 1 else ''} through our daemon / C uuidd"
            looping = partial(_run, [str(program), str(count), str(EACH)], None)
            yield _through(name, daemons, rounds, looping, at_least)


Program = Callable[[], tuple[float, int]]
"""Gives ids a second in all, and the node of the last."""


def _through(
    name: str, daemons: tuple[Running, Running], rounds: int, program: Program, at_least: float
) -> Row:
    """Run a program that calls libuuid with each daemon behind it, and see that it is that one."""
    with uuidd_client.Client(daemons[0].socket, fallback=False) as client:
        node = client.uuid1().node

    def side(daemon: Running, *, is_ours: bool) -> Side:
        def run() -> float:
            let_answer(daemon)
            per_second, seen = program()
            if (seen == node) is not is_ours:
                raise RuntimeError(f"an id with node {seen:012x} came from the other daemon")
            return per_second

        return run

    mine, theirs = interleaved(
        rounds, side(daemons[0], is_ours=True), side(daemons[1], is_ours=False)
    )
    return _row(name, mine, theirs, at_least)


def _rate(program: Program) -> Side:
    return lambda: program()[0]


def _drawing(place: Place, name: str, count: int) -> Program:
    command = [sys.executable, str(DRAWING), name, str(count), str(TURN_SECONDS)]
    environment = {
        **place.environment,
        "UUIDD_SOCKET": os.environ["UUIDD_SOCKET"],
        "UUIDD_FALLBACK": "0",
        "UUIDD_TIMEOUT": os.environ["UUIDD_TIMEOUT"],
    }
    return lambda: _run(command, environment)


def _run(command: list[str], environment: dict[str, str] | None) -> tuple[float, int]:
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=90)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")
    per_second, node = done.stdout.split()
    return float(per_second), int(node, 16)


def _row(name: str, mine: list[float], theirs: list[float], at_least: float) -> Row:
    return Row(
        name,
        median(mine) / 1e6,
        "million/s",
        theirs=median(theirs) / 1e6,
        ratio=ratio(mine, theirs),
        at_least=at_least,
    )
