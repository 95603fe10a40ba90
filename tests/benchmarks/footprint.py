"""Time of an import; memory, wake-ups and writes of an idle daemon."""

from __future__ import annotations

import contextlib
import os
import resource
import subprocess
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from tests.benchmarks.daemons import Running, ours
from tests.benchmarks.makers import WITHOUT_C
from tests.benchmarks.rows import OTHER_CHECKOUT, Missing, Row, alone, compared, interleaved
from tests.benchmarks.workspace import THIS, Checkout, Workspace
from tests.rig import connected, resident_kib, sleeps
from uuidd.core.wire import rpc
from uuidd_client import implementation

FIRST_ID = "import uuidd_client; uuidd_client.uuid1()"
IMPORTS = {"import uuidd_client": "import uuidd_client", "import and a first uuid1()": FIRST_ID}
LOADED = f"{FIRST_ID}; import sys; print(*{{'trio', 'ifaddr'}} & sys.modules.keys())"

IMPORT_MS = 15
"""The goal for the import, with a first id or without one."""

CONNECTIONS = 10_000
WATCH_SECONDS = 3.0

SPARE_DESCRIPTORS = 64
"""What a process opens besides connections."""

SETTLE_SECONDS = 30.0
"""How long it may take to come to rest: a last save, and trio's threads, which end 10 s after."""


def imports(space: Workspace, rounds: int) -> Iterator[Row]:
    """Time the import, and the import with a first id, without a bare interpreter's time."""
    wanted = dict(IMPORTS)
    if implementation == "c" and not space.other:
        wanted |= {f"{name}, in Python": WITHOUT_C + code for name, code in IMPORTS.items()}
    codes = ["pass", *wanted.values()]
    with ours(space) as mine, ours(space, checkout=space.other or THIS) as theirs:
        sides = [partial(_run_ms, THIS, mine, code) for code in codes]
        if space.other:
            sides += [partial(_run_ms, space.other, theirs, code) for code in codes]
        bare, *times = interleaved(rounds, *sides)
        loaded = subprocess.run(
            THIS.command("-c", LOADED),
            env=mine.environment,
            check=True,
            capture_output=True,
            text=True,
            timeout=30,
        ).stdout.split()
    own, others = times[: len(wanted)], times[len(wanted) :]
    if space.other:
        other_bare, *others = others
        for name, took, others_took in zip(wanted, own, others, strict=True):
            beyond = _beyond(bare, took), _beyond(other_bare, others_took)
            yield compared(name, OTHER_CHECKOUT, "ms", *beyond)
        return
    for name, took in zip(wanted, own, strict=True):
        yield alone(name, "ms", _beyond(bare, took), IMPORT_MS)
    yield alone("trio, ifaddr loaded", "", [len(loaded)], at_most=0)


def _run_ms(checkout: Checkout, daemon: Running, code: str) -> float:
    begin = time.perf_counter()
    # With a timeout, subprocess would look only after 15, 31, 63 ms whether it has ended.
    subprocess.run(checkout.command("-c", code), env=daemon.environment, check=True)
    return (time.perf_counter() - begin) * 1e3


def _beyond(bare: list[float], took: list[float]) -> list[float]:
    # Two of a round can come out the wrong way round on a busy machine, and no time is negative.
    return [max(one - other, 0.001) for one, other in zip(took, bare, strict=True)]


def idle(space: Workspace, rounds: int) -> Iterator[Row]:
    """Look at a daemon at rest, alone and with connections; once, whatever *rounds* is.

    Raises Missing if this process may not have so many connections.
    """
    del rounds
    files = CONNECTIONS + SPARE_DESCRIPTORS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, files), hard))
    except (ValueError, OSError) as error:
        raise Missing(f"it needs {files:,} open files: {error}") from None
    fresh, each, wakes, writes = _at_rest(space, THIS)
    memory = "idle memory (VmRSS)"
    connection = f"an idle connection ({CONNECTIONS:,})"
    if space.other:
        other_fresh, other_each, *_ = _at_rest(space, space.other)
        yield compared(memory, OTHER_CHECKOUT, "MB", [fresh], [other_fresh])
        yield compared(connection, OTHER_CHECKOUT, "KiB", [each], [other_each])
        return
    yield alone(memory, "MB", [fresh], at_most=30)
    yield alone(connection, "KiB", [each], at_most=0.5)
    yield alone("wake-ups of the idle daemon", "", [wakes], at_most=0)
    yield alone("writes of the idle daemon", "", [writes], at_most=0)


def _at_rest(space: Workspace, checkout: Checkout) -> tuple[float, float, int, int]:
    """Return MB, KiB for a connection, wake-ups and writes."""
    limits = [
        f"--max-connections={2 * CONNECTIONS}",
        f"--max-connections-per-uid={2 * CONNECTIONS}",
    ]
    # A daemon that compiles its own modules is larger.
    with ours(space, checkout=checkout):
        pass
    with ours(space, *limits, checkout=checkout) as daemon, contextlib.ExitStack() as connections:
        _settle(daemon)
        fresh = resident_kib(daemon.pid)
        _connect(daemon.socket, connections)
        before = resident_kib(daemon.pid)
        for _ in range(CONNECTIONS):
            _connect(daemon.socket, connections)
        each = (resident_kib(daemon.pid) - before) / CONNECTIONS
        _settle(daemon)
        begin = _counts(daemon)
        time.sleep(WATCH_SECONDS)
        end = _counts(daemon)
        return fresh / 1024, each, end[0] - begin[0], end[1] - begin[1]


def _connect(path: Path, connections: contextlib.ExitStack) -> None:
    """Connect and ask once: a connection that has never asked does not count as idle."""
    sock = connections.enter_context(connected(path))
    sock.sendall(rpc.pack_request(1, "take", ["utc", 1]))
    if not sock.recv(4096):
        raise RuntimeError("the daemon closed a connection")


def _settle(daemon: Running) -> None:
    """Wait until only one thread is left."""
    end = time.monotonic() + SETTLE_SECONDS
    while time.monotonic() < end and len(os.listdir(f"/proc/{daemon.pid}/task")) > 1:
        time.sleep(0.1)


def _counts(daemon: Running) -> tuple[int, int]:
    """Return how often any thread has gone to sleep, and how often anything was written."""
    io = Path(f"/proc/{daemon.pid}/io").read_text()
    return sleeps(daemon.pid), int(io.split("syscw:")[1].split()[0])
