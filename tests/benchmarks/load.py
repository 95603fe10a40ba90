"""The load generator: ``load.c``, compiled when it is needed."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.benchmarks.place import Missing, Place

SOURCE = Path(__file__).with_name("load.c")


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


def compiled(place: Place) -> Path:
    """Give the path of the program. Raises Missing without a compiler."""
    cc = shutil.which("cc")
    if cc is None:
        raise Missing("it needs a C compiler, cc (Debian: gcc, libc6-dev)")
    program = place.folder / "load"
    subprocess.run([cc, "-O2", "-Wall", "-Wextra", "-o", program, SOURCE], check=True, timeout=60)
    return program


def run(
    program: Path, socket: Path, traffic: Traffic, *, connections: int, seconds: float
) -> Measured:
    """Ask at *socket* for some seconds, over so many connections with one request each."""
    done = subprocess.run(
        [
            program,
            socket,
            str(connections),
            str(seconds),
            "anew" if traffic.anew else "keep",
            traffic.request.hex(),
            traffic.reply.hex(),
        ],
        check=True,
        capture_output=True,
        text=True,
        timeout=seconds + 30,
    )
    count, taken, _, p99, cpu = map(float, done.stdout.split())
    return Measured(count / taken, p99 / 1e3, cpu / taken)
