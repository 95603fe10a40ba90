from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from tests.daemon.fakes import HOUR, Inside
from uuidd.core.ids.ticks import TICKS_PER_SECOND
from uuidd.core.timeline import MAX_BLOCK, Block, NoneFree
from uuidd.core.timeline.outcomes import NeedsSave
from uuidd.core.timeline.state import Node
from uuidd.core.wire.methods import SAVE_SECONDS, RefusedError
from uuidd.server.settings import ROOM_SECONDS


@pytest.fixture
async def inside(autojump_clock: MockClock) -> Inside:
    """A daemon's inside, just started."""
    return Inside()


def settle(inside: Inside) -> None:
    """Let a horizon of 10 s be saved."""
    state = inside.timeline.begin_save(now=inside.wall.now(), reach=10 * TICKS_PER_SECOND)
    inside.timeline.end_save(state, completed=True)


def fill(inside: Inside) -> None:
    """Take all the room that there is for whole grants."""
    for _ in range(15):
        inside.take(MAX_BLOCK, whole=True)


# Room


async def test_a_whole_grant_waits_for_room(inside: Inside, autojump_clock: MockClock) -> None:
    """When all lanes are full, a million ticks come 0.1 s later, when they have passed."""
    settle(inside)
    fill(inside)
    block = await inside.take_waiting(MAX_BLOCK, whole=True)
    assert block.count == MAX_BLOCK
    assert trio.current_time() == pytest.approx(0.1, abs=1e-5)


async def test_no_whole_grant_waits_longer_than_a_fifth_of_a_second(
    inside: Inside, autojump_clock: MockClock
) -> None:
    """Of too many who ask at once each is served, or refused as busy, within 0.2 s."""
    settle(inside)
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


async def test_busy_says_what_to_do(inside: Inside, autojump_clock: MockClock) -> None:
    """Who gets ``busy`` reads how many ticks were not free, and for how long."""
    settle(inside)
    fill(inside)
    inside.wall.stop()
    with pytest.raises(
        RefusedError, match=r"1000000 ticks will not be free within 0\.2 s"
    ) as caught:
        await inside.take_waiting(MAX_BLOCK, whole=True)
    assert caught.value.code == "busy"
    assert trio.current_time() <= ROOM_SECONDS


async def test_a_wait_that_would_be_too_long_is_refused_at_once(
    inside: Inside, autojump_clock: MockClock
) -> None:
    """Nobody waits for what cannot come within 0.2 s."""
    settle(inside)
    inside.wall.stop()
    for lane in inside.open.lanes:
        lane.next = inside.wall.now() + TICKS_PER_SECOND
    with pytest.raises(RefusedError, match="1 ticks will not be free"):
        await inside.take_waiting(1, whole=True)
    assert trio.current_time() == 0


async def test_whole_grants_leave_single_ticks_their_room(
    inside: Inside, autojump_clock: MockClock
) -> None:
    """With all room for whole grants taken, single ticks are served at once."""
    settle(inside)
    fill(inside)
    for _ in range(100):
        inside.take()
        await trio.sleep(1e-6)


async def test_a_refusal_for_want_of_room_moves_no_lane(
    inside: Inside, autojump_clock: MockClock
) -> None:
    """Whoever is refused as busy leaves every lane's next where it was."""
    settle(inside)
    fill(inside)
    inside.wall.stop()
    before = inside.lanes
    with pytest.raises(RefusedError):
        await inside.take_waiting(MAX_BLOCK, whole=True)
    assert inside.lanes == before


# Steps back


async def test_a_small_step_back_is_waited_out(inside: Inside, autojump_clock: MockClock) -> None:
    """After a step of 5 ms back a request waits 5 ms, and no clock sequence is spent."""
    settle(inside)
    before = inside.take()
    inside.wall.step(-0.005)
    after = await inside.take_waiting(1, whole=False)
    assert trio.current_time() == pytest.approx(0.005, abs=1e-5)
    assert after.clock_seq == before.clock_seq
    assert after.first > before.first


async def test_a_large_step_back_opens_a_generation_that_waits_for_its_save(
    inside: Inside, autojump_clock: MockClock
) -> None:
    """After a step of an hour back the next generation serves, once it is saved."""
    async with inside.saving():
        await inside.use(60)
        before = inside.take()
        inside.wall.step(-HOUR)
        with pytest.raises(NeedsSave):
            inside.take()
        after = await inside.take_waiting(1, whole=False)
        assert after.clock_seq >> 4 == (before.clock_seq >> 4) + 1
        assert after.node == before.node
        assert inside.disk.kept[-1].generation == after.clock_seq >> 4
        assert [opening.reason for opening in inside.openings[1:]] == ["UTC stepped back"]


async def test_a_step_back_under_a_fixed_node_keeps_away_from_libuuids_clock_sequence(
    autojump_clock: MockClock,
) -> None:
    """The clock sequence that libuuid's file holds at the step is half the ring away."""
    inside = Inside(node=Node(0x00163E000001, "mac eth0"))
    async with inside.saving():
        await inside.use(60)
        inside.libuuid_clock_seq = 0x1261
        inside.wall.step(-10)
        block = await inside.take_waiting(1, whole=False)
    assert (block.node, block.clock_seq >> 4) == (0x00163E000001, (0x1261 >> 4) + 512)


# Saves


async def test_a_request_waits_for_the_save_it_needs(
    inside: Inside, autojump_clock: MockClock
) -> None:
    """A request past the horizon is served as soon as the save completes, on the stored node."""
    async with inside.saving():
        await trio.sleep(HOUR)
        inside.disk.gate = trio.Event()
        blocks: list[Block] = []

        async def ask() -> None:
            blocks.append(await inside.take_waiting(1, whole=False))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask)
            await trio.sleep(SAVE_SECONDS - 0.1)
            assert blocks == []
            inside.disk.gate.set()
        assert trio.current_time() == pytest.approx(HOUR + SAVE_SECONDS - 0.1)
        assert blocks[0].node == inside.timeline.node.value


async def test_after_a_second_without_a_save_a_volatile_node_serves(
    inside: Inside, autojump_clock: MockClock
) -> None:
    """When a save hangs, a request waits 1 s at most, and gets ticks of a node never saved."""
    async with inside.saving():
        await trio.sleep(HOUR)
        inside.disk.gate = trio.Event()
        block = await inside.take_waiting(1, whole=False)
        assert trio.current_time() == HOUR + SAVE_SECONDS <= HOUR + 1
        assert block.node != inside.timeline.node.value
        assert (
            inside.openings[-1].reason == f"no save within {SAVE_SECONDS} s (it is still under way)"
        )


async def test_a_failing_save_turns_volatile_too_and_says_why(
    inside: Inside, autojump_clock: MockClock
) -> None:
    """When saves fail for that long, the reason of the volatile node has the cause."""
    async with inside.saving():
        await trio.sleep(HOUR)
        inside.disk.broken = True
        block = await inside.take_waiting(1, whole=False)
        assert trio.current_time() == HOUR + SAVE_SECONDS
        assert block.node != inside.timeline.node.value
        assert (
            inside.openings[-1].reason
            == f"no save within {SAVE_SECONDS} s (No space left on device)"
        )


async def test_a_volatile_node_is_never_saved(inside: Inside, autojump_clock: MockClock) -> None:
    """What is saved while a volatile node serves is the stored node."""
    async with inside.saving():
        await trio.sleep(HOUR)
        inside.disk.broken = True
        block = await inside.take_waiting(1, whole=False)
        inside.disk.broken = False
        await trio.sleep(20)
    assert {state.node for state in inside.disk.kept} == {inside.timeline.node}
    assert block.node != inside.timeline.node.value


async def test_a_volatile_node_serves_without_another_wait(
    inside: Inside, autojump_clock: MockClock
) -> None:
    """Only the first request waits; those after it are served at once."""
    async with inside.saving():
        await trio.sleep(HOUR)
        inside.disk.broken = True
        await inside.take_waiting(1, whole=False)
        begun = trio.current_time()
        for _ in range(10):
            await trio.sleep(0.5)
            inside.take()
        assert trio.current_time() == begun + 5


async def test_after_a_save_the_stored_node_serves_again(
    inside: Inside, autojump_clock: MockClock
) -> None:
    """Once a save succeeds the volatile node is left, and ticks go on rising."""
    async with inside.saving():
        await trio.sleep(HOUR)
        inside.disk.broken = True
        volatile = await inside.take_waiting(1, whole=False)
        await trio.sleep(20)
        inside.disk.broken = False
        await trio.sleep(5)
        again = inside.take()
        assert again.node == inside.timeline.node.value
        assert again.first > volatile.first
        assert inside.timeline.volatile is None
        assert inside.openings[-1].reason == "saved again"


async def test_after_a_save_that_hung_the_stored_node_serves_again(
    inside: Inside, autojump_clock: MockClock
) -> None:
    """Once a save that hung for a minute completes, the volatile node is left in bounded time."""
    async with inside.saving():
        await trio.sleep(HOUR)
        inside.disk.gate = trio.Event()
        await inside.use(60)
        assert inside.timeline.volatile is not None
        inside.disk.gate.set()
        await inside.use(11)
        assert inside.timeline.volatile is None


async def test_many_who_wait_for_a_save_turn_volatile_together(
    inside: Inside, autojump_clock: MockClock
) -> None:
    """Those who wait for one save are all served from one volatile node."""
    async with inside.saving():
        await trio.sleep(HOUR)
        inside.disk.gate = trio.Event()
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


async def test_a_stopping_daemon_is_unavailable(inside: Inside, autojump_clock: MockClock) -> None:
    """Who asks a daemon whose timeline is closed gets ``unavailable``, at once."""
    inside.timeline.close()
    with pytest.raises(RefusedError, match="the daemon is stopping") as caught:
        await inside.take_waiting(1, whole=False)
    assert caught.value.code == "unavailable"
    assert trio.current_time() == 0


async def test_who_waits_when_the_daemon_stops_is_told(
    inside: Inside, autojump_clock: MockClock
) -> None:
    """A request that waits for a save when the daemon stops gets ``unavailable``."""
    async with inside.saving():
        await trio.sleep(HOUR)
        inside.disk.gate = trio.Event()
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
            inside.disk.gate.set()
        assert [error.code for error in caught] == ["unavailable"]


# Shares


async def drawing(
    inside: Inside, got: Counter[int], uid: int, *, count: int, whole: bool, pause: float = 0.0
) -> None:
    """Take again and again for *uid*, and count what it got."""
    while True:
        try:
            block = await inside.allocator.take_waiting("utc", count, whole, uid=uid)
        except RefusedError:
            got[-uid] += 1
        else:
            got[uid] += block.count
        await trio.sleep(pause)


async def after_a_second(inside: Inside, **drawers: list[dict[str, Any]]) -> Counter[int]:
    """Let drawers of two users draw for a second, and give what each got, and its refusals."""
    settle(inside)
    fill(inside)
    got: Counter[int] = Counter()
    with trio.move_on_after(1):
        async with trio.open_nursery() as nursery:
            for name, asked in drawers.items():
                for each in asked:
                    draw = partial(drawing, inside, got, len(name), **each)
                    nursery.start_soon(draw)
    return got


async def test_two_greedy_users_get_the_same(inside: Inside, autojump_clock: MockClock) -> None:
    """However many requests each has under way: here 15 and 3 of a million ticks."""
    asked = {"count": MAX_BLOCK, "whole": True, "pause": 0.001}
    got = await after_a_second(inside, x=[asked] * 15, xx=[asked] * 9)
    assert got[1] == pytest.approx(got[2], rel=0.15)
    assert got[1] + got[2] == pytest.approx(150_000_000, rel=0.15)


async def test_a_user_who_wants_less_than_his_share_gets_it_beside_a_greedy_one(
    inside: Inside, autojump_clock: MockClock
) -> None:
    """Each of his requests is served, within 0.2 s."""
    greedy = {"count": MAX_BLOCK, "whole": True, "pause": 0.0001}
    modest = {"count": 100_000, "whole": True, "pause": 0.01}
    got = await after_a_second(inside, x=[greedy] * 40, xx=[modest])
    assert got[-2] == 0
    assert got[2] > 15 * 100_000


@pytest.mark.parametrize("count", [1, MAX_BLOCK])
async def test_short_grants_are_shared_too(
    inside: Inside, count: int, autojump_clock: MockClock
) -> None:
    """One asks for *count* every 10 us, another for a quarter of what there is."""
    greedy = {"count": count, "whole": False, "pause": 0.00001}
    modest = {"count": 2500, "whole": False, "pause": 0.00137}
    got = await after_a_second(inside, x=[greedy], xx=[modest])
    assert got[2] > 0.3 * 2500 / 0.00137
    assert got[1] > 0.1 * min(10_000_000, count / 0.00001)


async def test_who_has_had_his_share_hears_so(inside: Inside, autojump_clock: MockClock) -> None:
    """He is told which share of what it was, and what to do."""
    settle(inside)
    fill(inside)
    for uid in (1, 2):
        await inside.allocator.take_waiting("utc", MAX_BLOCK, True, uid=uid)
    inside.allocator._whole.draw(1, asked=1, given=30_000_000, at=inside.clock.read().elapsed)
    with pytest.raises(RefusedError) as caught:
        await inside.allocator.take_waiting("utc", 2, True, uid=1)
    assert (caught.value.code, caught.value.message) == (
        "busy",
        "uid 1 has used up its share of the ticks, one of 2; ask for fewer, or try again later",
    )


async def test_only_so_many_requests_of_one_user_wait_for_room(
    inside: Inside, autojump_clock: MockClock
) -> None:
    """One more is refused at once, and says why; another user's may wait."""
    settle(inside)
    fill(inside)
    inside.limits.waiting_per_uid = 3
    take = partial(inside.allocator.take_waiting, "utc", MAX_BLOCK, True)
    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(partial(take, uid=1))
        await trio.testing.wait_all_tasks_blocked()
        with pytest.raises(
            RefusedError, match="uid 1 has 3 requests waiting for free ticks"
        ) as caught:
            inside.allocator.take("utc", MAX_BLOCK, True, uid=1)
        assert caught.value.code == "busy"
        with pytest.raises(NoneFree):
            inside.allocator.take("utc", MAX_BLOCK, True, uid=2)
