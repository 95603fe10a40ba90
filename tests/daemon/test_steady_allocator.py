from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from tests.daemon.fakes import HOUR, Inside
from uuidd.core.ids.snowflake import TWITTER_EPOCH
from uuidd.core.ids.ticks import TICKS_PER_SECOND, UNIX_EPOCH
from uuidd.core.timeline import MAX_BLOCK, SteadyBlock
from uuidd.core.wire.methods import SAVE_SECONDS, RefusedError

pytestmark = pytest.mark.usefixtures("autojump_clock")


@pytest.fixture
async def inside(autojump_clock: MockClock) -> Inside:
    """A daemon's inside, just started."""
    return Inside()


async def refusal(inside: Inside, count: int = 1, *, whole: bool = False) -> str:
    """Return the message with which a steady request is refused as ``unavailable``.

    Nothing moves then: neither the steady lane nor one of utc's.
    """
    before = inside.standing()
    with pytest.raises(RefusedError) as caught:
        await inside.take_steady_waiting(count, whole=whole)
    assert caught.value.code == "unavailable"
    assert inside.standing() == before
    return caught.value.message


def after_a_lost_state() -> Inside:
    """An inside whose state was lost a second before it began: 19 s of the 20 are to come."""
    return Inside(lost=True)


def stepped_back(seconds: float, **how: Any) -> Inside:
    """An inside that had given a steady tick when UTC stepped back."""
    inside = Inside(**how)
    inside.save_ahead()
    inside.take_steady()
    inside.wall.step(-seconds)
    return inside


def past_max_lead() -> Inside:
    """An inside whose steady timeline leads UTC by two hours, and one is the most."""
    return stepped_back(2 * HOUR)


REFUSING: list[tuple[Callable[[], Inside], str]] = [
    (
        after_a_lost_state,
        "the state was lost, so steady starts in 19.0 s, after all ids that may have been given out"
        " before",
    ),
    (
        past_max_lead,
        "the steady timeline is 7200.000 s ahead of UTC, and --max-lead is 3600 s; it resumes"
        " when UTC catches up, or after uuidd --reset-steady",
    ),
    (
        partial(stepped_back, 60, rollback="wait"),
        "UTC was set back, and steady waits 60.000 s until UTC catches up",
    ),
    (
        partial(stepped_back, 60, rollback="refuse"),
        "the steady timeline is 60.000 s ahead of UTC, which was set back, and --rollback refuse"
        " gives out nothing until UTC catches up",
    ),
]
"""What stops steady besides a missing save, and the error that a client gets."""

NAMES = ["lost", "max-lead", "wait", "refuse"]


# Blocks


async def test_a_steady_block_tells_what_its_ids_are_made_with() -> None:
    inside = Inside(worker=77)
    inside.save_ahead()
    block = inside.take_steady(100)
    assert block == SteadyBlock(
        inside.wall.now() - 99, 100, inside.timeline.node.value, 77, TWITTER_EPOCH
    )


# What stands in the way


@pytest.mark.parametrize(("make", "message"), REFUSING, ids=NAMES)
async def test_a_refused_steady_request_says_why_and_how_long(
    make: Callable[[], Inside], message: str
) -> None:
    inside = make()
    assert await refusal(inside) == message
    assert await refusal(inside, MAX_BLOCK, whole=True) == message
    assert trio.current_time() == 0


@pytest.mark.parametrize(("make", "message"), REFUSING, ids=NAMES)
async def test_utc_goes_on_while_steady_is_refused(
    make: Callable[[], Inside], message: str
) -> None:
    inside = make()
    async with inside.saving():
        assert await refusal(inside) == message
        block = await inside.take_waiting(1)
        assert await refusal(inside)
        again = await inside.take_waiting(1)
    assert block.node == again.node == inside.timeline.node.value
    assert again.first > block.first
    assert inside.timeline.volatile is None


async def test_after_a_lost_state_steady_ids_begin_past_twenty_seconds() -> None:
    inside = after_a_lost_state()
    begin = inside.steady.held_until
    assert begin == inside.wall.now() + 19 * TICKS_PER_SECOND
    async with inside.saving():
        await trio.sleep(10)
        assert "starts in 9.0 s" in await refusal(inside)
        await trio.sleep(8.5)
        # Less is left than a request waits for.
        block = await inside.take_steady_waiting(10)
        assert block.first == begin
        assert trio.current_time() == pytest.approx(19, abs=1e-3)
        await trio.sleep(1)
        assert inside.take_steady(10).first == inside.wall.now() - 9


async def test_a_lost_state_is_no_reason_any_more_once_ids_came() -> None:
    """After a later step of the clock, the error names that step."""
    inside = Inside(lost=True, rollback="wait")
    async with inside.saving():
        await trio.sleep(20)
        await inside.take_steady_waiting()
        inside.wall.step(-30)
        assert (
            await refusal(inside)
            == "UTC was set back, and steady waits 30.000 s until UTC catches up"
        )
        assert (await told(inside))["held_for"] == 0.0
        assert (await told(inside))["lead"] == 30.0


async def test_a_step_back_is_waited_out_where_that_is_chosen() -> None:
    inside = stepped_back(0.5, rollback="wait")
    last = inside.steady.next - 1
    block = await inside.take_steady_waiting()
    assert trio.current_time() == pytest.approx(0.5, abs=1e-5)
    assert inside.wall.now() >= block.first > last


async def test_a_wait_for_utc_is_bounded_when_it_stands_still() -> None:
    """With --rollback wait, and a UTC that does not come back, a request ends within 0.8 s."""
    inside = stepped_back(0.5, rollback="wait")
    inside.wall.stop()
    assert (
        await refusal(inside) == "UTC was set back, and steady waits 0.500 s until UTC catches up"
    )
    assert 0 < trio.current_time() <= SAVE_SECONDS


# Saves


@pytest.mark.parametrize("hangs", [True, False], ids=["hung", "broken"])
async def test_steady_never_turns_volatile(inside: Inside, hangs: bool) -> None:
    cause = "it is still under way" if hangs else "No space left on device"
    async with inside.saving():
        await trio.sleep(HOUR)
        if hangs:
            inside.disk.gate = trio.Event()
        inside.disk.broken = not hangs
        for waits in (SAVE_SECONDS, 0, 0):
            begun = trio.current_time()
            assert await refusal(inside) == (
                f"the state could not be saved within 0.8 s ({cause}), and v7,"
                " Snowflakes and the other steady kinds need this first; the daemon keeps trying"
            )
            assert trio.current_time() - begun == pytest.approx(waits, abs=1e-6)
        # That of the start.
        assert inside.timeline.openings == 1


# Over the wire


@pytest.mark.parametrize("worker", [None, 0, 1023])
async def test_a_steady_take_is_answered_with_a_map(worker: int | None) -> None:
    inside = Inside(worker=worker)
    inside.save_ahead()
    async with inside.talking() as peer:
        result = (await peer.call("take", "steady", 100)).result
    first = inside.wall.now() - 99
    assert result == {
        "first": first,
        "unix_ms": (first - UNIX_EPOCH) // 10_000,
        "tick_in_ms": (first - UNIX_EPOCH) % 10_000,
        "count": 100,
        "node": inside.timeline.node.value.to_bytes(6, "big"),
        "worker": worker,
        "epoch": 1_288_834_974_657,
    }
    assert inside.service.rpc.ids == 100


async def told(inside: Inside) -> dict[str, Any]:
    """Return what ``status`` reports about steady."""
    async with inside.talking() as peer:
        found: dict[str, Any] = (await peer.call("status")).result["steady"]
    return found


async def test_status_tells_for_how_long_steady_is_held_back() -> None:
    inside = after_a_lost_state()
    for seconds, left in ((0, 19.0), (4, 15.0), (15, 0.0)):
        await trio.sleep(seconds)
        steady = await told(inside)
        assert (steady["held_for"], steady["lead"]) == (left, 0.0)


async def test_status_shows_a_steady_past_its_bound() -> None:
    inside = past_max_lead()
    await refusal(inside)
    steady = await told(inside)
    assert (steady["lead"], steady["max_lead"]) == (7200.0, 3600.0)


async def test_the_horizon_is_counted_on_the_steady_clock() -> None:
    """While a step back is slewed, a horizon of 10 s lasts 20 s; status reports steady time."""
    inside = stepped_back(60)
    assert (await told(inside))["horizon_in"] == 10.0
    await trio.sleep(16)
    assert (await told(inside))["horizon_in"] == 2.0


async def test_status_shows_a_horizon_that_was_passed(inside: Inside) -> None:
    """When saves fail the horizon lies behind: what is left is below zero."""
    async with inside.needing_a_save(broken=True):
        await refusal(inside)
        assert (await told(inside))["horizon_in"] == pytest.approx(0.1 - HOUR - SAVE_SECONDS)


async def test_who_is_woken_late_by_a_save_that_succeeded_is_served(
    inside: Inside, autojump_clock: MockClock
) -> None:
    """A daemon short of the processor refuses nobody for that."""
    async with inside.saving():
        await trio.sleep(HOUR)
        inside.disk.kept_one = partial(autojump_clock.jump, SAVE_SECONDS)
        block = await inside.take_steady_waiting(1)
        assert trio.current_time() == HOUR + SAVE_SECONDS
    assert block.count == 1


async def test_once_a_save_succeeds_steady_requests_wait_for_the_next_again(inside: Inside) -> None:
    gate = inside.disk.gate = trio.Event()
    async with inside.saving():
        await trio.sleep(0.2)
        await refusal(inside)
        inside.disk.gate = None
        gate.set()
        await trio.sleep(1)
        assert (await inside.take_steady_waiting()).count == 1
