"""When the service manager hears of the daemon, and in which words."""

from __future__ import annotations

import socket
from collections.abc import Callable
from functools import partial
from unittest.mock import Mock

import pytest
import trio
from trio.testing import MockClock

from tests.daemon.fakes import UID, Inside
from uuidd.server.status import LINE_SECONDS, supervise
from uuidd.server.trust import Quality
from uuidd.systemd import Notifier

pytestmark = pytest.mark.usefixtures("autojump_clock")


async def heard(
    watchdog: float | None, seconds: float, line: Callable[[], str] = lambda: "it serves"
) -> list[str]:
    """Return what a manager with this patience hears within so many seconds."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    with ours, theirs:
        with trio.move_on_after(seconds):
            await supervise(Notifier(ours, watchdog), line)
        # The last of what is read below.
        ours.send(b"")
        return [told.decode() for told in iter(partial(theirs.recv, 65536), b"")]


@pytest.mark.parametrize(("watchdog", "pause"), [(9.0, 3.0), (0.3, 0.1), (None, LINE_SECONDS)])
async def test_it_tells_three_times_in_the_watchdogs_patience(
    watchdog: float | None, pause: float
) -> None:
    assert await heard(watchdog, 3.5 * pause) == [
        "READY=1\nSTATUS=it serves",
        *["WATCHDOG=1"] * 3,
    ]


async def test_a_status_is_told_only_when_it_is_another() -> None:
    """The manager keeps what it was told last."""
    lines = iter(["one", "one", "two", "two"])
    assert await heard(3.0, 3.5, lambda: next(lines)) == [
        "READY=1\nSTATUS=one",
        "WATCHDOG=1",
        "WATCHDOG=1\nSTATUS=two",
        "WATCHDOG=1",
    ]


async def test_where_nobody_asked_no_timer_runs(autojump_clock: MockClock) -> None:
    def line() -> str:
        raise AssertionError

    await supervise(Notifier(None, 9.0), line)
    assert trio.current_time() == pytest.approx(autojump_clock.current_time())


async def test_the_rate_is_that_since_the_last_line() -> None:
    inside = Inside()
    line = inside.report.line
    # Two lines at once divide by no zero.
    assert line() == line() == "Serving 0 connections, 0 ids/s"
    inside.admission.enter(Mock(uid=UID, refusal=""))
    inside.service.rpc.ids = 15_000
    inside.service.libuuid.ids = 5_000
    await trio.sleep(10)
    assert line() == "Serving 1 connection, 2,000 ids/s"
    await trio.sleep(10)
    assert line() == "Serving 1 connection, 0 ids/s"


async def test_leases_that_are_held_are_told() -> None:
    """The ids that their holders make are not among the rate."""
    inside = Inside()
    inside.timelines.lease(at=inside.clock.read(), uid=UID)
    assert inside.report.line() == "Serving 0 connections, 0 ids/s, 1 lease"


async def test_trouble_is_told() -> None:
    inside = Inside()
    line = inside.report.line
    inside.disk.broken = True
    async with inside.saving():
        *_, block = await inside.use(25, every=0.5)
        told = inside.report.status()
        assert told["volatile"] is told["saves"]["failing"] is True
        assert told["saves"]["failed"] == inside.saver.failed_saves > 0
        assert told["saves"]["trouble"] == "No space left on device"
        assert told["utc"]["node"] == f"0x{block.node:012x}" != told["node"]
        assert line().endswith(
            "; saves fail (No space left on device), v1 and v6 come from a volatile node"
        )
        inside.disk.broken = False
        # The volatile node ends with the save that makes it needless, not with the next request.
        await trio.sleep(60)
        assert inside.report.status()["volatile"] is False
        assert ";" not in line()
        inside.wall.step(-100)
        assert line().endswith("; the steady kinds are 100 s ahead of UTC")


async def test_the_day_on_which_snowflakes_are_full_is_that_of_the_chosen_epoch() -> None:
    status = Inside(worker=101, epoch=1_420_070_400_000).report.status()
    assert status["full_on"]["snowflake"] == "2084-09-06"


async def test_the_status_of_a_daemon_without_a_worker_number_has_none() -> None:
    """A 0 would be another daemon's number."""
    assert Inside().report.status()["steady"]["worker"] is None


async def test_what_keeps_clients_or_the_clock_away_is_told() -> None:
    inside = Inside(
        unreachable=lambda: "unreachable: gone",
        require_sync=0.5,
        quality=Quality(synchronised=False, max_error=16.0),
    )
    assert inside.report.line() == (
        "Serving 0 connections, 0 ids/s; unreachable: gone;"
        f" the steady kinds wait: {inside.steady.withheld}"
    )
