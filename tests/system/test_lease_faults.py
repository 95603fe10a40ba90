"""Faults with leases out: no id twice, none of the future, all in order, and leases after it."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.judge import assert_apart
from tests.rig import Daemon, until
from tests.system.fake_time import HOUR, FakeTime
from tests.system.holders import (
    Holder,
    all_safe,
    assert_sound,
    await_leases,
    holders,
    leases,
)
from tests.system.mounts import Mounts, private_mounts
from tests.system.test_crashes import stop
from tests.tools import output
from uuidd.core.ids import versions
from uuidd.core.timeline.generation import LANE_BITS
from uuidd.core.timeline.leases import RESERVED
from uuidd.statefile import decode

NOBODY, OTHER = 65534, 65533
"""Two users."""


@pytest.fixture
def mounts() -> Iterator[Mounts]:
    """Mounts in a namespace of their own."""
    with private_mounts() as mounts:
        yield mounts


@contextlib.contextmanager
def leasing(daemon: Daemon, uid: int, count: int) -> Iterator[list[str]]:
    """Let a user ask for leases over *count* connections; provide what was refused."""
    daemon.folder.chmod(0o755)
    with contextlib.ExitStack() as lines:
        os.seteuid(uid)
        try:
            opened = [lines.enter_context(daemon.connect()) for _ in range(count)]
        finally:
            os.seteuid(0)
        errors = [line.ask("lease")[2] for line in opened]
        yield [error for error in errors if error is not None]


@pytest.mark.usefixtures("as_root")
def test_without_a_free_lane_ids_come_from_blocks_until_there_is_one(tmp_path: Path) -> None:
    """Until others have hung up, and their lanes have rested; all ids are safe."""
    with Daemon() as daemon, contextlib.ExitStack() as others:
        for uid in (NOBODY, OTHER):
            assert not others.enter_context(leasing(daemon, uid, RESERVED // 2))
        with Holder(daemon.socket, tmp_path / "drawn") as holder:
            holder.more()
            assert leases(daemon)["refused"]["lanes"] >= 1
            others.close()
            await_leases(daemon, 1)
            holder.more()
    assert_sound([holder.drawn()])
    assert all_safe(holder.drawn())


def test_a_client_that_is_stopped_past_its_horizon_goes_on(tmp_path: Path) -> None:
    """Also when its daemon was killed meanwhile, and the next has leased its lane to another."""
    with Daemon() as daemon, holders(daemon, tmp_path, 2) as (stopped, other):
        stop(stopped.process.pid)
        daemon.kill()
        other.more()
        daemon.start()
        # Those of the other, once UTC has passed the horizon of the last daemon.
        await_leases(daemon, 1)
        with Holder(daemon.socket, tmp_path / "third") as third:
            await_leases(daemon, 2)
            os.kill(stopped.process.pid, signal.SIGCONT)
            await_leases(daemon, 3)
            for holder in (stopped, other, third):
                holder.more()
    assert_sound(holder.drawn() for holder in (stopped, other, third))


def test_while_the_daemon_is_stopped_clients_use_no_tick_past_its_saved_marks(
    tmp_path: Path,
) -> None:
    """Then they make ids themselves, not marked safe; and lease on when it goes on."""
    with Daemon() as daemon, holders(daemon, tmp_path, 3, timeout=0.2) as drawing:
        stop(daemon.pid)
        for holder in drawing:
            holder.until_unsafe()
        # A save that was under way then has not allowed anything yet.
        state = decode((daemon.state / "state").read_bytes())
        used = [each for holder in drawing for each in holder.drawn() if each.safe]
        for each in used:
            if each.is_v1:
                fields = versions.gregorian_fields(each.id)
                assert fields.node == state.node.value
                assert fields.tick < state.marks[fields.clock_seq >> LANE_BITS]
            assert each.tick < state.leases
        os.kill(daemon.pid, signal.SIGCONT)
        for holder in drawing:
            holder.until_safe()
        await_leases(daemon, 3)
    assert_sound(holder.drawn() for holder in drawing)


@pytest.mark.parametrize("offset", [-0.001, -0.02, -HOUR, HOUR])
def test_steps_of_utc_with_leases_out(
    offset: float, daemon: Daemon, fake_time: FakeTime, tmp_path: Path
) -> None:
    """There and back: after a step back clients draw from blocks until UTC is where it was."""
    with holders(daemon, tmp_path, 3, environment=fake_time.environment) as drawing:
        for step in (offset, 0):
            fake_time.set(step)
            for holder in drawing:
                holder.more()
        if offset < -0.01:
            told = "uuidd: INFO: 3 leases ended, because UTC was set back"
            until(lambda: told in daemon.lines)
        if offset == HOUR:
            assert leases(daemon)["held_for"] > HOUR - 60
            fake_time.set(HOUR + 60)
        await_leases(daemon, 3)
        for holder in drawing:
            holder.more()
    drawn = [holder.drawn() for holder in drawing]
    assert_sound(drawn, utc_set_back=True)
    assert all(map(all_safe, drawn))


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


def test_where_only_the_socket_is_mounted_there_are_leases(mounts: Mounts) -> None:
    """As in a container, whose /run is its own: the page comes over the socket."""
    with Daemon() as daemon:
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
    """Another one goes on all along, and no place comes twice."""
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


@pytest.mark.parametrize("children", [60, pytest.param(600, marks=pytest.mark.thorough)])
def test_forks_of_a_client_with_leases_lease_for_themselves(children: int, tmp_path: Path) -> None:
    """No place comes twice of the parent, which draws on, and of its children.

    No connection of theirs stays.
    """
    with Daemon() as daemon, daemon.connect() as connection:
        before = connection.call("status")["connections"]
        with Holder(daemon.socket, tmp_path / "forks", children=children) as forks:
            # A user has 120 lanes, which rest after a lease: later children may draw from blocks.
            until(lambda: leases(daemon)["granted"] >= 1 + min(children, 100))
        until(lambda: leases(daemon)["out"] == 0)
        until(lambda: connection.call("status")["connections"] == before)
        assert connection.call("status")["connections_highest"] > before + 1
    drawn = forks.drawn()
    # Those of all the processes are mixed in the file.
    assert_apart(each.span for each in drawn)
    assert all(each.tick <= each.at for each in drawn)
    assert all_safe(drawn)
