"""A process that enters a time namespace, where CLOCK_BOOTTIME is another (time_namespaces(7))."""

from __future__ import annotations

import sys

import pytest

from tests.rig import Daemon
from tests.tools import holding, output

SHIFTED = ("unshare", "-T", "--boottime", "-10")
"""Before a command, for a time namespace in which CLOCK_BOOTTIME is 10 s less."""

ENTER = """
import ctypes, os, sys, time
from uuidd_client import Client

CLONE_NEWTIME = 0x80
boottime = lambda: time.clock_gettime(time.CLOCK_BOOTTIME)
client = Client(sys.argv[1], fallback=False)
# So many that blocks are asked for of which some is left.
for draw in client.uuid1, client.uuid7:
    for _ in range(5000):
        draw()
fd = os.open(f"/proc/{sys.argv[2]}/ns/time_for_children", os.O_RDONLY)
# The kernel lets only a process of one thread in; the one that imports has yet to end.
while len(os.listdir("/proc/self/task")) > 1:
    time.sleep(0.001)
before = boottime()
if ctypes.CDLL(None, use_errno=True).setns(fd, CLONE_NEWTIME):
    raise OSError(ctypes.get_errno(), "setns")
assert boottime() < before - 5
time.sleep(0.3)
now = time.time_ns() // 100 + 0x01B21DD213814000
print(now - client.uuid1().time)
print(time.time_ns() // 1_000_000 - (client.uuid7().int >> 80))
"""


@pytest.mark.usefixtures("as_root")
def test_an_id_is_of_now_in_a_time_namespace_that_is_10_s_back() -> None:
    """A block from before is not used there, where its age cannot be told by CLOCK_BOOTTIME."""
    with Daemon() as daemon, holding(*SHIFTED, "sh", "-c", "echo; exec cat") as holder:
        said = output(sys.executable, "-c", ENTER, daemon.socket, holder)
        ticks, milliseconds = map(int, said.split())
        assert ticks < 1_000_000
        assert milliseconds < 100


DRAW = """
import sys, time
from uuidd_client import Client
client = Client(sys.argv[1], fallback=False)
ids = [client.uuid7() for _ in range(1000)]
assert ids == sorted(set(ids))
before = time.time_ns() // 1_000_000
drawn = client.uuid7().int >> 80
print(before - drawn, time.time_ns() // 1_000_000 - drawn)
"""


@pytest.mark.usefixtures("as_root")
def test_a_daemon_and_its_callers_may_be_in_different_time_namespaces() -> None:
    """No message contains a reading of a clock that differs there."""
    with Daemon() as daemon:
        said = output(*SHIFTED, sys.executable, "-c", DRAW, daemon.socket)
        age_before, age_after = map(int, said.split())
        assert age_before <= 100
        assert age_after >= 0
