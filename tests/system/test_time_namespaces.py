"""A process that enters a time namespace, where CLOCK_BOOTTIME is another (time_namespaces(7))."""

from __future__ import annotations

import subprocess
import sys

from tests.rig import PATIENCE, Daemon
from tests.tools import need, need_root

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
before = boottime()
if ctypes.CDLL(None, use_errno=True).setns(fd, CLONE_NEWTIME):
    raise OSError(ctypes.get_errno(), "setns")
assert boottime() < before - 5
time.sleep(0.3)
now = time.time_ns() // 100 + 0x01B21DD213814000
print(now - client.uuid1().time)
print(time.time_ns() // 1_000_000 - (client.uuid7().int >> 80))
"""


def test_an_id_is_of_now_in_a_time_namespace_that_is_10_s_back() -> None:
    """A block from before was up to 10 s old there, for its age was told by CLOCK_BOOTTIME."""
    need_root()
    holding = [need("unshare"), "-T", "--boottime", "-10", "sh", "-c", "echo; exec cat"]
    with (
        Daemon() as daemon,
        subprocess.Popen(holding, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder,
    ):
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"\n"
        done = subprocess.run(
            [sys.executable, "-c", ENTER, daemon.socket, str(holder.pid)],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")
        ticks, milliseconds = map(int, done.stdout.split())
        assert ticks < 1_000_000
        assert milliseconds < 100
        holder.kill()


def test_a_daemon_and_its_callers_may_be_in_different_time_namespaces() -> None:
    """None of them tells the other a reading of a clock that differs there."""
    need_root()
    with Daemon() as daemon:
        command = [need("unshare"), "-T", "--boottime", "-10", sys.executable, "-c"]
        code = (
            "import sys, time; from uuidd_client import Client\n"
            "client = Client(sys.argv[1], fallback=False)\n"
            "ids = [client.uuid7() for _ in range(1000)]\n"
            "assert ids == sorted(set(ids))\n"
            "before = time.time_ns() // 1_000_000; drawn = client.uuid7().int >> 80\n"
            "print(before - drawn, time.time_ns() // 1_000_000 - drawn)"
        )
        done = subprocess.run(
            [*command, code, daemon.socket],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=True,
        )
        age_before, age_after = map(int, done.stdout.split())
        assert age_before <= 100
        assert age_after >= 0
