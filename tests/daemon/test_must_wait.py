"""A request that says ``wait=false``: it is answered within 0.05 s, if only with ``must_wait``."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import MockClock

from tests.daemon.fakes import UID, Inside, awaited
from uuidd.core.ids.ticks import TICKS_PER_SECOND
from uuidd.core.timeline import MAX_BLOCK
from uuidd.core.wire.methods import SAVE_SECONDS, RefusedError
from uuidd.server.settings import SOON_SECONDS

EITHER = pytest.mark.parametrize("timeline", ["utc", "steady"])


@pytest.fixture
async def inside(autojump_clock: MockClock) -> Inside:
    """A daemon's inside, just started."""
    return Inside()


async def refusal(
    inside: Inside, timeline: str, count: int = 1, *, whole: bool = False
) -> RefusedError:
    """Return the error of a request that does not wait, after a check that it changed nothing."""
    before = inside.standing()
    with pytest.raises(RefusedError) as caught:
        await awaited(inside.allocator.take(timeline, count, whole, uid=UID, wait=False))
    assert inside.standing() == before
    return caught.value


@EITHER
async def test_a_save_that_hangs_is_told_within_50_ms(inside: Inside, timeline: str) -> None:
    async with inside.needing_a_save():
        begun = trio.current_time()
        error = await refusal(inside, timeline)
        assert trio.current_time() == pytest.approx(begun + SOON_SECONDS, abs=1e-6)
        assert (error.code, error.message) == (
            "must_wait",
            "a save of the state has taken 0.05 s so far; ask again with wait",
        )


@EITHER
async def test_a_save_of_some_milliseconds_is_waited_for(inside: Inside, timeline: str) -> None:
    """A request that does not want to wait is not bothered with a disk that works."""
    async with inside.needing_a_save() as saved, trio.open_nursery() as nursery:

        async def ask() -> None:
            block = await awaited(inside.allocator.take(timeline, 1, False, uid=UID, wait=False))
            assert block.count == 1

        nursery.start_soon(ask)
        await trio.sleep(0.04)
        saved.set()


@EITHER
async def test_a_save_that_failed_is_told_with_its_cause(inside: Inside, timeline: str) -> None:
    async with inside.needing_a_save(broken=True):
        error = await refusal(inside, timeline)
    assert (error.code, error.message) == (
        "must_wait",
        "the state could not be saved (No space left on device), and the daemon tries again;"
        " ask again with wait",
    )


async def test_steady_without_a_save_for_long_is_unavailable_at_once(inside: Inside) -> None:
    """What no wait can help is refused for good, and at once."""
    async with inside.needing_a_save(broken=True):
        with pytest.raises(RefusedError):
            await inside.take_steady_waiting()
        await trio.sleep(SAVE_SECONDS)
        begun = trio.current_time()
        error = await refusal(inside, "steady")
        assert error.code == "unavailable"
        assert trio.current_time() == begun


async def test_where_a_volatile_node_serves_there_is_no_wait(inside: Inside) -> None:
    """Once another request has waited in vain, those that do not wait get volatile blocks."""
    async with inside.needing_a_save():
        volatile = await inside.take_waiting()
        begun = trio.current_time()
        block = await inside.take_waiting(wait=False)
        assert block.node == volatile.node
        assert inside.timeline.volatile is not None
        assert trio.current_time() == pytest.approx(begun, abs=1e-6)


async def test_room_that_comes_later_is_told_at_once(inside: Inside) -> None:
    inside.save_ahead()
    inside.use_up()
    error = await refusal(inside, "utc", MAX_BLOCK, whole=True)
    assert (error.code, error.message) == (
        "must_wait",
        "1000000 ticks will be free in 0.100 s; ask again with wait",
    )
    assert trio.current_time() == 0


async def test_room_that_comes_soon_is_waited_for(inside: Inside) -> None:
    inside.save_ahead()
    inside.use_up()
    assert (await inside.take_waiting(400_000, whole=True, wait=False)).count == 400_000
    assert trio.current_time() == pytest.approx(0.04, abs=1e-5)


@pytest.mark.parametrize("wait", [True, False])
async def test_room_that_does_not_come_is_busy_at_once(inside: Inside, wait: bool) -> None:
    """Nobody waits for what cannot come within 0.2 s."""
    inside.save_ahead()
    inside.wall.stop()
    for lane in inside.open.lanes:
        lane.next = inside.wall.now() + TICKS_PER_SECOND
    with pytest.raises(RefusedError, match="1 ticks will not be free") as caught:
        await inside.take_waiting(1, whole=True, wait=wait)
    assert caught.value.code == "busy"
    assert trio.current_time() == 0


async def test_a_user_who_has_had_the_share_hears_when_there_is_more(inside: Inside) -> None:
    inside.save_ahead()
    inside.take(MAX_BLOCK)
    await awaited(inside.allocator.take("utc", MAX_BLOCK, False, uid=UID + 1))
    await trio.sleep(0.1)
    assert inside.take(MAX_BLOCK).count > 999_000
    error = await refusal(inside, "utc")
    assert error.code == "must_wait"
    assert error.message.startswith(f"uid {UID} has used up its share of the ticks, and has some")
    assert trio.current_time() == pytest.approx(0.1, abs=1e-6)


async def test_a_step_back_that_steady_waits_out_is_told(inside: Inside) -> None:
    inside = Inside(rollback="wait")
    inside.save_ahead()
    inside.take_steady()
    inside.wall.step(-0.3)
    error = await refusal(inside, "steady")
    assert (error.code, error.message) == (
        "must_wait",
        "UTC was set back, and steady waits 0.300 s until UTC catches up; ask again with wait",
    )
    assert trio.current_time() == 0


@pytest.mark.parametrize(
    "asked",
    [
        ("take", "utc", 1, False, False),
        ("take", "steady", 1000, True, False),
        ("make", "v1", 1, False),
        ("make", "v7", 1000, False),
        ("make", "ksuid", 1000, False),
    ],
)
async def test_take_and_make_say_it_over_the_wire(inside: Inside, asked: tuple[Any, ...]) -> None:
    async with inside.needing_a_save():
        before = inside.standing()
        async with inside.talking() as peer:
            reply = await peer.call(*asked)
            assert reply.code == "must_wait"
            assert reply.result is None
            assert inside.standing() == before
            assert (inside.service.rpc.requests, inside.service.rpc.ids) == (1, 0)
            assert inside.service.rpc.refused == {"must_wait": 1}
            assert (await peer.call("make", "v4", 1, False)).error is None
