"""Ids a second in all: processes side by side, and callers of libuuid through our daemon."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from tests.benchmarks.daemons import Running, let_answer, ours, side_by_side, util_linux
from tests.benchmarks.rows import OTHER_CHECKOUT, Row, Side, compared, interleaved
from tests.benchmarks.workspace import THIS, Checkout, Workspace, compiled

TURN_SECONDS = 0.3
DRAWING = Path(__file__).with_name("drawing.py")

PROCESSES = {2: 3.5, 4: 3.5, 8: 3.5, 64: 2.5}
"""How many processes draw, and the goal."""

LOOPS = {1: 0.5, 4: 0.5}
"""How many processes call libuuid, and the goal."""

EACH = 3_000_000
"""Ids of each such process."""


def processes(space: Workspace, rounds: int) -> Iterator[Row]:
    """Compare processes that draw from ours with as many that use Python's own uuid1()."""
    # A turn starts up to 64 processes, which takes long.
    rounds = (rounds + 1) // 2
    other = space.other
    beside = OTHER_CHECKOUT if other else "stdlib with C uuidd"
    rival = ours(space, checkout=other) if other else util_linux(space)
    with ours(space) as mine, rival as theirs:
        for count, at_least in PROCESSES.items():
            my_draw = _drawing(THIS, mine, "ours", count)
            kind = "ours" if other else "stdlib"
            their_draw = _drawing(other or THIS, theirs, kind, count)
            rates = interleaved(rounds, _rate(my_draw), _rate(their_draw))
            yield _row(f"{count} processes, uuid1()", beside, rates, at_least)


def stdlib(space: Workspace, rounds: int) -> Iterator[Row]:
    """Compare the daemons behind Python's own uuid1()."""
    with side_by_side(space) as daemons:
        draw = _drawing(THIS, daemons[0], "stdlib", 1)
        yield _through("stdlib uuid1() through our daemon", daemons, rounds, draw, 1.0)


def loops(space: Workspace, rounds: int) -> Iterator[Row]:
    """Compare the daemons behind a loop in C; no id of a turn may come twice."""
    program = compiled(space, "uuids", library="uuid", package="uuid-dev")
    with side_by_side(space) as daemons:
        for count, at_least in LOOPS.items():
            name = f"{count} C loop{'s' if count > 1 else ''} through our daemon"
            looping = partial(_run, [str(program), str(count), str(EACH)], space.environment)
            yield _through(name, daemons, rounds, looping, at_least)


Program = Callable[[], tuple[float, int]]
"""Returns ids a second in all, and the node of the last."""


def _through(
    name: str, daemons: tuple[Running, Running], rounds: int, program: Program, at_least: float
) -> Row:
    """Run a program that calls libuuid with each daemon behind it.

    Raises RuntimeError when its ids came from elsewhere.
    """

    def side(daemon: Running) -> Side[float]:
        node = daemon.node()

        def run() -> float:
            let_answer(daemon)
            per_second, seen = program()
            if seen != node:
                raise RuntimeError(f"{seen:012x} is not the node of {daemon.name}, {node:012x}")
            return per_second

        return run

    rates = interleaved(rounds, *map(side, daemons))
    return _row(name, daemons[1].name, rates, at_least)


def _rate(program: Program) -> Side[float]:
    return lambda: program()[0]


def _drawing(checkout: Checkout, daemon: Running, kind: str, count: int) -> Program:
    command = checkout.command(DRAWING, kind, str(count), str(TURN_SECONDS))
    return partial(_run, command, daemon.environment)


def _run(command: list[str], environment: dict[str, str]) -> tuple[float, int]:
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=90)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")
    per_second, node = done.stdout.split()
    return float(per_second), int(node, 16)


def _row(name: str, beside: str, rates: list[list[float]], at_least: float) -> Row:
    mine, theirs = ([rate / 1e6 for rate in side] for side in rates)
    return compared(name, beside, "million/s", mine, theirs, at_least)
