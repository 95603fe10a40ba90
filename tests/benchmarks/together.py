"""Ids a second in all: processes side by side, and callers of libuuid through our daemon."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from tests.benchmarks.daemons import Running, no_daemon, ours, rival, util_linux
from tests.benchmarks.makers import STDLIB, UUID1
from tests.benchmarks.making import Bursts, started
from tests.benchmarks.rows import OTHER_CHECKOUT, Row, Side, compared, interleaved
from tests.benchmarks.workspace import LIBUUID_SOCKET, THIS, Workspace

TURN_SECONDS = 0.3

PROCESSES = {2: 3.5, 64: 2.5}
"""How many processes draw, and the goal."""

LEAST_PERCENT = 0.01
"""A share of a core that is smaller counts as this one, for a ratio needs one."""


def processes(space: Workspace, rounds: int) -> Iterator[Row]:
    """Compare processes that draw from ours with as many that use Python's own uuid1()."""
    # A turn is longer than those of other benchmarks.
    rounds = (rounds + 1) // 2
    other = space.other
    beside = OTHER_CHECKOUT if other else "stdlib with C uuidd"
    their_maker = replace(UUID1 if other else STDLIB, name=beside)
    with ours(space) as mine, rival(space) as theirs:
        wanted = [
            (THIS, UUID1, mine.environment),
            (other or THIS, their_maker, theirs.environment),
        ]
        for count, at_least in PROCESSES.items():
            with started(wanted, processes=count, seconds=TURN_SECONDS) as (sides, _):
                turns = interleaved(
                    rounds,
                    partial(_drawn, mine, sides[UUID1]),
                    partial(_drawn, theirs, sides[their_maker]),
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
    return sum(1e3 / mean for mean in side())


def stdlib(space: Workspace, rounds: int) -> Iterator[Row]:
    """Compare the daemons behind Python's own uuid1()."""
    with contextlib.ExitStack() as stack:
        # libuuid's own path is for a link to the daemon whose turn it is.
        if space.other:
            stack.enter_context(no_daemon())
            theirs = stack.enter_context(ours(space, checkout=space.other))
        else:
            at = LIBUUID_SOCKET.with_name("util-linux")
            theirs = stack.enter_context(util_linux(space, at=at))
        turns: list[Side[float]] = []
        for daemon in (stack.enter_context(ours(space)), theirs):
            _let_answer(daemon)
            wanted = [(THIS, STDLIB, daemon.environment)]
            sides, _ = stack.enter_context(started(wanted, seconds=TURN_SECONDS))
            turns.append(partial(_through, daemon, sides[STDLIB]))
        rates, their_rates = interleaved(rounds, *turns)
    name = "stdlib uuid1() through our daemon"
    yield compared(name, theirs.name, "million/s", rates, their_rates, 1.0)


def _through(daemon: Running, side: Side[Bursts]) -> float:
    _let_answer(daemon)
    return _rate(side)


def _let_answer(daemon: Running) -> None:
    """Let libuuid find *daemon* with its next request."""
    LIBUUID_SOCKET.unlink(missing_ok=True)
    LIBUUID_SOCKET.symlink_to(daemon.socket)
