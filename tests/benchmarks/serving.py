"""Requests a second that a daemon answers, at several loads: what ``load.c`` sends and counts."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.benchmarks.daemons import Running, ours, rival
from tests.benchmarks.rows import OTHER_CHECKOUT, Row, Side, compared, interleaved
from tests.benchmarks.workspace import Workspace, compiled
from uuidd.core.wire import libuuid as dialect
from uuidd.core.wire import rpc as wire
from uuidd.core.wire.libuuid import Op

CLIENTS = (1, 8, 64)
TURN_SECONDS = 0.3


@dataclass(frozen=True, slots=True)
class Traffic:
    """A *request*, how its *reply* must begin, and whether each has a connection of its own."""

    request: bytes
    reply: bytes
    reconnect: bool


TAKE = Traffic(
    wire.pack_request(1, "take", ["utc", 1]),
    # A response to request 1, without an error, with a map of 6.
    reply=bytes([0x94, wire.RESPONSE, 1, 0xC0, 0x86]),
    reconnect=False,
)
# util-linux's daemon closes the connection after each reply.
TIME_UUID = Traffic(dialect.pack_request(Op.TIME_UUID), reply=bytes([16, 0, 0, 0]), reconnect=True)


def rpc(space: Workspace, rounds: int) -> Iterator[Row]:
    """Compare ``take`` over connections that stay with what util-linux's daemon does instead."""
    yield from _rows("rpc take", space, rounds, TAKE, (1.0, 1.6, 2.0))


def libuuid(space: Workspace, rounds: int) -> Iterator[Row]:
    """Compare both daemons in libuuid's protocol, with a connection for each request."""
    yield from _rows("libuuid op 2", space, rounds, TIME_UUID, (0.8, 0.8, 0.8))


def _rows(
    name: str, space: Workspace, rounds: int, traffic: Traffic, goals: tuple[float, ...]
) -> Iterator[Row]:
    beside, others = (OTHER_CHECKOUT, traffic) if space.other else ("C uuidd op 2", TIME_UUID)
    with ours(space) as mine, rival(space) as theirs:
        for clients, at_least in zip(CLIENTS, goals, strict=True):
            rates, their_rates = interleaved(
                rounds,
                side(space, mine, traffic, clients),
                side(space, theirs, others, clients),
            )
            yield compared(
                f"{name}, {clients} client{'s' if clients > 1 else ''}",
                beside,
                "req/s",
                rates,
                their_rates,
                at_least,
            )


def side(space: Workspace, daemon: Running, traffic: Traffic, connections: int) -> Side[float]:
    """Return what asks for a turn, over *connections* with one request outstanding each.

    It returns the requests answered in a second.
    """
    command = _command(space, daemon.socket, traffic, connections, TURN_SECONDS)

    def run() -> float:
        done = subprocess.run(
            command, check=True, capture_output=True, text=True, timeout=TURN_SECONDS + 30
        )
        count, taken = map(float, done.stdout.splitlines()[-1].split())
        return count / taken

    return run


@contextlib.contextmanager
def load(
    space: Workspace, path: Path, traffic: Traffic, *, connections: int, seconds: float
) -> Iterator[None]:
    """Ask a daemon in the background, from when the first requests have been answered.

    Raises RuntimeError when the load ended before the context did.
    """
    command = _command(space, path, traffic, connections, seconds)
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            answered = process.stdout.readline()
            yield
            if not answered or process.poll() is not None:
                raise RuntimeError("the load beside ended too early")
        finally:
            process.kill()


def _command(
    space: Workspace, path: Path, traffic: Traffic, connections: int, seconds: float
) -> list[str | Path]:
    how = "reconnect" if traffic.reconnect else "keep"
    sent, received = traffic.request.hex(), traffic.reply.hex()
    return [compiled(space, "load"), path, str(connections), str(seconds), how, sent, received]
