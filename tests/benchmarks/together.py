"""Ids a second in all: processes side by side, and callers of libuuid through our daemon."""

from __future__ import annotations

import contextlib
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from tests.benchmarks.daemons import Running, let_answer, ours, side_by_side, util_linux
from tests.benchmarks.makers import STDLIB, UUID1
from tests.benchmarks.making import Bursts, started
from tests.benchmarks.rows import OTHER_CHECKOUT, Row, Side, compared, interleaved
from tests.benchmarks.workspace import THIS, Workspace, compiled

TURN_SECONDS = 0.3

PROCESSES = {2: 3.5, 4: 3.5, 8: 3.5, 64: 2.5}
"""How many processes draw, and the goal."""

LOOPS = {1: 0.5, 4: 0.5}
"""How many processes call libuuid, and the goal."""

EACH = 3_000_000
"""Ids of each such process."""

LEAST_PERCENT = 0.01
"""A share of a core that is smaller counts as this one, for a ratio needs one."""


def processes(space: Workspace, rounds: int) -> Iterator[Row]:
    """Compare processes that draw from ours with as many that use Python's own uuid1()."""
    # A turn is longer than those of other benchmarks.
    rounds = (rounds + 1) // 2
    other = space.other
    beside = OTHER_CHECKOUT if other else "stdlib with C uuidd"
    rival = ours(space, checkout=other) if other else util_linux(space)
    their_maker = replace(UUID1 if other else STDLIB, name=beside)
    with ours(space) as mine, rival as theirs:
        wanted = [
            (THIS, UUID1, mine.environment),
            (other or THIS, their_maker, theirs.environment),
        ]
        for count, at_least in PROCESSES.items():
            with started(wanted, processes=count, seconds=TURN_SECONDS) as (_, (one, another), _):
                turns = interleaved(
                    rounds, partial(_drawn, mine, one), partial(_drawn, theirs, another)
                )
            name = f"{count} processes, uuid1()"
            (rates, shares), (their_rates, their_shares) = (
                zip(*side, strict=True) for side in turns
            )
            yield compared(name, beside, "million/s", rates, their_rates, at_least)
            if count == max(PROCESSES):
                name += ", the daemon's share of a core"
                yield compared(name, beside, "%", shares, their_shares)


def _drawn(daemon: Running, side: Side[Bursts]) -> tuple[float, float]:
    """Return millions of ids a second, and the daemon's share of a core in percent."""
    before = time.clock_gettime(daemon.cpu_clock)
    millions = _rate(side)
    used = time.clock_gettime(daemon.cpu_clock) - before
    return millions, max(100 * used / TURN_SECONDS, LEAST_PERCENT)


def _rate(side: Side[Bursts]) -> float:
    """Return millions of ids a second, of all processes together."""
    return sum(1e3 / mean for mean, _ in side())


def stdlib(space: Workspace, rounds: int) -> Iterator[Row]:
    """Compare the daemons behind Python's own uuid1()."""
    with side_by_side(space) as daemons, contextlib.ExitStack() as stack:
        turns: list[Side[float]] = []
        for daemon in daemons:
            let_answer(daemon)
            wanted = [(THIS, STDLIB, daemon.environment)]
            _, [side], _ = stack.enter_context(started(wanted, seconds=TURN_SECONDS))
            turns.append(partial(_rate, side))
        yield _through("stdlib uuid1() through our daemon", daemons, rounds, turns, 1.0)


def loops(space: Workspace, rounds: int) -> Iterator[Row]:
    """Compare the daemons behind a loop in C; no id of a turn may come twice."""
    program = compiled(space, "uuids", library="uuid", package="uuid-dev")
    with side_by_side(space) as daemons:
        for count, at_least in LOOPS.items():
            name = f"{count} C loop{'s' if count > 1 else ''} through our daemon"
            command = [str(program), str(count), str(EACH)]
            turns = [partial(_looped, command, daemon, daemon.node()) for daemon in daemons]
            yield _through(name, daemons, rounds, turns, at_least)


def _looped(command: list[str], daemon: Running, node: int) -> float:
    """Return what the program tells, in millions a second.

    Raises RuntimeError when its ids came from elsewhere.
    """
    done = subprocess.run(command, capture_output=True, text=True, timeout=90)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")
    per_second, seen = done.stdout.split()
    if int(seen, 16) != node:
        raise RuntimeError(f"{seen} is not the node of {daemon.name}, {node:012x}")
    return float(per_second) / 1e6


def _through(
    name: str,
    daemons: tuple[Running, Running],
    rounds: int,
    turns: Sequence[Side[float]],
    at_least: float,
) -> Row:
    """Compare turns that call libuuid, each with its daemon behind it."""

    def turned(daemon: Running, turn: Side[float]) -> float:
        let_answer(daemon)
        return turn()

    mine, theirs = interleaved(rounds, *map(partial(partial, turned), daemons, turns))
    return compared(name, daemons[1].name, "million/s", mine, theirs, at_least)
