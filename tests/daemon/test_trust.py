"""``--require-sync``: the steady kinds wait for a good clock, and nothing else does."""

from __future__ import annotations

import errno
from functools import partial
from typing import Any

import pytest
import trio

from tests.daemon.fakes import GOOD, HOUR, UID, Inside, meanwhile
from tests.tools import failing
from uuidd.core.ids.ticks import TICKS_PER_SECOND
from uuidd.core.timeline.leases import NoLease
from uuidd.core.timeline.state import Node
from uuidd.refused import Refused
from uuidd.server.trust import (
    LOOK_SECONDS,
    STA_UNSYNC,
    TIME_DEL,
    TIME_ERROR,
    TIME_INS,
    TIME_OOP,
    Adjtimex,
    Quality,
    Timex,
    Trust,
    check_sync,
    quality,
)

pytestmark = pytest.mark.usefixtures("autojump_clock")

UNSYNCHRONISED = Quality(synchronised=False, max_error=16.0)


def waiting(clock: Quality = UNSYNCHRONISED, **how: Any) -> Inside:
    """An inside that was started with --require-sync 0.5 on a host whose clock is so."""
    return Inside(require_sync=0.5, quality=clock, **how)


async def test_no_lease_is_granted_while_steady_waits() -> None:
    """Its holder would make steady ids from the same clock."""
    inside = waiting(ahead=10)
    assert inside.timelines.lease(at=inside.clock.read(), uid=UID) == NoLease("withheld")


async def test_steady_begins_when_the_clock_is_good_enough(log: pytest.LogCaptureFixture) -> None:
    inside = waiting()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(inside.trust.run)
        await trio.sleep(HOUR)
        assert inside.trust.status()["withheld"].startswith("the clock is not synchronised, and ")
        inside.quality = GOOD
        await trio.sleep(LOOK_SECONDS)
    refused, begun = log.messages
    assert refused.startswith("v7, Snowflakes and the other steady kinds are refused: the clock is")
    assert begun.startswith("the clock is good enough, so v7, Snowflakes ")
    assert inside.trust.status() == {
        "synchronised": True,
        "max_error": 0.001,
        "leap": None,
        "unknown": "",
        "required_error": 0.5,
        "withheld": "",
    }
    inside.save_ahead()
    block = inside.take_steady()
    assert block.first <= inside.wall.now() < block.first + TICKS_PER_SECOND


async def test_the_reason_follows_the_clock() -> None:
    inside = waiting()
    async with meanwhile(inside.trust.run):
        await trio.sleep(LOOK_SECONDS / 2)
        inside.quality = Quality(synchronised=True, max_error=3.0)
        await trio.sleep(LOOK_SECONDS)
        assert inside.steady.withheld.startswith("the clock may be wrong by 3.000 s, and ")


async def test_a_clock_that_gets_worse_later_withholds_nothing() -> None:
    """The order of one host's ids does not depend on it after the start."""
    inside = waiting(GOOD)
    await inside.trust.run()
    inside.quality = UNSYNCHRONISED
    inside.save_ahead()
    assert inside.take_steady().count == 1
    assert inside.trust.status()["synchronised"] is False


async def test_a_wrong_clock_leaves_nothing_behind() -> None:
    """A host that starts ten years ahead, and is set right, does not lead UTC by ten years."""
    inside = waiting()
    inside.wall.step(87_600 * HOUR)
    inside.save_ahead()
    assert inside.timelines.begin_save(at=inside.clock.read(), reach=1, bare_reach=1).steady == 0
    inside.wall.step(-87_600 * HOUR)
    at = inside.clock.read()
    inside.timelines.release(at=at)
    assert inside.steady.lead(now=at.now, elapsed=at.elapsed) == 0


@pytest.mark.parametrize("hours", [1, -87_600], ids=["behind", "ten years ahead"])
async def test_after_a_lost_state_the_20_seconds_begin_when_the_clock_is_good(hours: int) -> None:
    """What was given out before counts by the right clock, too."""
    inside = waiting(lost=True)
    inside.wall.step(hours * HOUR)
    at = inside.clock.read()
    inside.timelines.release(at=at)
    assert inside.steady.held_until == at.now + 20 * TICKS_PER_SECOND
    assert inside.steady.next == inside.steady.held_until


@pytest.mark.parametrize("hours", [1, -87_600], ids=["behind", "ten years ahead"])
@pytest.mark.parametrize("what", ["a lost state", "a fixed node without a state"])
async def test_the_20_seconds_without_leases_begin_when_the_clock_is_good(
    what: str, hours: int
) -> None:
    lost = what == "a lost state"
    inside = waiting(lost=lost, node=None if lost else Node(5, "given"))
    inside.wall.step(hours * HOUR)
    at = inside.clock.read()
    inside.timelines.release(at=at)
    assert inside.timelines.utc.leases.floor == at.now + 20 * TICKS_PER_SECOND


UNKNOWN = Quality(unknown="adjtimex: Operation not permitted")
"""What is known where the kernel must not be asked, as in a sandbox with ProtectClock=."""


def test_a_start_is_refused_where_the_kernel_must_not_be_asked() -> None:
    """The daemon would wait for ever; the line says what to allow."""
    with pytest.raises(Refused) as refused:
        check_sync(0.5, lambda: UNKNOWN)
    assert str(refused.value) == (
        "--require-sync 0.5: the kernel does not say how good the clock is (adjtimex: Operation not"
        " permitted); leave out the option or, under systemd, set ProtectClock=no and"
        " SystemCallFilter=adjtimex clock_adjtime in a drop-in of the service"
    )


def test_without_the_option_nothing_is_asked_at_a_start() -> None:
    """So the sandbox need not allow it."""
    check_sync(None, partial(pytest.fail, "the kernel was asked"))


async def test_a_quality_that_is_not_known_is_in_the_status_with_the_reason() -> None:
    inside = Inside()
    told = Trust(inside.timelines, inside.clock.read, None, lambda: UNKNOWN).status()
    assert (told["synchronised"], told["max_error"]) == (None, None)
    assert told["unknown"] == "adjtimex: Operation not permitted"


def kernel(state: int = 0, *, status: int = 0, maxerror: int = 2500) -> Adjtimex:
    """A kernel that answers so; *maxerror* is in microseconds."""

    def adjtimex(timex: Timex) -> int:
        assert timex.modes == 0, "it would set the clock"
        timex.status, timex.maxerror = status, maxerror
        return state

    return adjtimex


@pytest.mark.parametrize(
    ("adjtimex", "found"),
    [
        (kernel(), Quality(True, 0.0025, None)),
        # The state and the bit can differ for a moment, and one is enough.
        (kernel(TIME_ERROR), Quality(False, 0.0025, None)),
        (kernel(status=STA_UNSYNC | 1), Quality(False, 0.0025, None)),
        # Time daemons tell the kernel of a leap second up to a day before.
        (kernel(TIME_INS), Quality(True, 0.0025, "insert")),
        (kernel(TIME_DEL), Quality(True, 0.0025, "delete")),
        (kernel(TIME_OOP), Quality(True, 0.0025, "now")),
        (failing(errno.EPERM), UNKNOWN),
    ],
)
def test_the_kernel_says_how_good_the_clock_is(adjtimex: Adjtimex, found: Quality) -> None:
    assert quality(adjtimex) == found


def test_this_kernel_answers_or_says_why_not() -> None:
    found = quality()
    if found.max_error is None:
        assert found.unknown.startswith("adjtimex: ")
    else:
        # The kernel never lets the error grow beyond 16 s.
        assert 0 <= found.max_error <= 16.0


@pytest.mark.parametrize(
    ("clock", "lack"),
    [
        (Quality(True, 0.5), ""),
        (Quality(True, 0.501), "the clock may be wrong by 0.501 s"),
        (Quality(False, 0.0), "the clock is not synchronised"),
        (
            UNKNOWN,
            "the kernel does not say how good the clock is (adjtimex: Operation not permitted)",
        ),
    ],
)
def test_what_a_clock_lacks_is_said_in_words(clock: Quality, lack: str) -> None:
    assert clock.lack(0.5) == lack
