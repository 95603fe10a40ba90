"""Faults of the disk under a daemon in use: nothing comes twice, utc goes on, and all heals."""

from __future__ import annotations

import contextlib
import json
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.client.fakes import UUIDCTL
from tests.rig import SOON, Daemon, until
from tests.system.callers import Callers
from tests.system.fake_time import FakeTime
from tests.system.holders import assert_sound, holders, leases
from tests.system.injection import injected
from tests.system.mounts import Mounts, fill, private_mounts
from tests.tools import need, output, run
from uuidd_client import Client

MULTICAST = 1 << 40
"""The bit of a node that no network card's has."""

Fault = Callable[[Mounts, Daemon], contextlib.AbstractContextManager[None]]


@pytest.fixture
def mounts() -> Iterator[Mounts]:
    """Mounts in a namespace of their own."""
    with private_mounts() as mounts:
        yield mounts


def status_once(
    told: Callable[[dict[str, Any]], bool], daemon: Daemon, seconds: float
) -> dict[str, Any]:
    """Wait until the daemon's status is as *told* says; return it."""
    client = Client(daemon.socket, fallback=False, timeout=5)

    def look() -> dict[str, Any]:
        status = client.status()
        return status if told(status) else {}

    return until(look, seconds, instead=client.status)


@pytest.mark.parametrize("cuts", [4, pytest.param(20, marks=pytest.mark.thorough)])
def test_power_cuts_repeat_nothing(
    cuts: int, mounts: Mounts, fake_time: FakeTime, tmp_path: Path
) -> None:
    """What was given before a cut is not given after, though the clock begins at the same moment.

    Each time the disk loses what was not synced and the daemon is killed, while callers of every
    sort draw; they keep what they were given.
    """
    daemon = Daemon("--max-lead=7200", environment=fake_time.environment, wrap=mounts.inside)
    image = daemon.folder / "image"
    with image.open("wb") as file:
        file.truncate(8 << 20)
    output(need("mkfs.ext4"), "-q", "-F", image)
    mount = ["mount", "-o", "loop", str(image), str(daemon.state)]
    mounts.run(*mount)
    at = time.time() + 60
    fake_time.set(at - 1 - time.time())
    try:
        with daemon:
            callers = Callers(daemon, ahead=lambda: 120)
            with callers.drawing():
                for cut in range(cuts):
                    # The same moment again: nothing keeps one from the other but the saved marks.
                    fake_time.set(at - time.time())
                    callers.more(5)
                    mounts.cut_power(daemon.state)
                    if cut % 2:
                        # What is given between the cut and the end counts as well.
                        callers.more(1)
                    with callers.down():
                        daemon.kill()
                        mounts.run("umount", str(daemon.state))
                        mounts.run(*mount)
                        fake_time.set(at - 1 - time.time())
                        daemon.start()
                callers.more()
            callers.hang_up()
            assert daemon.stop() == 0
    finally:
        fake_time.forget(re.findall(r" pid=(\d+) ", "\n".join(daemon.lines)))
    callers.assert_sound()
    # On a slow machine a daemon may come to its horizon between the cut and its end.
    assert all("could not be saved" in refused for refused in callers.refused)
    nodes = {re.findall(r" node=(\w+)", line)[0] for line in daemon.lines if "started:" in line}
    assert len(nodes) == 1
    assert not [line for line in daemon.lines if "unusable" in line]


@contextlib.contextmanager
def full(mounts: Mounts, daemon: Daemon) -> Iterator[None]:
    """Fill the disk, and make room again at the end."""
    path = fill(mounts.path(daemon.state))
    yield
    path.unlink()


@contextlib.contextmanager
def failing(mounts: Mounts, daemon: Daemon) -> Iterator[None]:
    """Let each sync of the daemon's fail."""
    with injected(daemon.process.pid, "error=EIO"):
        yield


@contextlib.contextmanager
def read_only(mounts: Mounts, daemon: Daemon) -> Iterator[None]:
    """Let the daemon open no file, as where the kernel has made the disk read-only after an error.

    To remount it so would not do: the open lock keeps its mount from that, and the daemon works
    below a mount that is put over its folder.
    """
    with injected(daemon.process.pid, "error=EROFS", calls="openat"):
        yield


FAULTS: dict[str, tuple[Fault, str]] = {
    "full": (full, "No space left on device"),
    "failing": (failing, "Input/output error"),
    "read-only": (read_only, "Read-only file system"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_disk_that_fails_stops_no_caller_and_heals(
    mounts: Mounts, name: str, tmp_path: Path
) -> None:
    """Ids of utc go on under another node, steady says why not, and after it all is as before.

    No id comes twice over the whole time, and no call takes much more than the 0.8 s for which a
    save is waited for. Clients with leases use them up to the horizon, and lease again after it.
    """
    fault, cause = FAULTS[name]
    daemon = Daemon(wrap=mounts.inside)
    mounts.run("mount", "-t", "tmpfs", "-o", "mode=0755,size=64k", "none", str(daemon.state))
    with daemon:
        callers = Callers(daemon)
        callers.draw(5)
        (stored,) = callers.nodes
        held = leases(daemon)["out"]
        with holders(daemon, tmp_path, 3) as drawing, callers.drawing():
            with fault(mounts, daemon):
                status = status_once(lambda status: status["volatile"], daemon, 10)
                assert status["saves"]["failing"]
                assert status["saves"]["trouble"] == cause
                assert status["node"] == f"0x{stored:012x}"
                assert status["utc"]["node"] != status["node"]
                assert int(status["utc"]["node"], 16) & MULTICAST
                callers.more(1)
                assert by_uuidctl(daemon)["saves"]["trouble"] == cause
                for holder in drawing:
                    # There are no v7 from a volatile node.
                    holder.until_unsafe()
            status_once(lambda status: not status["volatile"], daemon, 10)
            status_once(lambda status: not status["saves"]["failing"], daemon, 10)
            refused = callers.refused_so_far()
            callers.more(3)
            assert len(callers.refused) == refused
            for holder in drawing:
                holder.until_safe()
            until(lambda: leases(daemon)["out"] >= held + 3)
            for holder in drawing:
                holder.more()
        with daemon.connect() as connection:
            assert int.from_bytes(connection.call("take", "utc", 1)["node"], "big") == stored
            assert connection.call("take", "steady", 1)["count"] == 1
        callers.hang_up()
        assert daemon.stop() == 0
    callers.assert_sound()
    assert len(callers.nodes) == 2
    drawn = [holder.drawn() for holder in drawing]
    assert_sound(drawn)
    assert all(each.safe for some in drawn for each in some if each.is_v1)
    assert not [refused for caller in callers.of_utc for refused in caller.refused]
    assert all(caller.refused for caller in callers.of_steady)
    assert not [
        refused
        for refused in callers.refused
        if not refused.startswith("unavailable: ") or f"({cause})" not in refused
    ]
    assert callers.slowest < SOON
    log = "\n".join(daemon.lines)
    assert f"ERROR: the state cannot be saved; uuidd keeps trying: {cause}" in log
    assert f"a volatile node (no save within 0.8 s ({cause}))" in log
    assert "the state is saved again, after " in log
    assert "so v1 and v6 come from the stored node again" in log


@pytest.mark.parametrize("used", [True, False], ids=["after a crash", "for the first time"])
def test_a_start_on_a_full_disk_serves_and_heals(mounts: Mounts, used: bool) -> None:
    """As on a disk that fills later: v1 and v6 under a volatile node, and steady says why not."""
    cause = "No space left on device"
    daemon = Daemon(wrap=mounts.inside)
    state = mounts.path(daemon.state)
    mounts.run("mount", "-t", "tmpfs", "-o", "mode=0755,size=64k", "none", str(daemon.state))
    with daemon:
        callers = Callers(daemon)
        callers.draw(2)
        before = set(callers.nodes)
        daemon.kill()
        callers.hang_up()
        if not used:
            for path in state.iterdir():
                path.unlink()
        filler = fill(state)
        daemon.lines.clear()
        daemon.start()
        status = status_once(lambda status: status["saves"]["failing"], daemon, 10)
        assert (status["saves"]["done"], status["saves"]["trouble"]) == (0, cause)
        callers.draw(2)
        (volatile,) = callers.nodes - before
        assert status_once(lambda status: status["volatile"], daemon, 10)["utc"]["node"] == (
            f"0x{volatile:012x}"
        )
        refused = [words for caller in callers.of_steady for words in caller.refused]
        assert refused == callers.refused
        assert all(cause in words for words in refused)
        assert len(refused) == 2 * len(callers.of_steady)
        filler.unlink()
        status = status_once(
            lambda status: not (status["volatile"] or status["saves"]["failing"]), daemon, 10
        )
        assert (int(status["node"], 16) in before) == used
        callers.hang_up()
        callers.draw(2)
        callers.hang_up()
        assert daemon.stop() == 0
    callers.assert_sound()
    assert callers.refused == refused
    start = f"starting, although the state cannot be saved in {daemon.state}: {cause}; make room"
    assert [line for line in daemon.lines if start in line]


def by_uuidctl(daemon: Daemon) -> dict[str, Any]:
    """Return the status that the command tells."""
    told = run(*UUIDCTL, f"--socket={daemon.socket}", "status", "--json").stdout
    status: dict[str, Any] = json.loads(told)
    return status


@pytest.mark.parametrize("seconds", [3.0, pytest.param(15.0, marks=pytest.mark.thorough)])
def test_a_sync_that_hangs_delays_no_caller(seconds: float, mounts: Mounts) -> None:
    """Calls take about a second at most: utc volatile, steady refused; and it heals by itself."""
    with Daemon(wrap=mounts.inside) as daemon:
        callers = Callers(daemon)
        callers.draw(5)
        (stored,) = callers.nodes
        begun = time.monotonic()
        with (
            injected(daemon.process.pid, f"delay_enter={seconds * 1e6:.0f}:when=1"),
            callers.drawing(),
        ):
            status = status_once(lambda status: status["volatile"], daemon, 10)
            assert status["saves"]["under_way_seconds"] > 0.5
            callers.more()
            status = status_once(lambda status: not status["volatile"], daemon, seconds + 10)
            took = time.monotonic() - begun
            refused = callers.refused_so_far()
            callers.more(3)
            assert len(callers.refused) == refused
        callers.hang_up()
        assert int.from_bytes(daemon.call("take", "utc", 1)["node"], "big") == stored
        assert daemon.stop() == 0
    callers.assert_sound()
    assert took > seconds - 1
    assert status["saves"]["failed"] == 0
    assert not [refused for caller in callers.of_utc for refused in caller.refused]
    assert all(caller.refused for caller in callers.of_steady)
    assert all("could not be saved" in refused for refused in callers.refused)
    assert callers.slowest < SOON
