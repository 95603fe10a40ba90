"""Leases of real daemons: what becomes of a holder's page when the daemon or the clock changes."""

from __future__ import annotations

import contextlib
import mmap
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from types import TracebackType

import msgpack
import pytest

from tests.rig import PATIENCE, Daemon, until
from tests.system.fake_time import FakeTime
from uuidd.core.timeline.page import HORIZON_AT, MAGIC_AT, PAGE_MAGIC, PAGE_WORDS, TOKENS_AT, Lease
from uuidd.core.wire.methods import unpack_lease


class Holder:
    """A client of *daemon* with a lease, and what it reads in the page."""

    def __init__(self, daemon: Daemon) -> None:
        self.connection = daemon.connect()
        lease = until(self._granted)
        assert lease is not None
        self.lease = lease

    def _granted(self) -> Lease | None:
        sock = self.connection.sock
        sock.sendall(msgpack.packb([0, 1, "lease", []]))
        data, passed, _, _ = socket.recv_fds(sock, 65536, 4)
        _, _, error, result = msgpack.unpackb(data)
        if error is not None:
            assert error.startswith("no_lease: ")
            # The page comes with the first reply, whatever that is.
            for descriptor in passed:
                os.close(descriptor)
            return None
        [descriptor] = passed
        self._memory = mmap.mmap(descriptor, PAGE_WORDS * 8, prot=mmap.PROT_READ)
        os.close(descriptor)
        self._words = memoryview(self._memory).cast("Q")
        return unpack_lease(result)

    def __enter__(self) -> Holder:
        assert self._words[MAGIC_AT] == PAGE_MAGIC
        assert self.holds
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.connection.sock.close()
        self._words.release()
        self._memory.close()

    @property
    def holds(self) -> bool:
        """Whether the page has its token."""
        return self._words[TOKENS_AT + self.lease.lane] == self.lease.token

    @property
    def horizon(self) -> int:
        """The horizon in the page."""
        return self._words[HORIZON_AT]


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGKILL])
def test_holders_go_on_while_the_daemon_is_restarted(
    daemon: Daemon, ending: signal.Signals
) -> None:
    """Up to the horizon that they can see; all that the next daemon leases begins there."""
    with Holder(daemon) as holder:
        if ending == signal.SIGTERM:
            assert daemon.stop() == 0
        else:
            daemon.kill()
        daemon.start()
        with Holder(daemon) as next_one:
            assert holder.holds
            assert next_one.lease.begin >= holder.horizon


def test_a_step_back_ends_leases_and_is_told(daemon: Daemon, fake_time: FakeTime) -> None:
    """With the first request after it, in which the daemon reads the clock."""
    with Holder(daemon) as one, Holder(daemon) as other, daemon.connect() as third:
        fake_time.set(-60)
        third.call("take", "utc", 1)
        assert not one.holds
        assert not other.holds
        status = third.call("status")["leases"]
        assert (status["out"], status["granted"], status["revoked"]) == (0, 2, 2)
        assert 59 < status["held_for"] < 80
        told = until(lambda: [line for line in daemon.lines if "leases ended" in line])
        assert told == ["uuidd: INFO: 2 leases ended, because UTC was set back"]


def test_a_process_that_is_killed_holds_no_lease(daemon: Daemon) -> None:
    """The daemon sees the end of its connection."""
    with Holder(daemon) as holder:
        holder.connection.sock.close()
        until(lambda: not holder.holds)


SAYS = """
import os, resource, sys
from uuidd_client import Client

def say(words):
    print(words, flush=True)
    sys.stdin.readline()

# What the client needs is imported now: it may not open a file later.
Client(socket="/nowhere").uuid1()
client = Client(socket=sys.argv[1])
"""
"""A program that says how far it is, and then goes on when it is told to."""

FORKS = """
while not client.stats().leased:
    client.uuid1()
read, write = os.pipe()
child = os.fork()
if not child:
    client.close()
    os._exit(0)
os.waitpid(child, 0)
say("a child has closed its copy")
if not os.fork():
    os.close(write)
    os.read(read, 1)
    os._exit(0)
client.close()
say("closed, and a child has a copy")
"""

RECEIVES_NOTHING = """
free = os.dup(0)
os.close(free)
_, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (free + 1, hard))
for _ in range(1000):
    assert client.uuid1().is_safe.value == 0
assert not client.stats().leased
say("done")
"""


@contextlib.contextmanager
def saying(program: str, daemon: Daemon) -> Iterator[subprocess.Popen[str]]:
    """Start a program that is a client of *daemon*; it goes on to its end at the context's end."""
    with subprocess.Popen(
        [sys.executable, "-c", SAYS + program, str(daemon.socket)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield process
        process.communicate("", timeout=PATIENCE)
        assert process.returncode == 0


def said(process: subprocess.Popen[str]) -> str:
    """Return the next thing that a program says."""
    assert process.stdout is not None
    return process.stdout.readline().rstrip()


def out(daemon: Daemon) -> int:
    """Return how many leases are held."""
    held: int = daemon.call("status")["leases"]["out"]
    return held


def test_a_client_that_is_closed_holds_no_lease_though_its_child_has_a_copy(daemon: Daemon) -> None:
    """A child that closes its copy ends nothing of its parent's."""
    with saying(FORKS, daemon) as process:
        assert said(process) == "a child has closed its copy"
        assert out(daemon) == 1
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
        assert said(process) == "closed, and a child has a copy"
        until(lambda: out(daemon) == 0)


def test_a_client_that_cannot_receive_the_page_holds_no_lease(daemon: Daemon) -> None:
    """It may open no more files. The lane is for others, and blocks serve."""
    with Holder(daemon):
        # So leases are granted by now.
        pass
    with saying(RECEIVES_NOTHING, daemon) as process:
        assert said(process) == "done"
        assert daemon.call("status")["leases"]["granted"] == 2
        until(lambda: out(daemon) == 0)
