"""Faults of the disk under a daemon in use: nothing comes twice, and all heals (P1 and P10)."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.rig import SOON, Daemon, until
from tests.system.callers import OF_STEADY, OF_UTC, Callers, given_in, under_load
from tests.system.fake_time import FakeTime
from tests.system.holders import leases
from tests.system.injection import injected
from tests.system.mounts import Mounts, fill, private_mounts
from tests.tools import need, output

MULTICAST = 1 << 40
"""The bit of a node that no network card's has."""

FULL = "No space left on device"


@pytest.fixture
def mounts() -> Iterator[Mounts]:
    with private_mounts() as mounts:
        yield mounts


@pytest.fixture
def small(mounts: Mounts) -> Iterator[Daemon]:
    """A daemon whose state is on a small disk of its own."""
    daemon = Daemon(wrap=mounts.inside)
    mounts.run("mount", "-t", "tmpfs", "-o", "mode=0755,size=64k", "none", str(daemon.state))
    with daemon:
        yield daemon


def status_once(
    told: Callable[[dict[str, Any]], bool], daemon: Daemon, seconds: float = 10
) -> dict[str, Any]:
    def look() -> dict[str, Any]:
        status: dict[str, Any] = daemon.call("status")
        return status if told(status) else {}

    return until(look, seconds, instead=lambda: daemon.call("status"))


def is_healed(status: dict[str, Any]) -> bool:
    return not status["volatile"] and not status["saves"]["failing"]


@pytest.mark.parametrize("cuts", [4, pytest.param(20, marks=pytest.mark.thorough)])
def test_power_cuts_repeat_nothing(cuts: int, mounts: Mounts, fake_time: FakeTime) -> None:
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
    callers.assert_sound()
    # On a slow machine a daemon may come to its horizon between the cut and its end.
    assert all("could not be saved" in refused for refused in callers.refused)
    nodes = {re.findall(r" node=(\w+)", line)[0] for line in daemon.lines if "started:" in line}
    assert len(nodes) == 1
    assert not [line for line in daemon.lines if "unusable" in line]


@contextlib.contextmanager
def full(mounts: Mounts, daemon: Daemon) -> Iterator[None]:
    path = fill(mounts.path(daemon.state))
    yield
    path.unlink()


def failing(fault: str, calls: str, mounts: Mounts, daemon: Daemon) -> AbstractContextManager[None]:
    return injected(daemon.pid, fault, calls=calls)


SYNCS = "fsync,fdatasync"

FAULTS: dict[str, tuple[Callable[[Mounts, Daemon], AbstractContextManager[None]], str]] = {
    "full": (full, FULL),
    "failing": (partial(failing, "error=EIO", SYNCS), "Input/output error"),
    # As the kernel makes a disk after an error. To remount it so would not do: the open lock keeps
    # its mount from that.
    "read-only": (partial(failing, "error=EROFS", "openat"), "Read-only file system"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_disk_that_fails_stops_no_caller_and_heals(
    small: Daemon, mounts: Mounts, name: str, tmp_path: Path
) -> None:
    """Ids of utc go on under another node, steady says why not, and after it all is as before.

    No id comes twice over the whole time, and no call takes much more than the 0.8 s for which a
    save is waited for. Clients with leases use them up to the horizon, and lease again after it.
    """
    fault, cause = FAULTS[name]
    callers = Callers(small)
    callers.draw(5)
    (stored,) = callers.nodes
    held = leases(small)["out"]
    with under_load(small, tmp_path, 3, callers=callers) as (_, drawing):
        with fault(mounts, small):
            status = status_once(lambda status: status["volatile"], small)
            assert (status["saves"]["failing"], status["saves"]["trouble"]) == (True, cause)
            assert status["node"] == f"0x{stored:012x}"
            assert status["utc"]["node"] != status["node"]
            assert int(status["utc"]["node"], 16) & MULTICAST
            callers.more(1)
            for holder in drawing:
                # There are no v7 from a volatile node.
                holder.until_unsafe()
        status_once(is_healed, small)
        callers.assert_nothing_is_refused()
        for holder in drawing:
            holder.until_safe()
        until(lambda: leases(small)["out"] >= held + 3)
        for holder in drawing:
            holder.more()
    assert given_in(small.call("take", "utc", 1)).place[0] == stored
    assert small.stop() == 0
    assert len(callers.nodes) == 2
    assert all(each.safe for holder in drawing for each in holder.drawn() if each.is_v1)
    assert callers.refused_to.keys() == set(OF_STEADY)
    for refused in callers.refused:
        assert refused.startswith("unavailable: ")
        assert f"({cause})" in refused
    assert callers.slowest < SOON
    log = "\n".join(small.lines)
    assert f"ERROR: the state cannot be saved; uuidd keeps trying: {cause}" in log
    assert f"a volatile node (no save within 0.8 s ({cause}))" in log
    assert "the state is saved again, after " in log
    assert "so v1 and v6 come from the stored node again" in log


@pytest.mark.parametrize("used", [True, False], ids=["after a crash", "for the first time"])
def test_a_start_on_a_full_disk_serves_and_heals(small: Daemon, mounts: Mounts, used: bool) -> None:
    callers = Callers(small)
    callers.draw(2)
    before = set(callers.nodes)
    small.kill()
    callers.hang_up()
    state = mounts.path(small.state)
    if not used:
        for path in state.iterdir():
            path.unlink()
    filler = fill(state)
    small.start()
    status = status_once(lambda status: status["saves"]["failing"], small)
    assert (status["saves"]["done"], status["saves"]["trouble"]) == (0, FULL)
    callers.draw(2)
    (volatile,) = callers.nodes - before
    status = status_once(lambda status: status["volatile"], small)
    assert status["utc"]["node"] == f"0x{volatile:012x}"
    refused = callers.refused
    assert {name: len(words) for name, words in callers.refused_to.items()} == dict.fromkeys(
        OF_STEADY, 2
    )
    assert all(FULL in words for words in refused)
    filler.unlink()
    status = status_once(is_healed, small)
    assert (int(status["node"], 16) in before) == used
    callers.hang_up()
    callers.draw(2)
    callers.hang_up()
    assert small.stop() == 0
    callers.assert_sound()
    assert callers.refused == refused
    start = f"starting, although the state cannot be saved in {small.state}: {FULL}; make room"
    assert [line for line in small.lines if start in line]


@pytest.mark.parametrize("seconds", [3.0, pytest.param(15.0, marks=pytest.mark.thorough)])
def test_a_sync_that_hangs_delays_no_caller(seconds: float, mounts: Mounts) -> None:
    """Calls take about a second at most: utc volatile, steady refused; and it heals by itself."""
    with Daemon(wrap=mounts.inside) as daemon:
        callers = Callers(daemon)
        callers.draw(5)
        (stored,) = callers.nodes
        begun = time.monotonic()
        hangs = injected(daemon.pid, f"delay_enter={seconds * 1e6:.0f}:when=1", calls=SYNCS)
        with hangs, callers.drawing():
            status = status_once(lambda status: status["volatile"], daemon)
            assert status["saves"]["under_way_seconds"] > 0.5
            callers.more()
            status = status_once(lambda status: not status["volatile"], daemon, seconds + 10)
            took = time.monotonic() - begun
            callers.assert_nothing_is_refused()
        callers.hang_up()
        assert given_in(daemon.call("take", "utc", 1)).place[0] == stored
        assert daemon.stop() == 0
    callers.assert_sound()
    assert took > seconds - 1
    assert status["saves"]["failed"] == 0
    assert not callers.refused_to.keys() & set(OF_UTC)
    assert callers.refused_to.keys() == set(OF_STEADY)
    assert all("could not be saved" in refused for refused in callers.refused)
    assert callers.slowest < SOON
