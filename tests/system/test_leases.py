"""What becomes of leases: where lanes are few, where clients end or fork, and where none draws."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.rig import Connection, Daemon, until
from tests.system.drawer import Drawer
from tests.system.holders import Holder, all_safe, assert_sound, await_leases, holders, leases
from tests.system.mounts import private_mounts
from tests.tools import output
from uuidd.core.timeline.leases import RESERVED

USERS = (65534, 65533)


@contextlib.contextmanager
def connected(daemon: Daemon, each: int) -> Iterator[list[Connection]]:
    daemon.folder.chmod(0o755)
    opened = []
    with contextlib.ExitStack() as lines:
        for uid in USERS:
            os.seteuid(uid)
            try:
                opened += [lines.enter_context(daemon.connect()) for _ in range(each)]
            finally:
                os.seteuid(0)
        yield opened


@pytest.mark.usefixtures("as_root")
def test_without_a_free_lane_ids_come_from_blocks_until_there_is_one(tmp_path: Path) -> None:
    with Daemon() as daemon, contextlib.ExitStack() as others:
        for line in others.enter_context(connected(daemon, RESERVED // 2)):
            line.call("lease")
        with Holder(daemon.socket, tmp_path / "drawn") as holder:
            holder.more()
            assert leases(daemon)["refused"]["lanes"] >= 1
            others.close()
            await_leases(daemon, 1)
            holder.more()
    assert_sound([holder.drawn()])
    assert all_safe(holder.drawn())


@pytest.mark.usefixtures("as_root")
def test_an_idle_daemon_sleeps_with_200_leases_out() -> None:
    """It wakes nobody and wears no disk (P11)."""
    with Daemon() as daemon, connected(daemon, 100) as opened:
        for line in opened:
            line.call("lease")
        # Past the horizon it has nothing to do before it is asked, or told, again.
        until(lambda: leases(daemon)["horizon_in"] < 0)
        assert leases(daemon)["out"] == 200
        assert daemon.rests()
        # A request raises the horizon for all of them.
        daemon.call("take", "utc", 1)
        until(lambda: leases(daemon)["horizon_in"] > 0)


DRAW = """
import sys, time, uuid
from uuidd_client import Client

client = Client(sys.argv[1], fallback=False, timeout=20)
for _ in range(20):
    for id in (client.uuid1(), client.uuid7()):
        print(id, id.is_safe is uuid.SafeUUID.safe)
    time.sleep(0.02)
print(client.status()["leases"]["out"])
"""


def test_where_only_the_socket_is_mounted_there_are_leases() -> None:
    """As in a container, whose /run is its own: the page comes over the socket."""
    with private_mounts() as mounts, Daemon() as daemon:
        mounts.run("mount", "-t", "tmpfs", "none", "/run")
        mounts.run("touch", "/run/request")
        mounts.run("mount", "--bind", str(daemon.socket), "/run/request")
        mounts.run("mount", "-t", "tmpfs", "none", "/dev/shm")
        inside = mounts.inside(sys.executable, "-c", DRAW, "/run/request")
        *drawn, out = output(*inside).splitlines()
        assert out == "1"
        assert len(set(drawn)) == 40
        assert all(line.endswith(" True") for line in drawn)


@pytest.mark.parametrize("rounds", [2, pytest.param(40, marks=pytest.mark.thorough)])
def test_clients_that_are_killed_as_they_draw_leave_their_lanes_to_others(
    rounds: int, tmp_path: Path
) -> None:
    drawn = []
    with Daemon() as daemon, holders(daemon, tmp_path, 1) as (steady,):
        for round in range(rounds):
            with contextlib.ExitStack() as running:
                some = [
                    running.enter_context(Holder(daemon.socket, tmp_path / f"{round}-{number}"))
                    for number in range(16)
                ]
                for number, holder in enumerate(some):
                    holder.more(10 * number)
                    holder.process.kill()
                    # As it would be at the end of the context, which expects a good one.
                    assert holder.process.wait() == -signal.SIGKILL
                    holder.process.returncode = 0
            drawn += [holder.drawn() for holder in some]
        await_leases(daemon, 1)
        steady.more()
    assert_sound([*drawn, steady.drawn()])
    assert len({each.span.place for some in drawn for each in some if not each.is_v1}) >= 16


def test_a_client_that_is_closed_holds_no_lease_though_its_child_has_a_copy() -> None:
    """A child that closes its copy ends nothing of its parent's."""
    with Daemon() as daemon, Drawer(daemon) as drawer:
        drawer.draw_from_a_lease(daemon, 0)
        assert drawer.says("close_in_a_child") == "closed there"
        assert leases(daemon)["out"] == 1
        assert drawer.says("keep_a_child") == "kept"
        assert drawer.says("close") == "closed"
        await_leases(daemon, 0)


def test_a_client_that_cannot_receive_the_page_holds_no_lease(tmp_path: Path) -> None:
    """It may open no more files. The lane is for others, and blocks serve."""
    with Daemon() as daemon:
        with holders(daemon, tmp_path, 1):
            # So leases are granted by now.
            granted = leases(daemon)["granted"]
        with Drawer(daemon) as drawer:
            assert drawer.says("take_descriptors") == "leased: False"
            assert leases(daemon)["granted"] == granted + 1
            await_leases(daemon, 0)
