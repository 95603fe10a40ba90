"""The daemon runs short of descriptors, of memory or of ticks: nothing is given twice (P1, P5)."""

from __future__ import annotations

import contextlib
import os
import resource
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import msgpack

from tests.judge import Span, assert_apart
from tests.rig import PATIENCE, SOON, Connection, Daemon, until
from tests.system.attacker import connected
from tests.system.callers import given_in

DESCRIPTORS = 224
"""Of which the daemon keeps 96 for itself, so that 128 are left for connections."""

ROOM = 1 << 20
"""Bytes of memory that it may have beside those that it has when it has served a little."""


def takes(connection: Connection, seconds: float) -> Iterator[tuple[Span, float]]:
    """Take of both timelines for *seconds*; yield each block, and how long it took."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for timeline in ("utc", "steady"):
            begun = time.monotonic()
            block = connection.call("take", timeline, 100)
            yield given_in(block), time.monotonic() - begun


@contextlib.contextmanager
def silent(daemon: Daemon, count: int) -> Iterator[None]:
    """Keep *count* connections open that say nothing."""
    with contextlib.ExitStack() as stack:
        for _ in range(count):
            stack.enter_context(connected(daemon.socket))
        yield


def open_descriptors(daemon: Daemon) -> int:
    """Return how many descriptors the daemon has open, when it does not save.

    The fewest of many readings: a save has two of its own for a moment.
    """
    readings = []
    end = time.monotonic() + 0.2
    while time.monotonic() < end:
        readings.append(len(os.listdir(f"/proc/{daemon.process.pid}/fd")))
    return min(readings)


def may_open(daemon: Daemon, most: int) -> None:
    """Let the daemon have *most* descriptors open."""
    _, hard = resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE, (most, hard))


def test_connections_beyond_the_limit_leave_descriptors_for_saves() -> None:
    """Among 400 silent connections, where 128 fit, an open connection is served on, and soon.

    The state is saved meanwhile, the log tells of it in a few lines, and after it others can
    connect.
    """

    def with_few(*command: str) -> list[str]:
        return ["prlimit", f"--nofile={DESCRIPTORS}:{DESCRIPTORS}", *command]

    with Daemon(wrap=with_few) as daemon, daemon.connect() as connection:
        connection.call("take", "utc", 1)
        with silent(daemon, 400):
            # For longer than was saved at the start, and than a request waits for a save.
            found = list(takes(connection, 2.5))
            status = connection.call("status")
        assert status["connections"] == DESCRIPTORS - 96
        assert status["connections_rejected"] > 0
        assert (status["volatile"], status["saves"]["failed"]) == (False, 0)
        assert max(seconds for _, seconds in found) < SOON
        until(lambda: bool(connection.call("status")["connections"] == 1))
        daemon.call("take", "steady", 1)
    assert_apart(each for each, _ in found)
    assert len(daemon.lines) < 10


def test_without_a_descriptor_open_connections_are_served_on() -> None:
    """When no descriptor is left, connections go on, v1 within 5 s though nothing can be saved.

    The log says once why no connection is accepted. The first one to wait is accepted when there is
    a descriptor again; then the state is saved, and nothing was given twice.
    """
    with Daemon() as daemon, daemon.connect() as connection:
        before = [each for each, _ in takes(connection, 0.2)]
        may_open(daemon, open_descriptors(daemon))
        meanwhile = []
        with daemon.connect() as waiting:
            end = time.monotonic() + 1.5
            while time.monotonic() < end:
                begun = time.monotonic()
                block = connection.call("take", "utc", 100)
                assert time.monotonic() - begun < 5
                meanwhile.append(given_in(block))
            status = connection.call("status")
            assert status["connections"] == 1
            assert status["saves"]["trouble"] == "Too many open files"
            may_open(daemon, 1024)
            assert waiting.call("take", "utc", 1)["count"] == 1
        until(lambda: not connection.call("status")["saves"]["failing"])
        after = [each for each, _ in takes(connection, 0.2)]
        assert connection.call("status")["volatile"] is False
    assert_apart(before + meanwhile + after)
    assert len([each for each in daemon.lines if "cannot accept" in each]) == 1


def test_without_memory_the_daemon_ends_and_the_next_repeats_nothing() -> None:
    """600 connections that ask for 400,000 ids each, and read none, when 1 MB is left.

    The daemon ends within 20 s with status 1, for a service manager to start the next, which gives
    nothing again. What it says of that stays below 100 kB.
    """
    flood = msgpack.packb([0, 1, "make", ["v1", 1000]]) * 400
    with Daemon() as daemon:
        with daemon.connect() as connection:
            before = [each for each, _ in takes(connection, 0.3)]
        memory = ROOM + _virtual_bytes(daemon)
        resource.prlimit(daemon.process.pid, resource.RLIMIT_AS, (memory, memory))
        with contextlib.ExitStack() as stack:
            with contextlib.suppress(OSError):
                for _ in range(600):
                    sock = stack.enter_context(connected(daemon.socket))
                    sock.send(flood, socket.MSG_DONTWAIT)
            assert daemon.process.wait(PATIENCE) == 1
        daemon.start()
        with daemon.connect() as connection:
            after = [each for each, _ in takes(connection, 0.3)]
    assert_apart(before + after)
    assert sum(map(len, daemon.lines)) < 100_000


def _virtual_bytes(daemon: Daemon) -> int:
    pages = Path(f"/proc/{daemon.process.pid}/statm").read_text().split()[0]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def test_a_greedy_caller_keeps_no_other_of_its_user_waiting() -> None:
    """It asks for 1,000,000 ticks whole, over and over; each single take is answered soon."""
    done = threading.Event()

    def ask() -> None:
        with daemon.connect() as greedy:
            while not done.is_set():
                greedy.ask("take", "utc", 1_000_000, True)

    with Daemon() as daemon, daemon.connect() as connection:
        thread = threading.Thread(target=ask)
        thread.start()
        try:
            found = list(takes(connection, 1.0))
        finally:
            done.set()
            thread.join(PATIENCE)
    assert max(seconds for _, seconds in found) < SOON


def test_an_idle_daemon_takes_at_most_forty_megabytes() -> None:
    """A daemon without requests costs its host this much."""
    with Daemon(fresh=True) as daemon:
        assert daemon.resident_kib() < 40 * 1024
