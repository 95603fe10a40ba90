"""When the service manager hears of the daemon, and in which words."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest
import trio
from trio.testing import MockClock

from tests.daemon.fakes import UID, Inside
from uuidd.server.status import LINE_SECONDS, supervise
from uuidd.server.trust import Quality
from uuidd.systemd import Notifier


class Ear:
    """Hears what a notifier tells, and when."""

    def __init__(self, watchdog: float | None) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.sock = theirs
        self.notifier = Notifier(ours, watchdog)
        theirs.setblocking(False)

    def heard(self) -> list[str]:
        """Return what was told since the last time."""
        found = []
        while True:
            try:
                found.append(self.sock.recv(65536).decode())
            except BlockingIOError:
                return found

    def close(self) -> None:
        """Hear nothing more."""
        self.notifier.close()
        self.sock.close()


@pytest.fixture
def ears() -> Iterator[list[Ear]]:
    """A list whose ears are closed at the end."""
    ears: list[Ear] = []
    yield ears
    for ear in ears:
        ear.close()


def an_ear(ears: list[Ear], watchdog: float | None) -> Ear:
    ears.append(Ear(watchdog))
    return ears[-1]


async def test_ready_comes_first_and_with_a_status(
    autojump_clock: MockClock, ears: list[Ear]
) -> None:
    ear = an_ear(ears, 9.0)
    with trio.move_on_after(1):
        await supervise(ear.notifier, lambda: "it serves")
    assert ear.heard() == ["READY=1\nSTATUS=it serves"]


@pytest.mark.parametrize(("watchdog", "pause"), [(9.0, 3.0), (0.3, 0.1), (None, LINE_SECONDS)])
async def test_it_tells_three_times_in_the_watchdogs_patience(
    autojump_clock: MockClock, ears: list[Ear], watchdog: float | None, pause: float
) -> None:
    ear = an_ear(ears, watchdog)
    with trio.move_on_after(3.5 * pause):
        await supervise(ear.notifier, lambda: "it serves")
    assert ear.heard()[1:] == ["WATCHDOG=1"] * 3


async def test_a_status_is_told_only_when_it_is_another(
    autojump_clock: MockClock, ears: list[Ear]
) -> None:
    """The manager keeps what it was told last."""
    ear = an_ear(ears, 3.0)
    lines = iter(["one", "one", "two", "two"])
    with trio.move_on_after(3.5):
        await supervise(ear.notifier, lambda: next(lines))
    assert ear.heard() == [
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


# --- the line


async def test_the_rate_is_that_since_the_last_line(autojump_clock: MockClock) -> None:
    inside = Inside()
    line = inside.report.line
    inside.admission.enter(1000)
    inside.service.rpc.ids = 15_000
    inside.service.libuuid.ids = 5_000
    await trio.sleep(10)
    assert line() == "Serving 1 connection, 2,000 ids/s"
    await trio.sleep(10)
    assert line() == "Serving 1 connection, 0 ids/s"


async def test_leases_that_are_held_are_told(autojump_clock: MockClock) -> None:
    """The ids that their holders make are not among the rate."""
    inside = Inside()
    inside.timelines.lease(at=inside.clock.read(), uid=UID)
    assert inside.report.line() == "Serving 0 connections, 0 ids/s, 1 lease"


async def test_two_lines_at_once_divide_by_no_zero(autojump_clock: MockClock) -> None:
    inside = Inside()
    line = inside.report.line
    assert line() == line() == "Serving 0 connections, 0 ids/s"


async def test_trouble_is_told(autojump_clock: MockClock) -> None:
    inside = Inside()
    line = inside.report.line
    inside.disk.broken = True
    async with inside.saving():
        await inside.use(25, every=0.5)
        assert line().endswith(
            "; saves fail (No space left on device), v1 and v6 come from a volatile node"
        )
        inside.disk.broken = False
        await inside.use(10, every=0.5)
        assert ";" not in line()
        inside.wall.step(-100)
        assert line().endswith("; the steady kinds are 100 s ahead of UTC")


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
