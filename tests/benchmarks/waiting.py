"""How long one ``take`` takes: alone, beside others, and beside a greedy user."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from tests.benchmarks import serving
from tests.benchmarks.daemons import Running, ours
from tests.benchmarks.rows import OTHER_CHECKOUT, Missing, Row, alone, compared, interleaved
from tests.benchmarks.serving import TAKE
from tests.benchmarks.workspace import Workspace, compiled
from tests.rig import connected
from tests.system.attacker import GREED, Actor

OTHERS = 64
TURN_SECONDS = 0.4
GOALS = {50.0: 0.28, 99.0: 0.25, 99.9: 0.2}
"""How many times as fast as an echo in C a take is, at the least."""

GREEDY_UID = 12345
GREEDY_CONNECTIONS = 200
GREEDY_WAY = "whole"
FAIR_CLIENTS = 8

Times = dict[float, float]
"""Microseconds by percentile, of one turn."""


def rows(space: Workspace, rounds: int) -> Iterator[Row]:
    """Compare a round trip's percentiles with those of an echo of the same bytes, written in C."""
    with contextlib.ExitStack() as stack:
        mine = stack.enter_context(ours(space))
        if space.other:
            name = OTHER_CHECKOUT
            rival = stack.enter_context(ours(space, checkout=space.other)).socket
        else:
            name = "blocking echo in C"
            rival = stack.enter_context(_echo(space, _a_reply(mine.socket)))
        sides = [
            partial(_ask, space, mine.socket),
            partial(_ask, space, rival),
            partial(_ask_beside_others, space, mine.socket),
        ]
        if space.other:
            sides.append(partial(_ask_beside_others, space, rival))
        single, echoed, beside, *others_beside = interleaved(rounds, *sides)
    for p, goal in GOALS.items():
        found, others = _of(single, p), _of(echoed, p)
        yield compared(f"take, one at a time, p{p:g}", name, "us", found, others, goal)
    beside_name = f"take beside {OTHERS} others, p99.9"
    if others_beside:
        others = _of(others_beside[0], 99.9)
        yield compared(beside_name, name, "us", _of(beside, 99.9), others)
        return
    yield alone(beside_name, "us", _of(beside, 99.9), at_most=5000)


def greed(space: Workspace, rounds: int) -> Iterator[Row]:
    """Measure a user's requests beside another user's, who wants all that there is.

    Raises Missing without root.
    """
    if os.geteuid() != 0:
        raise Missing("it needs root, to be two users")
    # Each turn starts a greedy process, which takes long.
    rounds = (rounds + 1) // 2

    def asked(daemon: Running) -> tuple[Times, float]:
        """Return the percentiles of a turn, and the rate of another one."""
        times = _ask(space, daemon.socket)
        return times, serving.side(space, daemon, TAKE, FAIR_CLIENTS)()

    def asked_beside(daemon: Running) -> tuple[Times, float]:
        way = list(GREED).index(GREEDY_WAY)
        with Actor(daemon.socket, GREEDY_UID, "greedy", GREEDY_CONNECTIONS, way):
            return asked(daemon)

    with contextlib.ExitStack() as stack:
        mine = stack.enter_context(ours(space))
        name, other_side = "the same without that user", partial(asked, mine)
        if space.other:
            theirs = stack.enter_context(ours(space, checkout=space.other))
            name, other_side = OTHER_CHECKOUT, partial(asked_beside, theirs)
        turns = interleaved(rounds, partial(asked_beside, mine), other_side)
    (times, rates), (other_times, other_rates) = (zip(*side, strict=True) for side in turns)
    beside = f"beside {GREEDY_CONNECTIONS} connections of a greedy user ({GREEDY_WAY})"
    yield compared(f"rpc take, {FAIR_CLIENTS} clients {beside}", name, "req/s", rates, other_rates)
    for p in (50.0, 99.0):
        yield compared(f"take {beside}, p{p:g}", name, "us", _of(times, p), _of(other_times, p))


def _of(turns: Sequence[Times], percentile: float) -> list[float]:
    return [times[percentile] for times in turns]


def _ask(space: Workspace, path: Path) -> Times:
    """Ask for a turn, and return its percentiles."""
    how = [str(TURN_SECONDS), TAKE.request.hex(), TAKE.reply.hex(), *map(str, GOALS)]
    done = subprocess.run(
        [compiled(space, "roundtrip"), "ask", path, *how],
        check=True,
        capture_output=True,
        text=True,
        timeout=TURN_SECONDS + 30,
    )
    _, *found = map(int, done.stdout.split())
    return {p: nanoseconds / 1e3 for p, nanoseconds in zip(GOALS, found, strict=True)}


def _ask_beside_others(space: Workspace, path: Path) -> Times:
    with serving.load(space, path, TAKE, connections=OTHERS, seconds=TURN_SECONDS + 10):
        return _ask(space, path)


@contextlib.contextmanager
def _echo(space: Workspace, reply: bytes) -> Iterator[Path]:
    """Run a server that answers every take with the same reply; yield its path."""
    path = space.folder / "echo"
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as listening:
        listening.bind(str(path))
        listening.listen()
        program = compiled(space, "roundtrip")
        command = [str(program), "echo", str(len(TAKE.request)), reply.hex()]
        with subprocess.Popen(command, stdin=listening.fileno()) as process:
            try:
                yield path
            finally:
                process.kill()
                path.unlink()


def _a_reply(path: Path) -> bytes:
    with connected(path) as sock:
        sock.sendall(TAKE.request)
        reply = sock.recv(4096)
    if not reply.startswith(TAKE.reply):
        raise RuntimeError(f"{reply!r} does not answer a take")
    return reply
