"""The page as a client without a lease gets it, with its first block, and what the block says."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.client.fakes import Server, granted, result
from tests.client.lanes import Lanes
from uuidd.core.wire import methods
from uuidd_client.connection import Connection
from uuidd_client.errors import DaemonUnavailable
from uuidd_client.watch import NEVER

Take = Callable[[Connection], object]

EACH_TIMELINE = pytest.mark.parametrize(
    "take",
    [
        lambda connection: connection.take(4),
        lambda connection: connection.take_steady(4),
        lambda connection: connection.take_snowflake(4),
    ],
    ids=["utc", "steady", "snowflake"],
)


def giving(path: Path, greeting: list[int], **more: Any) -> Server:
    """Return a daemon that passes *greeting* with its first reply, and says *more* of a block."""
    return Server(path, lambda asked: result(asked, granted(0, 4) | more), greeting=greeting)


@EACH_TIMELINE
def test_a_block_is_watched_from_the_first_one_on(tmp_path: Path, lanes: Lanes, take: Take) -> None:
    """The page comes with it, in the same round trip; the next ones are of the same page."""
    with giving(tmp_path / "s", [lanes.fd]) as server:
        connection = Connection(str(server.path), 10.0)
        for _ in range(2):
            take(connection)
            assert connection.watch.epochs[0] == connection.watch.epoch == 0
        assert len(server.requests) == 2
        lanes.renew()
        assert connection.watch.moved
        connection.close()


def test_a_page_that_comes_late_does_not_save_an_old_block(tmp_path: Path, lanes: Lanes) -> None:
    """The machine may be cloned between the reply and the first look at its page."""
    lanes.renew()
    with giving(tmp_path / "s", [lanes.fd]) as server:
        connection = Connection(str(server.path), 10.0)
        connection.take(4)
        assert connection.watch.moved
        connection.close()


def test_a_block_of_after_a_clone_says_so(tmp_path: Path, lanes: Lanes) -> None:
    """And it is good until the next one."""
    lanes.renew()
    with giving(tmp_path / "s", [lanes.fd], page_epoch=1) as server:
        connection = Connection(str(server.path), 10.0)
        connection.take(4)
        moved = [connection.watch.moved]
        lanes.renew()
        assert [*moved, connection.watch.moved] == [False, True]
        connection.close()


@pytest.mark.parametrize("passed", ["nothing", "a file"])
def test_a_block_without_a_page_is_used_all_the_same(passed: str, tmp_path: Path) -> None:
    """As of an earlier daemon. A descriptor of something else is closed."""
    before = len(os.listdir("/proc/self/fd"))
    with open(__file__, "rb") as file:
        greeting = [file.fileno()] if passed == "a file" else []
        with giving(tmp_path / "s", greeting, page_epoch=3) as server:
            connection = Connection(str(server.path), 10.0)
            assert connection.take(4).count == 4
            assert not connection.watch.moved
            assert connection.watch.epochs is NEVER.epochs
            connection.close()
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize("epoch", [-1, 1 << 64, True, "1", None, 1.0, [1]])
def test_an_epoch_that_is_none_is_an_unusable_answer(epoch: object, tmp_path: Path) -> None:
    """As is any other field that cannot be."""
    with pytest.raises(ValueError, match="is not an epoch of the page"):
        methods.unpack_page_epoch({"page_epoch": epoch})
    if epoch == 1 << 64:
        # MessagePack has no such number.
        return
    with giving(tmp_path / "s", [], page_epoch=epoch) as server:
        connection = Connection(str(server.path), 10.0)
        with pytest.raises(DaemonUnavailable, match=r"unusable answer: .* is not an epoch"):
            connection.take(4)
        connection.close()


def test_connections_leave_no_descriptor_of_the_page_open(tmp_path: Path, lanes: Lanes) -> None:
    """All of a process share the page of their daemon, one after another too."""
    with giving(tmp_path / "s", [lanes.fd]) as server:
        found = []
        for _ in range(5):
            connection = Connection(str(server.path), 10.0)
            connection.take(4)
            found.append(connection.page)
            connection.close()
        assert len({id(page) for page in found}) == 1
