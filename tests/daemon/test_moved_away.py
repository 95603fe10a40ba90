"""A state folder that was moved away from its path: another daemon may begin there."""

from __future__ import annotations

import logging
import select
import shutil
import sys
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from tests.daemon.fakes import Inside, MustPause
from tests.daemon.test_statefile import NEXT, STATE
from tests.daemon.test_store import opened
from tests.tools import output, with_own_mounts
from uuidd.clock import Clock
from uuidd.core.wire.methods import RefusedError
from uuidd.server import startup
from uuidd.server.saver import CHECK_SECONDS
from uuidd.server.settings import Settings
from uuidd.statefile import decode
from uuidd.store import FolderStore

pytestmark = pytest.mark.usefixtures("autojump_clock")

GONE = "the state folder is no longer at /state"


@pytest.fixture
async def inside(autojump_clock: MockClock) -> AsyncIterator[Inside]:
    """A daemon's inside, just started, whose saver runs."""
    inside = Inside(worker=5)
    async with inside.saving():
        yield inside


def moved(folder: Path) -> Path:
    """Move *folder* away, and put an empty one in its place; give where it is now."""
    away = folder.with_name("away")
    folder.rename(away)
    folder.mkdir()
    return away


def deleted(folder: Path) -> None:
    shutil.rmtree(folder)


def moved_with_its_parent(folder: Path) -> None:
    folder.parent.rename(folder.parent.with_name("parent-away"))


def led_elsewhere(folder: Path) -> None:
    """Let the link on the way to *folder* lead to another one."""
    link = folder.parent
    other = link.with_name("other")
    (other / folder.name).mkdir(parents=True)
    link.unlink()
    link.symlink_to(other)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder, below a link."""
    (tmp_path / "real" / "state").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    return tmp_path / "link" / "state"


def test_a_folder_at_its_path_has_not_moved_away(folder: Path) -> None:
    with opened(folder) as store:
        assert store.moved_away() == ""
        away = folder.with_name("away")
        folder.rename(away)
        assert store.moved_away() != ""
        away.rename(folder)
        assert store.moved_away() == ""


@pytest.mark.parametrize("happens", [moved, deleted, moved_with_its_parent, led_elsewhere])
def test_a_save_is_refused_once_the_path_leads_elsewhere(
    folder: Path, happens: Callable[[Path], object]
) -> None:
    with opened(folder) as store:
        store.save(STATE)
        happens(folder if happens is not moved_with_its_parent else folder.resolve())
        with pytest.raises(OSError, match="no longer at") as refused:
            store.save(NEXT)
        assert str(refused.value) == store.moved_away()
        assert store.moved_away() == (
            f"the state folder is no longer at {folder}; move it back, or restart uuidd"
        )
        assert not folder.exists() or list(folder.iterdir()) == []


@pytest.mark.process
def test_a_folder_below_a_mount_has_moved_away(folder: Path, tmp_path: Path) -> None:
    """Another daemon would find the one that was mounted over it."""
    script = """
import subprocess, sys
from pathlib import Path
from uuidd.store import FolderStore
folder = Path(sys.argv[1])
store = FolderStore(folder, machine="")
subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=0755", "none", folder], check=True)
print(store.moved_away())
"""
    told = output(*with_own_mounts(sys.executable, "-c", script, folder))
    assert "is no longer at" in told


def test_a_save_goes_to_the_folder_that_is_locked(folder: Path) -> None:
    with opened(folder) as store:
        store.save(STATE)
        looked = store.moved_away
        with pytest.MonkeyPatch.context() as patched:
            # As if it were moved between the look and the write.
            patched.setattr(store, "moved_away", lambda: "")
            away = moved(folder)
            with opened(folder) as second:
                second.save(STATE)
                store.save(NEXT)
                assert second.load() == STATE
            assert decode((away / "state").read_bytes()) == NEXT
        assert looked() != ""


def test_a_state_is_loaded_from_the_folder_that_is_locked(folder: Path) -> None:
    with opened(folder) as store:
        store.save(STATE)
        away = moved(folder)
        (folder / "state").write_bytes(b"another's")
        assert store.load() == STATE
        (away / "state").write_bytes(b"damaged")
        assert store.load() is None
    assert (folder / "state").read_bytes() == b"another's"
    assert (away / "state.unusable-1").read_bytes() == b"damaged"


async def test_nothing_is_given_out_10_ms_after_the_folder_was_moved(inside: Inside) -> None:
    await inside.use(60)
    inside.take_steady()
    inside.disk.moved = GONE
    await trio.sleep(CHECK_SECONDS)
    for take in (inside.take_steady, inside.take):
        with pytest.raises(MustPause):
            take()


async def test_the_folder_is_not_looked_at_for_each_request(inside: Inside) -> None:
    for _ in range(100):
        await trio.sleep(CHECK_SECONDS / 100)
        inside.take()
    assert inside.disk.checks == 1


async def test_a_save_under_way_gives_nothing_back(inside: Inside) -> None:
    """It may have been begun before the folder was moved, and complete after."""
    await inside.use(60)
    inside.disk.gate = trio.Event()
    inside.saver.want()
    await trio.sleep(1)
    inside.take_steady()
    inside.disk.moved = GONE
    await trio.sleep(CHECK_SECONDS)
    with pytest.raises(RefusedError):
        inside.take_steady()
    inside.disk.moved = ""
    inside.disk.gate.set()
    await inside.saver.settled_by()
    inside.disk.moved = GONE
    with pytest.raises(MustPause):
        inside.take_steady()


async def test_utc_goes_on_under_a_volatile_node_and_steady_is_refused(inside: Inside) -> None:
    inside.disk.moved = GONE
    await trio.sleep(CHECK_SECONDS)
    block = await inside.take_waiting(1)
    assert block.node != inside.timeline.node.value
    with pytest.raises(RefusedError, match=GONE):
        await inside.take_steady_waiting(1)


async def test_the_stored_node_goes_on_once_the_folder_is_back(inside: Inside) -> None:
    last = inside.take_steady()
    inside.disk.moved = GONE
    await inside.use(10)
    inside.disk.moved = ""
    await inside.use(10)
    assert inside.timeline.volatile is None
    assert inside.take_steady().first >= last.first + last.count


async def test_status_and_log_tell_of_it_at_once(
    inside: Inside, log: pytest.LogCaptureFixture
) -> None:
    await trio.sleep(60)
    inside.disk.moved = GONE
    told = inside.report.status()["saves"]
    assert (told["failing"], told["trouble"]) == (True, GONE)
    await trio.sleep(60)
    told = [record.getMessage() for record in log.records if record.levelno >= logging.ERROR]
    assert told == [f"the state cannot be saved; uuidd keeps trying: {GONE}"]


def test_a_start_waits_until_the_daemon_before_must_have_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between locking the folder and the first tick that it may give out lie 10 ms."""
    came: list[str] = []

    def sleep(*what: object) -> None:
        assert what == ((), (), (), CHECK_SECONDS)
        came.append("slept")

    def utc() -> int:
        came.append("read")
        return time.time_ns()

    monkeypatch.setattr(select, "select", sleep)
    store = FolderStore(tmp_path, machine="")
    clock = Clock(utc=utc)
    came.clear()
    settings = Settings(socket=None, state=tmp_path)
    startup.begin_timelines(settings, None, store, clock)
    store.close()
    assert came[:2] == ["slept", "read"]
