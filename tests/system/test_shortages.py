"""The daemon runs short of descriptors or of memory: nothing is given twice (P1, P5)."""

from __future__ import annotations

import contextlib
import os
import resource
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import msgpack

from tests.judge import Span, assert_apart
from tests.rig import PATIENCE, SOON, Connection, Daemon, connected, resident_kib, until
from tests.system.callers import given_in

DESCRIPTORS = 224
"""Of which the daemon keeps 96 for itself, so that 128 are left for connections."""

ROOM = 1 << 20
"""Bytes of memory that it may have beside those that it has when it has served a little."""


def takes(connection: Connection, seconds: float) -> Iterator[Span]:
    """Take of both timelines for *seconds*; yield each block. Each comes soon."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for timeline in ("utc", "steady"):
            begun = time.monotonic()
            block = connection.call("take", timeline, 100)
            assert time.monotonic() - begun < SOON
            yield given_in(block)


def test_connections_beyond_the_limit_leave_descriptors_for_saves() -> None:
    """Among 400 silent connections, where 128 fit, an open connection is served on, and soon.

    The state is saved meanwhile, the log tells of it in a few lines, and after it others can
    connect.
    """

    def with_few(*command: str) -> list[str]:
        return ["prlimit", f"--nofile={DESCRIPTORS}:{DESCRIPTORS}", *command]

    with Daemon(wrap=with_few) as daemon, daemon.connect() as connection:
        connection.call("take", "utc", 1)
        with contextlib.ExitStack() as silent:
            for _ in range(400):
                silent.enter_context(connected(daemon.socket))
            # For longer than was saved at the start, and than a request waits for a save.
            found = list(takes(connection, 2.5))
            status = connection.call("status")
        assert status["connections"] == DESCRIPTORS - 96
        assert status["requests"]["rpc"]["refused"]["made_room"] > 0
        assert (status["volatile"], status["saves"]["failed"]) == (False, 0)
        until(lambda: bool(connection.call("status")["connections"] == 1))
        daemon.call("take", "steady", 1)
    assert_apart(found)
    assert len(daemon.lines) < 10


def test_without_memory_the_daemon_ends_and_the_next_repeats_nothing() -> None:
    """600 connections that ask for 400,000 ids each, and read none, when 1 MB is left.

    The daemon ends within 20 s with status 1, for a service manager to start the next, which gives
    nothing again. What it says of that stays below 100 kB.
    """
    flood = msgpack.packb([0, 1, "make", ["v1", 1000]]) * 400
    with Daemon() as daemon:
        with daemon.connect() as connection:
            before = list(takes(connection, 0.3))
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
            after = list(takes(connection, 0.3))
    assert_apart(before + after)
    assert sum(map(len, daemon.lines)) < 100_000


def _virtual_bytes(daemon: Daemon) -> int:
    pages = Path(f"/proc/{daemon.process.pid}/statm").read_text().split()[0]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def test_an_idle_daemon_takes_at_most_forty_megabytes() -> None:
    with Daemon(fresh=True) as daemon:
        assert resident_kib(daemon.pid) < 40 * 1024
