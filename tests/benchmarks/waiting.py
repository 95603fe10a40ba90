"""How long one ``take`` takes, alone and beside others, against a bare echo of the same bytes."""

from __future__ import annotations

import contextlib
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.benchmarks import load
from tests.benchmarks.compiling import compiled
from tests.benchmarks.daemons import ours
from tests.benchmarks.load import TAKE
from tests.benchmarks.place import Place
from tests.benchmarks.rounds import interleaved, median, ratio
from tests.benchmarks.table import Curve, Result, Row

OTHERS = 64
TURN_SECONDS = 0.4
PERCENTILES = (1.0, 10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.99)
GOALS = {50.0: 3.5, 99.0: 4.0, 99.9: 5.0}

Times = dict[float, list[float]]
"""Microseconds by percentile, one for each turn."""


def rows(place: Place, rounds: int) -> Iterator[Result]:
    """Give the round trip's percentiles against the echo's, and both its curves."""
    asking = compiled(place, "roundtrip")
    loading = compiled(place, "load")
    alone, echoed, beside = (_no_times() for _ in range(3))
    with ours(place) as daemon, _echo(place, asking, _a_reply(daemon.socket)) as echo:

        def beside_others() -> float:
            with load.running(
                loading, daemon.socket, TAKE, connections=OTHERS, seconds=TURN_SECONDS + 10
            ):
                return ask(asking, daemon.socket, beside)

        interleaved(
            rounds,
            lambda: ask(asking, daemon.socket, alone),
            lambda: ask(asking, echo, echoed),
            beside_others,
        )
    for turns in (turns for times in (alone, echoed, beside) for turns in times.values()):
        # The first turn of all is not measured.
        del turns[0]
    for percentile, goal in GOALS.items():
        yield Row(
            f"take, one at a time / blocking echo in C, p{percentile:g}",
            median(alone[percentile]),
            "us",
            theirs=median(echoed[percentile]),
            ratio=ratio(alone[percentile], echoed[percentile]),
            ratio_at_most=goal,
        )
    waited = median(beside[99.9]) / 1e3
    yield Row(f"take beside {OTHERS} others, p99.9", waited, "ms", at_most=5)
    yield _curve("take, alone", alone)
    yield _curve(f"take, beside {OTHERS} others", beside)
    yield _curve("blocking echo in C", echoed)


def _no_times() -> Times:
    return {percentile: [] for percentile in PERCENTILES}


def _curve(name: str, times: Times) -> Curve:
    return Curve(name, {percentile: median(turns) for percentile, turns in times.items()})


def ask(program: Path, path: Path, times: Times) -> float:
    """Ask for a turn, add to *times*, and give the median."""
    how = [str(TURN_SECONDS), TAKE.request.hex(), TAKE.reply.hex(), *map(str, times)]
    done = subprocess.run(
        [str(program), "ask", str(path), *how],
        check=True,
        capture_output=True,
        text=True,
        timeout=TURN_SECONDS + 30,
    )
    _, *found = map(int, done.stdout.split())
    for percentile, nanoseconds in zip(times, found, strict=True):
        times[percentile].append(nanoseconds / 1e3)
    return times[50.0][-1]


@contextlib.contextmanager
def _echo(place: Place, program: Path, reply: bytes) -> Iterator[Path]:
    """Run a server that gives the same reply to every take; give its path."""
    path = place.folder / "echo"
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as listening:
        listening.bind(str(path))
        listening.listen()
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
        raise RuntimeError(f"{reply!r} is no answer to a take")
    return reply
