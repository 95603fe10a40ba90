"""How long one ``take`` takes: alone, beside others, and beside a greedy user."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.benchmarks import serving
from tests.benchmarks.daemons import Running, ours
from tests.benchmarks.rows import (
    OTHER_CHECKOUT,
    Curve,
    Missing,
    Result,
    Row,
    alone,
    compared,
    interleaved,
    median,
)
from tests.benchmarks.serving import TAKE
from tests.benchmarks.workspace import Workspace, compiled
from tests.system.attacker import GREED, Actor

OTHERS = 64
TURN_SECONDS = 0.4
PERCENTILES = (1.0, 10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.99)
GOALS = {50.0: 0.28, 99.0: 0.25, 99.9: 0.2}
"""How many times as fast as an echo in C a take is, at the least."""

GREEDY_UID = 12345
GREEDY_CONNECTIONS = 200
FAIR_CLIENTS = 8

Times = dict[float, list[float]]
"""Microseconds by percentile, one for each turn."""


def rows(space: Workspace, rounds: int) -> Iterator[Result]:
    """Compare a round trip's percentiles with those of an echo of the same bytes, written in C."""
    single, beside, echoed, others_beside = (_no_times() for _ in range(4))
    with contextlib.ExitStack() as stack:
        mine = stack.enter_context(ours(space))
        if space.other:
            name = OTHER_CHECKOUT
            rival = stack.enter_context(ours(space, checkout=space.other)).socket
        else:
            name = "blocking echo in C"
            rival = stack.enter_context(_echo(space, _a_reply(mine.socket)))
        sides = [
            lambda: _ask(space, mine.socket, single),
            lambda: _ask(space, rival, echoed),
            lambda: _ask_beside_others(space, mine.socket, beside),
        ]
        if space.other:
            sides.append(lambda: _ask_beside_others(space, rival, others_beside))
        interleaved(rounds, *sides)
    for times in (single, echoed, beside, others_beside):
        _forget_the_first(times)
    for p, goal in GOALS.items():
        yield compared(f"take, one at a time, p{p:g}", name, "us", single[p], echoed[p], goal)
    beside_name = f"take beside {OTHERS} others, p99.9"
    if space.other:
        yield compared(beside_name, name, "us", beside[99.9], others_beside[99.9])
        return
    yield alone(beside_name, "us", beside[99.9], at_most=5000)
    yield _curve("take, alone", single)
    yield _curve(f"take, beside {OTHERS} others", beside)
    yield _curve(name, echoed)


def greed(space: Workspace, rounds: int) -> Iterator[Row]:
    """Measure a user's requests beside another user's, who wants all that there is.

    Raises Missing without root.
    """
    if os.geteuid() != 0:
        raise Missing("it needs root, to be two users")
    # Each turn starts a greedy process, which takes long.
    rounds = (rounds + 1) // 2
    with contextlib.ExitStack() as stack:
        mine = stack.enter_context(ours(space))
        rival = stack.enter_context(ours(space, checkout=space.other)) if space.other else None
        for way, request in enumerate(GREED):
            yield from _beside_greed(space, rounds, way, request, mine, rival)


def _beside_greed(
    space: Workspace, rounds: int, way: int, request: str, mine: Running, rival: Running | None
) -> Iterator[Row]:
    """Yield a user's rate and the percentiles of a round trip, while another is greedy."""
    beside = f"beside {GREEDY_CONNECTIONS} connections of a greedy user ({request})"
    rate = f"rpc take, {FAIR_CLIENTS} clients {beside}"

    def rate_beside(daemon: Running) -> float:
        with _greedy(daemon, way):
            return serving.side(space, daemon, TAKE, FAIR_CLIENTS, [])()

    def ask_beside(daemon: Running, times: Times) -> float:
        with _greedy(daemon, way):
            return _ask(space, daemon.socket, times)

    mine_times, rival_times = _no_times(), _no_times()
    sides = [lambda: rate_beside(mine), lambda: ask_beside(mine, mine_times)]
    if rival:
        daemon = rival
        sides += [lambda: rate_beside(daemon), lambda: ask_beside(daemon, rival_times)]
    else:
        sides.append(serving.side(space, mine, TAKE, FAIR_CLIENTS, []))
    rates, _, rival_rates, *_ = interleaved(rounds, *sides)
    name = OTHER_CHECKOUT if rival else "the same without that user"
    yield compared(rate, name, "req/s", rates, rival_rates)
    for times in (mine_times, rival_times):
        _forget_the_first(times)
    for p in (50.0, 99.0):
        if rival:
            yield compared(f"take {beside}, p{p:g}", name, "us", mine_times[p], rival_times[p])
        else:
            yield alone(f"take {beside}, p{p:g}", "us", mine_times[p])


@contextlib.contextmanager
def _greedy(daemon: Running, way: int) -> Iterator[None]:
    with Actor(daemon.socket, GREEDY_UID, "greedy", GREEDY_CONNECTIONS, way):
        yield


def _no_times() -> Times:
    return {percentile: [] for percentile in PERCENTILES}


def _forget_the_first(times: Times) -> None:
    """Drop the turn of the round that is not counted."""
    for turns in times.values():
        del turns[:1]


def _curve(name: str, times: Times) -> Curve:
    return Curve(name, {percentile: median(turns) for percentile, turns in times.items()})


def _ask(space: Workspace, path: Path, times: Times) -> float:
    """Ask for a turn, add to *times*, and return the median."""
    how = [str(TURN_SECONDS), TAKE.request.hex(), TAKE.reply.hex(), *map(str, times)]
    done = subprocess.run(
        [compiled(space, "roundtrip"), "ask", path, *how],
        check=True,
        capture_output=True,
        text=True,
        timeout=TURN_SECONDS + 30,
    )
    _, *found = map(int, done.stdout.split())
    for percentile, nanoseconds in zip(times, found, strict=True):
        times[percentile].append(nanoseconds / 1e3)
    return times[50.0][-1]


def _ask_beside_others(space: Workspace, path: Path, times: Times) -> float:
    with serving.load(space, path, TAKE, connections=OTHERS, seconds=TURN_SECONDS + 10):
        return _ask(space, path, times)


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
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as sock:
        sock.settimeout(10)
        sock.connect(str(path))
        sock.sendall(TAKE.request)
        reply = sock.recv(4096)
    if not reply.startswith(TAKE.reply):
        raise RuntimeError(f"{reply!r} does not answer a take")
    return reply
