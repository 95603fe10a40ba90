"""What the log says, in words that a newcomer understands."""

from __future__ import annotations

import inspect
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest
import trio
import trio.testing
from trio.testing import MockClock

from tests.daemon.fakes import Inside, meanwhile
from tests.rig import Daemon
from uuidd.core.timeline.utc import Opening
from uuidd.core.wire.methods import RefusedError
from uuidd.server import acceptor, admission, client, descriptors, events, poller
from uuidd.server.events import MEANINGS, ROUTINE, SPAN, Refusals, Tally, meaning

OPENED = [
    ("no state", 0, "INFO", "a new state was made"),
    (
        *("UTC stepped back", 35_000_000, "WARNING"),
        "the clock sequence was changed, because UTC is 3.500 s behind the last id",
    ),
    (
        *("the saved mark lies past now", 1_000_000, "WARNING"),
        "the clock sequence was changed, because the last run did not stop cleanly, or left"
        " leases, or UTC was set back since; ticks up to 0.100 s from now may have been used",
    ),
    ("node changed", 0, "WARNING", "the node and the clock sequence were changed"),
    (
        *("the state was copied", 0, "WARNING"),
        "another machine saved the state: the machine-id is the same, and the product UUID differs;"
        " the clock sequence was changed, and so was the node unless it is fixed",
    ),
    (
        *("no save within 0.8 s (100 % full)", 0, "WARNING"),
        "v1 and v6 come from a volatile node (no save within 0.8 s (100 % full))",
    ),
    (
        *("saved again", 0, "INFO"),
        "the state can be saved again, so v1 and v6 come from the stored node again",
    ),
]


@pytest.mark.parametrize(
    ("tell", "level", "line"),
    [
        *(
            (
                partial(events.opening, Opening(reason, 39, 0x448899365732, back)),
                level,
                # The clock sequence is as ids have it.
                f"{words}: clock_seq=9984 node=0x448899365732",
            )
            for reason, back, level, words in OPENED
        ),
        # In words, for a sign is overlooked.
        (partial(events.step, 3_600 * 10**9), "WARNING", "UTC was set forward by 3600.000 s"),
        (partial(events.step, -1_500_000_000), "WARNING", "UTC was set back by 1.500 s"),
        *(
            (
                partial(events.libuuid_mark, Path("/clock"), ahead, used=True),
                "INFO",
                f"beginning after what libuuid has used: file=/clock, {by} s from now",
            )
            for ahead, by in ((10**7, "+1.000"), (-5, "-0.000"))
        ),
        (
            partial(events.libuuid_mark, Path("/clock"), 24 * 3600 * 10**7 + 1, used=False),
            "WARNING",
            "libuuid's clock file is of a time too far ahead, and is ignored: file=/clock,"
            " +86400.000 s from now",
        ),
    ],
)
def test_an_event_is_told_in_words(
    log: pytest.LogCaptureFixture, tell: Callable[[], None], level: str, line: str
) -> None:
    tell()
    assert [(each.levelname, each.getMessage()) for each in log.records] == [(level, line)]


def test_a_step_back_tells_how_many_leases_it_ended(log: pytest.LogCaptureFixture) -> None:
    events.step(-1_500_000_000, 3)
    assert log.messages[1:] == ["3 leases ended, because UTC was set back"]


@pytest.mark.system
def test_a_first_start_puzzles_nobody() -> None:
    with Daemon() as daemon:
        begun, *root, started = daemon.lines
        assert begun.startswith("uuidd: INFO: a new state was made: clock_seq")
        assert all("running as root" in line for line in root)
        assert f"socket={daemon.socket} state={daemon.state} node=0x" in started
        assert "None" not in "".join(daemon.lines)


class Told:
    """Refusals that are told while the context lasts, at trio's time."""

    def __init__(self) -> None:
        self.refusals = Refusals()
        self.tally = Tally(self.refusals.note)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Tell of them meanwhile."""
        async with meanwhile(self.refusals.run):
            await trio.testing.wait_all_tasks_blocked()
            yield


@pytest.fixture
def told(autojump_clock: MockClock) -> Told:
    return Told()


async def test_a_burst_is_one_line_with_numbers(
    told: Told, caplog: pytest.LogCaptureFixture
) -> None:
    other = Tally(told.refusals.note)
    async with told.running():
        await trio.sleep(100)
        for _ in range(7):
            told.tally.refuse("busy")
            other.refuse("busy")
        told.tally.refuse("bad_params")
        await trio.sleep(SPAN - 0.1)
        assert caplog.messages == []
        other.refuse("malformed")
        await trio.sleep(0.2)
    assert caplog.messages == [
        "refused within 10 s: 1 request with wrong parameters (bad_params), 14 requests for more"
        " ticks than were free, or than the user's share (busy), 1 connection that sent bytes of"
        " neither protocol (malformed)"
    ]
    assert caplog.records[0].levelname == "WARNING"
    assert told.tally.refused == {"busy": 7, "bad_params": 1}


async def test_there_is_a_line_in_ten_seconds_at_most(
    told: Told, caplog: pytest.LogCaptureFixture
) -> None:
    async with told.running():
        for _ in range(10_000):
            told.tally.refuse("busy")
            await trio.sleep(0.01)
        await trio.sleep(SPAN)
    assert 9 <= len(caplog.messages) <= 11
    assert sum(int(line.split()[4]) for line in caplog.messages) == 10_000


async def test_while_nobody_is_refused_nothing_is_told_and_no_timer_runs(
    told: Told, caplog: pytest.LogCaptureFixture
) -> None:
    """After a line it waits for the next refusal, however long that takes."""
    async with told.running():
        # Nor where it is no news.
        for reason in ("no_lease", "busy"):
            await trio.testing.wait_all_tasks_blocked()
            assert trio.lowlevel.current_statistics().seconds_to_next_deadline == float("inf")
            told.tally.refuse(reason)
        for pause in (SPAN + 1, 86_400):
            await trio.sleep(pause)
        await trio.testing.wait_all_tasks_blocked()
        assert trio.lowlevel.current_statistics().seconds_to_next_deadline == float("inf")
        told.tally.refuse("unread")
        await trio.sleep(SPAN + 1)
    assert [line.split()[4:] for line in caplog.messages] == [
        meaning(reason, 1).split() for reason in ("busy", "unread")
    ]


async def test_the_end_tells_what_was_not_told_once(
    told: Told, caplog: pytest.LogCaptureFixture
) -> None:
    """A line counts its seconds from the first refusal that it may tell of."""
    told.refusals.log()
    told.tally.refuse("must_wait")
    await trio.sleep(SPAN - 1)
    told.tally.refuse("busy")
    await trio.sleep(3)
    told.refusals.log()
    told.refusals.log()
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
    codes = re.findall(r"``(\w+)``", RefusedError.__doc__ or "")
    ends = {
        reason
        for module in (acceptor, admission, client, descriptors, poller)
        for call in re.findall(r"refuse\(.*\)", inspect.getsource(module))
        for reason in re.findall(r'"(\w+)"', call)
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
