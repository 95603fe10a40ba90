"""Ids a second in all: processes side by side, and callers of libuuid through our daemon."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

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

LEAST_PERCENT = 0.01


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
            turns = interleaved(rounds, my_draw, their_draw)
            yield _row(f"{count} processes, uuid1()", beside, turns, at_least)
            if count == max(PROCESSES):
                name = f"{count} processes, uuid1(), the daemon's share of a core"
                mine_used, theirs_used = ([turn.daemon_percent for turn in side] for side in turns)
                yield compared(name, beside, "%", mine_used, theirs_used)


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


class Drawn(NamedTuple):
    """Ids a second in all, the node of the last, and the daemon's share of a core if known."""

    per_second: float
    node: int
    daemon_busy: float = 0

    @property
    def daemon_percent(self) -> float:
        """The daemon's share in percent; not 0, for that has no ratio."""
        return max(100 * self.daemon_busy, LEAST_PERCENT)


Program = Callable[[], Drawn]


def _through(
    name: str, daemons: tuple[Running, Running], rounds: int, program: Program, at_least: float
) -> Row:
    """Run a program that calls libuuid with each daemon behind it.

    Raises RuntimeError when its ids came from elsewhere.
    """

    def side(daemon: Running) -> Side[Drawn]:
        node = daemon.node()

        def run() -> Drawn:
            let_answer(daemon)
            drawn = program()
            if drawn.node != node:
                raise RuntimeError(
                    f"{drawn.node:012x} is not the node of {daemon.name}, {node:012x}"
                )
            return drawn

        return run

    return _row(name, daemons[1].name, interleaved(rounds, *map(side, daemons)), at_least)


def _drawing(checkout: Checkout, daemon: Running, kind: str, count: int) -> Program:
    how = kind, str(count), str(TURN_SECONDS), str(daemon.cpu_clock)
    command = checkout.command(DRAWING, *how)
    return partial(_run, command, daemon.environment)


def _run(command: list[str], environment: dict[str, str]) -> Drawn:
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=90)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")
    per_second, node, *busy = done.stdout.split()
    return Drawn(float(per_second), int(node, 16), *map(float, busy))


def _row(name: str, beside: str, turns: list[list[Drawn]], at_least: float) -> Row:
    mine, theirs = ([turn.per_second / 1e6 for turn in side] for side in turns)
    return compared(name, beside, "million/s", mine, theirs, at_least)
