"""What the log tells of refusals."""

from __future__ import annotations

import re

import pytest
import trio
import trio.testing
from trio.testing import MockClock

from tests.daemon.fakes import Inside
from tests.rig import Daemon
from uuidd.core.wire.methods import RefusedError
from uuidd.server.acceptor import DESCRIPTORS
from uuidd.server.admission import MADE_ROOM, SILENT
from uuidd.server.connection import TOO_LATE, UNREAD
from uuidd.server.events import MEANINGS, ROUTINE, SPAN, Refusals, Tally, meaning
from uuidd.server.poller import NO_WATCH
from uuidd.server.service import MALFORMED


async def test_a_burst_is_one_line_with_numbers(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """By reason, over both dialects, some seconds after the first."""
    one, other = Tally(), Tally()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(Refusals(one, other).run)
        await trio.sleep(100)
        for _ in range(7):
            one.refuse("busy")
            other.refuse("busy")
        one.refuse("bad_params")
        await trio.sleep(SPAN - 0.1)
        assert caplog.messages == []
        other.refuse("malformed")
        await trio.sleep(0.2)
        nursery.cancel_scope.cancel()
    assert caplog.messages == [
        "refused within 10 s: 1 request with wrong parameters (bad_params), 14 requests for more"
        " ticks than were free, or than the user's share (busy), 1 connection that sent bytes of"
        " neither protocol (malformed)"
    ]
    assert caplog.records[0].levelname == "WARNING"
    assert one.refused == {"busy": 7, "bad_params": 1}


async def test_there_is_a_line_in_ten_seconds_at_most(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """However many are refused; and each is in exactly one line."""
    tally = Tally()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(Refusals(tally).run)
        for _ in range(10_000):
            tally.refuse("busy")
            await trio.sleep(0.01)
        await trio.sleep(SPAN)
        nursery.cancel_scope.cancel()
    assert 9 <= len(caplog.messages) <= 11
    told = [int(line.split()[4]) for line in caplog.messages]
    assert sum(told) == 10_000


async def test_while_nobody_is_refused_nothing_is_told_and_no_timer_runs(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """After a line it waits for the next refusal, however long that takes."""
    tally = Tally()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(Refusals(tally).run)
        await trio.testing.wait_all_tasks_blocked()
        assert trio.lowlevel.current_statistics().seconds_to_next_deadline == float("inf")
        tally.refuse("busy")
        await trio.sleep(SPAN + 1)
        await trio.testing.wait_all_tasks_blocked()
        assert trio.lowlevel.current_statistics().seconds_to_next_deadline == float("inf")
        await trio.sleep(86_400)
        tally.refuse("unread")
        await trio.sleep(SPAN + 1)
        nursery.cancel_scope.cancel()
    assert [line.split()[4:] for line in caplog.messages] == [
        meaning(reason, 1).split() for reason in ("busy", "unread")
    ]


async def test_the_end_tells_what_was_not_told(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """A stop does not wait for the span, and tells nothing twice."""
    tally = Tally()
    refusals = Refusals(tally)
    refusals.log()
    tally.refuse("busy")
    await trio.sleep(3)
    refusals.log()
    refusals.log()
    assert caplog.messages == [f"refused within 3 s: {meaning('busy', 1)}"]


async def test_a_caller_that_would_not_wait_is_no_news(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """Our client asks so first, and again with more patience."""
    tally = Tally()
    refusals = Refusals(tally)
    tally.refuse("must_wait")
    refusals.log()
    assert caplog.messages == []


async def test_what_was_refused_before_is_not_told(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """It begins with what comes."""
    tally = Tally()
    tally.refuse("busy")
    Refusals(tally).log()
    assert caplog.messages == []


async def test_every_kind_of_refusal_is_told(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """A wrong count, an unknown method, bytes of no protocol, a request that never ends."""
    inside = Inside()
    refusals = Refusals(inside.service.rpc, inside.service.libuuid)
    async with inside.talking() as peer:
        await peer.call("take", "utc", 0)
        await peer.call("nothing")
        await peer.send(b"\x94\x00\x01")
        await trio.sleep(6)
    async with inside.talking() as peer:
        await peer.send(b"\xff")
        await peer.rest()
    async with inside.talking() as peer:
        await peer.send(b"\x04\x01")
        await trio.sleep(6)
    refusals.log()
    counts = {"bad_params": 1, "malformed": 1, "too_late": 2, "unknown_method": 1}
    reasons = ", ".join(meaning(reason, count) for reason, count in counts.items())
    assert caplog.messages == [f"refused within 12 s: {reasons}"]


def test_each_reason_is_told_in_words() -> None:
    """The log does not leave an administrator with the reason's name alone."""
    codes = re.findall(r"``(\w+)``", RefusedError.__doc__ or "")
    reasons = {
        *codes,
        "connections",
        DESCRIPTORS,
        MALFORMED,
        NO_WATCH,
        SILENT,
        MADE_ROOM,
        TOO_LATE,
        UNREAD,
    }
    assert reasons - {ROUTINE} == set(MEANINGS)


@pytest.mark.system
def test_a_daemon_tells_of_refusals_at_the_latest_when_it_stops() -> None:
    """The line comes before that of its end."""
    with Daemon("--max-connections=1") as daemon:
        with daemon.connect() as connection:
            for _ in range(3):
                connection.ask("take", "utc", 0)
            with daemon.connect() as other:
                other.ask("status")
        assert daemon.stop() == 0
        assert daemon.lines[-3:] == [
            "uuidd: INFO: stopping: signal=SIGTERM",
            "uuidd: WARNING: refused within 1 s: 3 requests with wrong parameters (bad_params), 1"
            " connection over a limit (connections)",
            "uuidd: INFO: stopped: state saved",
        ]
