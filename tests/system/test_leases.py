"""What becomes of a lease where a client is closed, or cannot use it."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.rig import PATIENCE, Daemon
from tests.system.holders import await_leases, holders, leases

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


def test_a_client_that_is_closed_holds_no_lease_though_its_child_has_a_copy() -> None:
    """A child that closes its copy ends nothing of its parent's."""
    with Daemon() as daemon, saying(FORKS, daemon) as process:
        assert said(process) == "a child has closed its copy"
        assert leases(daemon)["out"] == 1
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
        assert said(process) == "closed, and a child has a copy"
        await_leases(daemon, 0)


def test_a_client_that_cannot_receive_the_page_holds_no_lease(tmp_path: Path) -> None:
    """It may open no more files. The lane is for others, and blocks serve."""
    with Daemon() as daemon:
        with holders(daemon, tmp_path, 1):
            # So leases are granted by now.
            granted = leases(daemon)["granted"]
        with saying(RECEIVES_NOTHING, daemon) as process:
            assert said(process) == "done"
            assert leases(daemon)["granted"] == granted + 1
            await_leases(daemon, 0)
