from __future__ import annotations

import contextlib
from collections import Counter
from functools import partial
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from tests.daemon.fakes import HOUR, UID, Inside, MustPause, at_once, awaited
from uuidd.core.timeline import MAX_BLOCK, Block, SteadyBlock
from uuidd.core.timeline.generation import GENERATIONS, LANES
from uuidd.core.timeline.state import Node
from uuidd.core.wire.methods import SAVE_SECONDS, RefusedError
from uuidd.server.allocator import MOST_WAITING
from uuidd.server.settings import ROOM_SECONDS


@pytest.fixture
async def inside(autojump_clock: MockClock) -> Inside:
    """A daemon's inside, just started."""
    return Inside()


EITHER = pytest.mark.parametrize("timeline", ["utc", "steady"])


# Room


@EITHER
async def test_a_whole_block_waits_for_free_ticks(inside: Inside, timeline: str) -> None:
    inside.save_ahead()
    inside.use_up()
    inside.take_steady(MAX_BLOCK)
    block = await awaited(inside.allocator.take(timeline, MAX_BLOCK, True, uid=UID))
    assert block.count == MAX_BLOCK
    assert trio.current_time() == pytest.approx(0.1, abs=1e-5)


async def test_busy_says_what_to_do(inside: Inside) -> None:
    inside.save_ahead()
    inside.use_up()
    inside.wall.stop()
    before = inside.standing()
    with pytest.raises(RefusedError) as caught:
        await inside.take_waiting(MAX_BLOCK, whole=True)
    assert (caught.value.code, caught.value.message) == (
        "busy",
        "1000000 ticks will not be free within 0.2 s; ask for fewer, or try again later",
    )
    assert trio.current_time() <= ROOM_SECONDS
    assert inside.standing() == before


async def test_no_whole_grant_waits_longer_than_a_fifth_of_a_second(inside: Inside) -> None:
    inside.save_ahead()
    served: list[Block] = []
    refused: list[RefusedError] = []

    async def ask() -> None:
        try:
            served.append(await inside.take_waiting(MAX_BLOCK, whole=True))
        except RefusedError as error:
            refused.append(error)

    async with trio.open_nursery() as nursery:
        for _ in range(60):
            nursery.start_soon(ask)
    assert trio.current_time() <= ROOM_SECONDS + 1e-5
    assert ROOM_SECONDS == 0.2
    assert 30 <= len(served) < 60
    assert {error.code for error in refused} == {"busy"}
    assert len(served) + len(refused) == 60


async def test_whole_grants_leave_single_ticks_their_room(inside: Inside) -> None:
    inside.save_ahead()
    inside.use_up()
    for _ in range(100):
        inside.take()
        await trio.sleep(1e-6)


# Steps back


async def test_a_small_step_back_is_waited_out(inside: Inside) -> None:
    inside.save_ahead()
    before = inside.take()
    inside.wall.step(-0.005)
    after = await inside.take_waiting(1, whole=False)
    assert trio.current_time() == pytest.approx(0.005, abs=1e-5)
    assert after.clock_seq == before.clock_seq
    assert after.first > before.first


async def test_a_large_step_back_opens_a_generation_that_waits_for_its_save(
    inside: Inside, caplog: pytest.LogCaptureFixture
) -> None:
    async with inside.saving():
        await inside.use(60)
        before = inside.take()
        inside.wall.step(-HOUR)
        with pytest.raises(MustPause):
            inside.take()
        after = await inside.take_waiting(1, whole=False)
        assert after.clock_seq == before.clock_seq + LANES
        assert after.node == before.node
        assert inside.disk.kept[-1].generation == after.clock_seq // LANES
        assert inside.timeline.openings == 2
        assert "the clock sequence was changed, because UTC is" in caplog.text


@pytest.mark.usefixtures("autojump_clock")
async def test_a_step_back_under_a_fixed_node_keeps_away_from_libuuids_clock_sequence() -> None:
    """The clock sequence that libuuid's file holds at the step is half the ring away."""
    inside = Inside(node=Node(0x00163E000001, "mac eth0"))
    async with inside.saving():
        await inside.use(60)
        inside.libuuid_clock_seq = 0x1261
        inside.wall.step(-10)
        block = await inside.take_waiting(1, whole=False)
    assert (block.node, block.clock_seq >> 8) == (0x00163E000001, (0x1261 >> 8) + GENERATIONS // 2)


# Saves


@EITHER
async def test_a_request_waits_for_the_save_it_needs(inside: Inside, timeline: str) -> None:
    blocks: list[Block | SteadyBlock] = []

    async def ask() -> None:
        blocks.append(await awaited(inside.allocator.take(timeline, 1, False, uid=UID)))

    async with inside.needing_a_save() as saved, trio.open_nursery() as nursery:
        nursery.start_soon(ask)
        await trio.sleep(SAVE_SECONDS - 0.1)
        assert blocks == []
        saved.set()
    assert trio.current_time() == pytest.approx(HOUR + SAVE_SECONDS - 0.1)
    assert blocks[0].node == inside.timeline.node.value


@pytest.mark.parametrize(
    ("broken", "cause"), [(False, "it is still under way"), (True, "No space left on device")]
)
async def test_without_a_save_in_time_a_volatile_node_serves(
    inside: Inside, broken: bool, cause: str, caplog: pytest.LogCaptureFixture
) -> None:
    """When saves hang or fail, a request waits 1 s at most. The node is never saved."""
    async with inside.needing_a_save(broken=broken) as saved:
        block = await inside.take_waiting(1, whole=False)
        assert trio.current_time() == HOUR + SAVE_SECONDS <= HOUR + 1
        assert f"a volatile node (no save within {SAVE_SECONDS} s ({cause}))" in caplog.text
        inside.disk.broken = False
        saved.set()
        await trio.sleep(20)
    assert {state.node for state in inside.disk.kept} == {inside.timeline.node}
    assert block.node != inside.timeline.node.value


async def test_after_a_save_the_stored_node_serves_again(
    inside: Inside, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "uuidd")
    async with inside.needing_a_save(broken=True):
        volatile = await inside.take_waiting(1, whole=False)
        await trio.sleep(20)
        inside.disk.broken = False
        await trio.sleep(5)
        again = inside.take()
        assert again.node == inside.timeline.node.value
        assert again.first > volatile.first
        assert inside.timeline.volatile is None
        assert "so v1 and v6 come from the stored node again" in caplog.messages[-1]


async def test_many_who_wait_for_a_save_turn_volatile_together(inside: Inside) -> None:
    async with inside.needing_a_save():
        blocks: list[Block] = []

        async def ask() -> None:
            blocks.append(await inside.take_waiting(1, whole=False))

        async with trio.open_nursery() as nursery:
            for _ in range(20):
                nursery.start_soon(ask)
        assert trio.current_time() == pytest.approx(HOUR + SAVE_SECONDS, abs=0.001)
        assert len({block.node for block in blocks}) == 1
        assert len({block.first for block in blocks}) == 20


# Stopping


@EITHER
@pytest.mark.parametrize("wait", [True, False])
async def test_a_stopping_daemon_is_unavailable(inside: Inside, timeline: str, wait: bool) -> None:
    inside.timelines.close()
    with pytest.raises(RefusedError) as caught:
        await awaited(inside.allocator.take(timeline, 1, False, uid=UID, wait=wait))
    assert (caught.value.code, caught.value.message) == (
        "unavailable",
        "the daemon is stopping; try again",
    )
    assert trio.current_time() == 0


async def test_who_waits_when_the_daemon_stops_is_told(inside: Inside) -> None:
    async with inside.needing_a_save() as saved:
        caught: list[RefusedError] = []

        async def ask() -> None:
            with pytest.raises(RefusedError) as raised:
                await inside.take_waiting(1, whole=False)
            caught.append(raised.value)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask)
            await trio.sleep(0.5)
            nursery.start_soon(partial(inside.saver.finish, 10))
            await trio.sleep(0.1)
            saved.set()
        assert [error.code for error in caught] == ["unavailable"]


# Shares


async def drawing(
    inside: Inside, got: Counter[int], uid: int, *, count: int, whole: bool, pause: float = 0.0
) -> None:
    """Take again and again for *uid*, and count what it got."""
    while True:
        try:
            block = await awaited(inside.allocator.take("utc", count, whole, uid=uid))
        except RefusedError:
            got[-uid] += 1
        else:
            got[uid] += block.count
        await trio.sleep(pause)


async def after_a_second(inside: Inside, **drawers: list[dict[str, Any]]) -> Counter[int]:
    """Let drawers of two users draw for a second, and give what each got, and its refusals."""
    inside.save_ahead()
    inside.use_up()
    got: Counter[int] = Counter()
    with trio.move_on_after(1):
        async with trio.open_nursery() as nursery:
            for name, asked in drawers.items():
                for each in asked:
                    draw = partial(drawing, inside, got, len(name), **each)
                    nursery.start_soon(draw)
    return got


async def test_two_greedy_users_get_the_same(inside: Inside) -> None:
    """However many requests each has under way: here 15 and 3 of a million ticks."""
    asked = {"count": MAX_BLOCK, "whole": True, "pause": 0.001}
    got = await after_a_second(inside, x=[asked] * 15, xx=[asked] * 9)
    assert got[1] == pytest.approx(got[2], rel=0.15)
    assert got[1] + got[2] == pytest.approx(150_000_000, rel=0.15)


async def test_a_user_who_wants_less_than_his_share_gets_it_beside_a_greedy_one(
    inside: Inside,
) -> None:
    """Each of its requests is served, within 0.2 s."""
    greedy = {"count": MAX_BLOCK, "whole": True, "pause": 0.0001}
    modest = {"count": 100_000, "whole": True, "pause": 0.01}
    got = await after_a_second(inside, x=[greedy] * 40, xx=[modest])
    assert got[-2] == 0
    assert got[2] > 15 * 100_000


@pytest.mark.parametrize("count", [1, MAX_BLOCK])
async def test_short_grants_are_shared_too(inside: Inside, count: int) -> None:
    """One user asks for *count* every 100 us, another for a quarter of what there is."""
    greedy = {"count": count, "whole": False, "pause": 0.0001}
    modest = {"count": 2500, "whole": False, "pause": 0.00137}
    got = await after_a_second(inside, x=[greedy], xx=[modest])
    assert got[2] > 0.3 * 2500 / 0.00137
    assert got[1] > 0.1 * min(10_000_000, count / 0.0001)


async def test_a_user_whose_share_is_used_up_is_told_so(inside: Inside) -> None:
    inside.save_ahead()
    inside.use_up()
    refused: list[str] = []

    async def ask_twice(uid: int) -> None:
        try:
            for count in (MAX_BLOCK, 2):
                await awaited(inside.allocator.take("utc", count, True, uid=uid))
        except RefusedError as error:
            refused.append(f"{error.code}: " + error.message.removeprefix(f"uid {uid} "))

    async with trio.open_nursery() as nursery:
        for uid in range(1, 41):
            nursery.start_soon(ask_twice, uid)
    assert (
        "busy: has used up its share of the ticks, one of 41; ask for fewer, or try again later"
        in refused
    )


async def test_requests_that_have_waited_do_not_count(inside: Inside) -> None:
    """Nor do they make room for more than the limit."""
    inside.save_ahead()
    inside.use_up()
    inside.limits.waiting_per_uid = 1

    async def take() -> None:
        await awaited(inside.allocator.take("utc", MAX_BLOCK, True, uid=1))

    for _ in range(3):
        with pytest.raises(MustPause):
            at_once(inside.allocator.take("utc", MAX_BLOCK, True, uid=1))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(take)
            await trio.testing.wait_all_tasks_blocked()
            with pytest.raises(RefusedError, match="uid 1 has 1 requests waiting"):
                at_once(inside.allocator.take("utc", MAX_BLOCK, True, uid=1))
            nursery.cancel_scope.cancel()


@pytest.mark.parametrize(
    ("lacks_a_save", "most", "what"),
    [(False, 3, "waiting for free ticks, the most"), (True, MOST_WAITING, "waiting, the")],
)
async def test_only_so_many_requests_of_one_user_wait(
    inside: Inside, lacks_a_save: bool, most: int, what: str
) -> None:
    inside.save_ahead()
    inside.use_up()
    if lacks_a_save:
        # Another generation is to serve, and nobody saves it.
        inside.wall.step(-HOUR)
    inside.limits.waiting_per_uid = 3
    with contextlib.ExitStack() as stack:
        for _ in range(most):
            waiting = inside.allocator.take("utc", MAX_BLOCK, True, uid=1)
            stack.callback(waiting.close)
            next(waiting)
        with pytest.raises(RefusedError, match=f"uid 1 has {most} requests {what}") as caught:
            at_once(inside.allocator.take("utc", MAX_BLOCK, True, uid=1))
        assert caught.value.code == "busy"
        with pytest.raises(MustPause):
            at_once(inside.allocator.take("utc", MAX_BLOCK, True, uid=2))
