"""Requests at a rate as high as it gets: what ``load.c`` sends and counts."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from uuidd.core.wire import libuuid, rpc
from uuidd.core.wire.libuuid import Op


@dataclass(frozen=True, slots=True)
class Measured:
    """What a turn brought: requests a second, the 99th percentile of a request in microseconds.

    *busy* is the share of the time in which the generator itself used a core.
    """

    per_second: float
    p99: float
    busy: float


@dataclass(frozen=True, slots=True)
class Traffic:
    """A *request*, how its *reply* must begin, and whether each has a connection of its own."""

    request: bytes
    reply: bytes
    anew: bool


TAKE = Traffic(
    rpc.call(1, "take", ["utc", 1]),
    # A response, to request 1, without an error, a map of 4.
    reply=bytes([0x94, rpc.RESPONSE, 1, 0xC0, 0x86]),
    anew=False,
)
TIME_UUID = Traffic(libuuid.request(Op.TIME_UUID), reply=bytes([16, 0, 0, 0]), anew=True)
"""util-linux's daemon closes after each reply, so its callers have to connect anew."""


def run(
    program: Path, socket: Path, traffic: Traffic, *, connections: int, seconds: float
) -> Measured:
    """Ask at *socket* for some seconds, over so many connections with one request each."""
    done = subprocess.run(
        _command(program, socket, traffic, connections, seconds),
        check=True,
        capture_output=True,
        text=True,
        timeout=seconds + 30,
    )
    count, taken, _, p99, cpu = map(float, done.stdout.splitlines()[-1].split())
    return Measured(count / taken, p99 / 1e3, cpu / taken)


@contextlib.contextmanager
def running(
    program: Path, socket: Path, traffic: Traffic, *, connections: int, seconds: float
) -> Iterator[None]:
    """Ask likewise meanwhile. Raises RuntimeError when that ended before: *seconds* is too short.

    Enters once the first have been answered.
    """
    command = _command(program, socket, traffic, connections, seconds)
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
    program: Path, socket: Path, traffic: Traffic, connections: int, seconds: float
) -> list[str | Path]:
    how = "anew" if traffic.anew else "keep"
    sent, received = traffic.request.hex(), traffic.reply.hex()
    return [program, socket, str(connections), str(seconds), how, sent, received]
