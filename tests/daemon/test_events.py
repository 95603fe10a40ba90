"""What the log says, in words that a newcomer understands."""

from __future__ import annotations

import inspect
import logging
import re

import pytest
import trio
import trio.testing
from trio.testing import MockClock

from tests.daemon.fakes import Inside
from tests.rig import Daemon
from uuidd.core.timeline.ring import Opening
from uuidd.core.wire.methods import RefusedError
from uuidd.server import acceptor, admission, client, events, poller
from uuidd.server.events import MEANINGS, ROUTINE, SPAN, Refusals, Tally, meaning


def said(caplog: pytest.LogCaptureFixture, reason: str, back: int = 0) -> tuple[str, str]:
    """Return the level and the line with which an opening is told."""
    caplog.set_level(logging.INFO, logger="uuidd")
    events.opening(Opening(reason, 39, 0x448899365732, back))
    [record] = caplog.records
    return record.levelname, record.getMessage()


@pytest.mark.parametrize(
    ("reason", "back", "level", "words"),
    [
        ("no state", 0, "INFO", "there was no state, so a new one was made"),
        (
            "UTC stepped back",
            35_000_000,
            "WARNING",
            "the clock sequence was changed, because UTC is 3.500 s behind the last id",
        ),
        (
            "the saved mark lies past now",
            1_000_000,
            "WARNING",
            "the clock sequence was changed, because the last run did not stop cleanly, or left"
            " leases, or UTC was set back since; ticks up to 0.100 s from now may have been used",
        ),
        ("node changed", 0, "WARNING", "the node and the clock sequence were changed"),
        (
            "no save within 0.8 s (100 % full)",
            0,
            "WARNING",
            "v1 and v6 come from a volatile node (no save within 0.8 s (100 % full))",
        ),
        (
            "saved again",
            0,
            "INFO",
            "the state can be saved again, so v1 and v6 come from the stored node again",
        ),
    ],
)
def test_an_opening_is_told_in_words(
    caplog: pytest.LogCaptureFixture, reason: str, back: int, level: str, words: str
) -> None:
    """What happened and what became of it, with units, and the clock sequence as ids have it."""
    assert said(caplog, reason, back) == (
        level,
        f"{words}: clock_seq=9984 node=0x448899365732",
    )


@pytest.mark.parametrize(
    ("nanoseconds", "line"),
    [
        (3_600_000_000_000, "UTC was set forward by 3600.000 s"),
        (-1_500_000_000, "UTC was set back by 1.500 s"),
    ],
)
def test_a_step_is_told_with_its_direction(
    caplog: pytest.LogCaptureFixture, nanoseconds: int, line: str
) -> None:
    """In words, for a sign is overlooked."""
    events.step(nanoseconds)
    assert caplog.messages == [line]


@pytest.mark.system
def test_a_first_start_puzzles_nobody() -> None:
    """It tells of the new state and of the start, each value with its name, and of nothing else."""
    with Daemon() as daemon:
        begun, *root, started = daemon.lines
        assert begun.startswith("uuidd: INFO: there was no state, so a new one was made: clock_seq")
        assert all("running as root" in line for line in root)
        assert f"socket={daemon.socket} state={daemon.state} node=0x" in started
        assert "None" not in "".join(daemon.lines)


# --- refusals


async def test_a_burst_is_one_line_with_numbers(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    refusals = Refusals()
    one, other = Tally(refusals.note), Tally(refusals.note)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(refusals.run)
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
    refusals = Refusals()
    tally = Tally(refusals.note)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(refusals.run)
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
    refusals = Refusals()
    tally = Tally(refusals.note)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(refusals.run)
        await trio.testing.wait_all_tasks_blocked()
        # Nor where it is no news.
        tally.refuse("no_lease")
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
    refusals = Refusals()
    tally = Tally(refusals.note)
    refusals.log()
    tally.refuse("busy")
    await trio.sleep(3)
    refusals.log()
    refusals.log()
    assert caplog.messages == [f"refused within 3 s: {meaning('busy', 1)}"]


async def test_what_is_no_news_begins_no_later_line(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """A line counts its seconds from the first refusal that it may tell of."""
    refusals = Refusals()
    tally = Tally(refusals.note)
    tally.refuse("must_wait")
    await trio.sleep(SPAN - 1)
    tally.refuse("busy")
    await trio.sleep(3)
    refusals.log()
    assert caplog.messages == [f"refused within 3 s: {meaning('busy', 1)}"]


async def test_a_daemon_tells_what_it_refuses_in_either_protocol(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    inside = Inside()
    async with inside.talking() as peer:
        await peer.call("make")
    inside.service.libuuid.refuse("busy")
    inside.refusals.log()
    told = ", ".join(meaning(reason, 1) for reason in ("bad_params", "busy"))
    assert caplog.messages == [f"refused within 1 s: {told}"]


def test_each_reason_is_told_in_words() -> None:
    """The log does not leave an administrator with the reason's name alone."""
    codes = re.findall(r"``(\w+)``", RefusedError.__doc__ or "")
    ends = {
        reason
        for module in (acceptor, admission, client, poller)
        for reason in re.findall(r'refuse(?:\(|, )"(\w+)"', inspect.getsource(module))
    }
    assert len(ends) == 8
    reasons = {*codes, *ends}
    assert reasons - set(ROUTINE) == set(MEANINGS)


@pytest.mark.system
def test_a_daemon_tells_of_refusals_at_the_latest_when_it_stops() -> None:
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
