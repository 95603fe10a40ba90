from __future__ import annotations

import contextlib
import logging
import os
import signal
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from tests.daemon.test_statefile import STATE
from tests.rig import Daemon
from uuidd.clock import Clock
from uuidd.core.ids.ticks import TICKS_PER_SECOND
from uuidd.core.timeline.page import HORIZON_AT, MAGIC_AT, PAGE_MAGIC
from uuidd.core.timeline.state import Node
from uuidd.server import startup
from uuidd.server.page import Page, PageError
from uuidd.server.settings import Settings
from uuidd.statefile import encode
from uuidd.store import FolderStore


@pytest.fixture
def place() -> Iterator[Path]:
    """A short folder, with that of a state in it."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        (Path(name) / "state").mkdir()
        yield Path(name)


@pytest.fixture
def page() -> Iterator[Page]:
    """A page for one test."""
    page = Page()
    yield page
    page.close()


def held_for(place: Path, page: Page | None = None, node: Node | None = None) -> float:
    """Start the timelines in *place*; return for how many seconds they lease nothing."""
    store = FolderStore(place / "state", machine="here")
    try:
        settings = Settings(place / "s", place / "state")
        timelines, at, _ = startup.begin_timelines(settings, node, store, Clock(), page)
    finally:
        store.close()
    return (timelines.utc.leases.floor - at.now) / TICKS_PER_SECOND


def test_a_first_start_leases_at_once(place: Path) -> None:
    assert held_for(place) <= 0


def test_a_first_start_with_a_fixed_node_leases_after_any_earlier_run(place: Path) -> None:
    """The folder of an earlier state with this node may be gone, while programs hold leases."""
    assert held_for(place, node=Node(0x123456789ABC, "given")) > 19


def test_a_start_leases_nothing_before_the_mark_of_leases(place: Path) -> None:
    """Holders of the last run may have used all before it."""
    mark = Clock().now() + 7 * TICKS_PER_SECOND
    (place / "state" / "state").write_bytes(encode(replace(STATE, machine="here", leases=mark)))
    assert 6 < held_for(place) <= 7


def test_a_start_after_a_lost_state_leases_nothing_for_20_s(place: Path) -> None:
    """No horizon that holders saw was further ahead."""
    (place / "state" / "state").write_bytes(b"junk")
    assert 19 < held_for(place) <= 20


def test_a_start_marks_the_page(place: Path, page: Page) -> None:
    held_for(place, page)
    assert (page.words[MAGIC_AT], page.words[HORIZON_AT]) == (PAGE_MAGIC, 0)


def test_the_end_of_a_daemon_closes_the_page(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So a process that starts one daemon after the other keeps none of their descriptors."""
    page = Page()
    monkeypatch.setattr(startup, "Page", lambda: page)
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    try:
        with startup.started(Settings(place / "s", place / "state")):
            os.fstat(page.fd)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(page.fd)


def test_a_start_without_a_page_says_so_and_goes_on(
    place: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="uuidd")
    no_page = partial(Page, pointer_bytes=4)
    with pytest.raises(PageError):
        no_page()
    monkeypatch.setattr(startup, "Page", no_page)
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    try:
        with startup.started(Settings(place / "s", place / "state")):
            pass
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
    assert [each.getMessage() for each in caplog.records if "lease" in each.getMessage()] == [
        "no leases, so all clients use blocks: a machine of 32 bits does not write 64 bits at once"
    ]


# --- the witness of earlier runs


@pytest.mark.parametrize("started", [True, False])
def test_only_a_daemon_that_has_started_leaves_a_witness(tmp_path: Path, started: bool) -> None:
    socket = f"{tmp_path}/s"
    with contextlib.ExitStack() as undo:
        assert startup.earlier_run(socket, undo, lambda: started) == ""
    found = [path.name for path in tmp_path.iterdir()]
    assert found == (["s.used"] if started else [])
    told = startup.earlier_run(socket, contextlib.ExitStack(), lambda: True)
    assert told == (f"{socket}.used shows that ids were made here before" if started else "")


@pytest.mark.parametrize(
    ("socket", "told"),
    [
        ("/nowhere/s", "/nowhere/s.used cannot be made, to show that no ids were made before: No "),
        (b"\0uuidd", "a socket without a path cannot show that no ids were made here before"),
        ("", "a socket without a path cannot show that no ids were made here before"),
    ],
)
def test_where_no_witness_can_be_ids_may_have_been_made(socket: str | bytes, told: str) -> None:
    """So a start without a state waits as if it was lost."""
    with contextlib.ExitStack() as undo:
        assert startup.earlier_run(socket, undo, lambda: True).startswith(told)


@pytest.mark.process
@pytest.mark.parametrize(
    ("option", "left"),
    [("--worker=5", True), ("--node=0x448899365732", True), ("--epoch=0", False)],
)
def test_a_daemon_whose_ids_may_repeat_without_its_state_leaves_a_witness(
    option: str, left: bool
) -> None:
    """Snowflakes hold a number that was set by hand, and Flakes a node; other ids are random."""
    with Daemon(option) as daemon:
        assert daemon.stop() == 0
        assert Path(f"{daemon.socket}.used").exists() == left
