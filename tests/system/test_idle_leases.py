"""A daemon whose leases nobody draws from sleeps, and writes nothing."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

import pytest

from tests.rig import Daemon, until
from tests.system.holders import leases

USERS = (65534, 65533)

EACH = 100
"""Leases of each user."""

WATCHED = 2.0
"""Seconds for which the daemon is watched: it would save many times, having just started."""


def switches(daemon: Daemon) -> int:
    """Return how often the daemon's threads went to sleep so far, once after each wake-up."""
    return sum(
        int(path.read_text().split("\nvoluntary_ctxt_switches:")[1].split()[0])
        for path in Path(f"/proc/{daemon.pid}/task").glob("*/status")
    )


@pytest.mark.usefixtures("as_root")
def test_an_idle_daemon_sleeps_with_200_leases_out() -> None:
    """No save, and hardly a wake-up: a thread that ends is one."""
    with Daemon() as daemon, contextlib.ExitStack() as lines:
        daemon.folder.chmod(0o755)
        for uid in USERS:
            os.seteuid(uid)
            try:
                opened = [lines.enter_context(daemon.connect()) for _ in range(EACH)]
            finally:
                os.seteuid(0)
            for line in opened:
                line.call("lease")
        # Past the horizon it has nothing to do before it is asked, or told, again.
        until(lambda: leases(daemon)["horizon_in"] < 0)
        assert leases(daemon)["out"] == EACH * len(USERS)
        saved = (daemon.state / "state").stat().st_mtime_ns
        before = switches(daemon)
        time.sleep(WATCHED)
        assert switches(daemon) - before < 10
        assert (daemon.state / "state").stat().st_mtime_ns == saved
        # A request raises the horizon for all of them.
        daemon.call("take", "utc", 1)
        until(lambda: leases(daemon)["horizon_in"] > 0)
