"""What our daemon costs when nobody asks: memory, wake-ups, writes."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Iterator
from pathlib import Path

from tests.benchmarks.daemons import Running, ours
from tests.benchmarks.place import Place, allow_connections
from tests.benchmarks.table import Row
from uuidd.core.wire import rpc

CONNECTIONS = 10_000
WATCH_SECONDS = 3.0

SETTLE_SECONDS = 30.0
"""How long it may take to come to rest: a last save, and trio's threads, which end 10 s after."""


def rows(place: Place, rounds: int) -> Iterator[Row]:
    """Look at a daemon at rest, alone and with connections; once, whatever *rounds* is."""
    del rounds
    allow_connections(CONNECTIONS + 1)
    limits = [
        f"--max-connections={2 * CONNECTIONS}",
        f"--max-connections-per-uid={2 * CONNECTIONS}",
    ]
    with ours(place, *limits) as daemon, contextlib.ExitStack() as connections:
        _settle(daemon)
        fresh = _resident(daemon)
        yield Row("idle memory (VmRSS)", fresh / 1024, "MB", at_most=30)
        _connect(daemon.socket, connections)
        before = _resident(daemon)
        for _ in range(CONNECTIONS):
            _connect(daemon.socket, connections)
        yield Row(
            f"an idle connection ({CONNECTIONS:,})",
            (_resident(daemon) - before) / CONNECTIONS,
            "KiB",
            at_most=0.5,
        )
        rested = _settle(daemon)
        begin = _counts(daemon)
        time.sleep(WATCH_SECONDS)
        wakeups, writes = (
            after - before for before, after in zip(begin, _counts(daemon), strict=True)
        )
        note = f"in {WATCH_SECONDS:g} s, {CONNECTIONS:,} connections, {rested:.0f} s after use"
        yield Row("wake-ups of the idle daemon", wakeups, "", at_most=0, note=note)
        yield Row("writes of the idle daemon", writes, "", at_most=0, note=note)


def _connect(path: Path, connections: contextlib.ExitStack) -> None:
    """Connect and ask once: a connection that has never asked is not idle, but late."""
    sock = connections.enter_context(socket.socket(socket.AF_UNIX))
    sock.settimeout(10)
    sock.connect(str(path))
    sock.sendall(rpc.call(1, "take", ["utc", 1]))
    if not sock.recv(4096):
        raise RuntimeError("the daemon closed a connection")


def _settle(daemon: Running) -> float:
    """Wait until only one thread is left; give for how many seconds."""
    begin = time.monotonic()
    while (waited := time.monotonic() - begin) < SETTLE_SECONDS and len(_threads(daemon)) > 1:
        time.sleep(0.1)
    return waited


def _threads(daemon: Running) -> list[Path]:
    return list(Path(f"/proc/{daemon.pid}/task").iterdir())


def _resident(daemon: Running) -> int:
    """Give the KiB of memory in use."""
    return _field(Path(f"/proc/{daemon.pid}/status"), "VmRSS")


def _counts(daemon: Running) -> tuple[int, int]:
    """Give how often any thread has gone to sleep, and how often anything was written."""
    sleeps = sum(_field(task / "status", "voluntary_ctxt_switches") for task in _threads(daemon))
    return sleeps, _field(Path(f"/proc/{daemon.pid}/io"), "syscw")


def _field(path: Path, name: str) -> int:
    for line in path.read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1])
    raise LookupError(f"{path} has no {name}")
