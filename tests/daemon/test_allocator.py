"""Blocks as clients get them: at once, or after a bounded wait, or an error that says why."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from tests.daemon.fakes import HOUR, UID, Inside, MustPause, at_once, awaited, meanwhile
from uuidd.core.ids.ticks import TICKS_PER_SECOND
from uuidd.core.timeline.generation import GENERATIONS
from uuidd.core.timeline.outcomes import MAX_BLOCK, Block, SteadyBlock
from uuidd.core.timeline.state import Node
from uuidd.core.wire.methods import SAVE_SECONDS, RefusedError
from uuidd.server.allocator import LEAST_WAIT, MOST_WAITING
from uuidd.server.settings import ROOM_SECONDS, SOON_SECONDS
from uuidd.server.trust import Quality

pytestmark = pytest.mark.usefixtures("autojump_clock")

EITHER = pytest.mark.parametrize("timeline", ["utc", "steady"])

HANGS_OR_FAILS = pytest.mark.parametrize(
    ("broken", "cause"), [(False, "it is still under way"), (True, "No space left on device")]
)

ALL = (MAX_BLOCK, True)
"""As many ticks as one request can ask for, and no fewer."""

NEVER_SAVED = (
    "unavailable: the state could not be saved within 0.8 s ({}), and v7, Snowflakes and the other"
    " steady kinds need this first; the daemon keeps trying"
)


@pytest.fixture
async def inside(autojump_clock: MockClock) -> Inside:
    """A daemon's inside, just started."""
    return Inside()


@pytest.fixture
async def full(autojump_clock: MockClock) -> Inside:
    """An inside without free ticks for whole blocks, that needs no save."""
    return used_up()


def used_up(*, stopped: bool = False) -> Inside:
    """An inside without free ticks for whole blocks. While UTC is *stopped*, none become free."""
    inside = Inside(ahead=10)
    inside.use_up()
    inside.take_steady(MAX_BLOCK)
    if stopped:
        inside.wall.stop()
    return inside


def taken_up_to_a_second_ahead() -> Inside:
    """An inside whose lanes are ahead of a UTC that stands still."""
    inside = Inside(ahead=10)
    inside.wall.stop()
    for lane in inside.open.lanes:
        lane.next = inside.wall.now() + TICKS_PER_SECOND
    return inside


def stepped_back(seconds: float, *, stopped: bool = False, **how: Any) -> Inside:
    """An inside that had given a steady tick when UTC stepped back."""
    inside = Inside(ahead=10, **how)
    inside.take_steady()
    inside.wall.step(-seconds)
    if stopped:
        inside.wall.stop()
    return inside


def after_a_lost_state() -> Inside:
    """An inside whose state was lost a second before it began: 19 s of the 20 are to come."""
    return Inside(lost=True)


def stopping() -> Inside:
    """An inside that gives out nothing any more."""
    inside = Inside()
    inside.timelines.close()
    return inside


def without_sync(*, synchronised: bool, max_error: float) -> Inside:
    """An inside that was started with --require-sync 0.5 on a host whose clock is so."""
    return Inside(ahead=10, require_sync=0.5, quality=Quality(synchronised, max_error))


WITHHELD = (
    "and --require-sync withholds the steady kinds after a start until its error is at most 0.5 s"
)

STOPPING = "unavailable: the daemon is stopping; try again"

STEADY_REFUSED: dict[str, tuple[Callable[[], Inside], str]] = {
    "lost": (
        after_a_lost_state,
        "unavailable: the state was lost, so the steady kinds begin in 19.0 s, after all ids that"
        " may have been given out before",
    ),
    "max-lead": (
        partial(stepped_back, 2 * HOUR),
        "unavailable: the steady timeline is 7200.000 s ahead of UTC, and --max-lead is 3600 s; it"
        " resumes when UTC catches up, or after uuidd --reset-steady",
    ),
    "wait": (
        partial(stepped_back, 60, rollback="wait"),
        "unavailable: UTC was set back, and the steady kinds wait 60.000 s for it to catch up",
    ),
    "refuse": (
        partial(stepped_back, 60, rollback="refuse"),
        "unavailable: the steady timeline is 60.000 s ahead of UTC, which was set back, and"
        " --rollback refuse gives out nothing until UTC catches up",
    ),
    "not synchronised": (
        partial(without_sync, synchronised=False, max_error=16.0),
        f"unavailable: the clock is not synchronised, {WITHHELD}",
    ),
    "wrong": (
        partial(without_sync, synchronised=True, max_error=0.75),
        f"unavailable: the clock may be wrong by 0.750 s, {WITHHELD}",
    ),
}
"""What stops steady besides a missing save, and the error that a client gets at once."""


async def refusal(inside: Inside, *asked: Any, uid: int = UID) -> str:
    """Return the error of a request for a block, which changes nothing."""
    before = inside.standing()
    with pytest.raises(RefusedError) as caught:
        await awaited(inside.allocator.take(*asked, uid=uid))
    assert inside.standing() == before
    return f"{caught.value.code}: {caught.value.message}"


@pytest.mark.parametrize(
    ("make", "asked", "error", "seconds"),
    [
        *[
            (make, ("steady", *what), error, 0)
            for make, error in STEADY_REFUSED.values()
            for what in ((1, False), ALL)
        ],
        *[
            (stopping, (timeline, 1, False, wait), STOPPING, 0)
            for timeline in ("utc", "steady")
            for wait in (True, False)
        ],
        (
            partial(stepped_back, 0.5, stopped=True, rollback="wait"),
            ("steady", 1, False),
            "unavailable: UTC was set back, and the steady kinds wait 0.500 s for it to catch up",
            0.5,
        ),
        (
            partial(stepped_back, 0.3, rollback="wait"),
            ("steady", 1, False, False),
            "must_wait: UTC was set back, and the steady kinds wait 0.300 s for it to catch up;"
            " ask again with wait",
            0,
        ),
        (
            partial(used_up, stopped=True),
            ("utc", *ALL),
            "busy: 1000000 ticks will not be free within 0.2 s; ask for fewer, or try again later",
            ROOM_SECONDS,
        ),
        (
            used_up,
            ("utc", *ALL, False),
            "must_wait: 1000000 ticks will be free in 0.100 s; ask again with wait",
            0,
        ),
        *[
            (
                taken_up_to_a_second_ahead,
                ("utc", 1, True, wait),
                "busy: 1 ticks will not be free within 0.2 s; ask for fewer, or try again later",
                0,
            )
            for wait in (True, False)
        ],
    ],
)
async def test_a_refused_request_says_why_and_moves_nothing(
    make: Callable[[], Inside], asked: tuple[Any, ...], error: str, seconds: float
) -> None:
    assert await refusal(make(), *asked) == error
    assert trio.current_time() == pytest.approx(seconds, abs=1e-5)


@EITHER
async def test_a_whole_block_waits_for_free_ticks(full: Inside, timeline: str) -> None:
    block = await awaited(full.allocator.take(timeline, *ALL, uid=UID))
    assert block.count == MAX_BLOCK
    assert trio.current_time() == pytest.approx(0.1, abs=1e-5)


async def test_room_that_comes_soon_is_waited_for_in_any_case(full: Inside) -> None:
    assert (await full.take_waiting(400_000, whole=True, wait=False)).count == 400_000
    assert trio.current_time() == pytest.approx(0.04, abs=1e-5)


async def test_no_whole_grant_waits_longer_than_a_fifth_of_a_second(inside: Inside) -> None:
    inside.save_ahead()
    outcomes: list[str] = []

    async def ask() -> None:
        try:
            await inside.take_waiting(MAX_BLOCK, whole=True)
            outcomes.append("served")
        except RefusedError as error:
            outcomes.append(error.code)

    async with trio.open_nursery() as nursery:
        for _ in range(60):
            nursery.start_soon(ask)
    assert trio.current_time() <= ROOM_SECONDS + 1e-5
    assert ROOM_SECONDS == 0.2
    assert set(outcomes) == {"served", "busy"}
    assert 30 <= outcomes.count("served") < 60 == len(outcomes)


async def test_a_step_back_under_a_fixed_node_keeps_away_from_libuuids_clock_sequence() -> None:
    """The clock sequence that libuuid's file holds at the step is half the ring away."""
    inside = Inside(node=Node(0x00163E000001, "mac eth0"))
    async with inside.saving():
        await inside.use(60)
        inside.libuuid_clock_seq = 0x1261
        inside.wall.step(-10)
        block = await inside.take_waiting()
    assert (block.node, block.clock_seq >> 8) == (0x00163E000001, (0x1261 >> 8) + GENERATIONS // 2)


async def test_another_clock_sequence_is_logged_at_once(caplog: pytest.LogCaptureFixture) -> None:
    """Also where no save follows, which logs it too."""
    inside = Inside(ahead=10)
    inside.take()
    inside.wall.step(-60)
    with pytest.raises(MustPause):
        inside.take()
    assert "the clock sequence was changed, because UTC is 60.000 s behind" in caplog.text


async def test_steady_waits_out_a_step_back_where_that_is_chosen() -> None:
    inside = stepped_back(0.5, rollback="wait")
    last = inside.steady.next - 1
    block = await inside.take_steady_waiting()
    assert trio.current_time() == pytest.approx(0.5, abs=1e-5)
    assert inside.wall.now() >= block.first > last


async def test_the_rest_of_the_time_after_a_lost_state_is_waited_for() -> None:
    inside = after_a_lost_state()
    begin = inside.steady.held_until
    async with inside.saving():
        await trio.sleep(18.5)
        block = await inside.take_steady_waiting(10)
    assert block.first == begin
    assert trio.current_time() == pytest.approx(19, abs=1e-3)


@pytest.mark.parametrize("make", [make for make, _ in STEADY_REFUSED.values()])
async def test_utc_goes_on_while_steady_is_refused(make: Callable[[], Inside]) -> None:
    inside = make()
    await refusal(inside, "steady", 1, False)
    assert inside.take().node == inside.timeline.node.value


@pytest.mark.parametrize(
    ("make", "seconds", "shown"),
    [
        (after_a_lost_state, 0, {"held_for": 19.0, "lead": 0.0}),
        (after_a_lost_state, 4, {"held_for": 15.0, "lead": 0.0}),
        (after_a_lost_state, 19, {"held_for": 0.0, "lead": 0.0}),
        (partial(stepped_back, 2 * HOUR), 0, {"lead": 7200.0, "max_lead": 3600.0}),
        # While a step back is slewed, a horizon of 10 s lasts 20 s.
        (partial(stepped_back, 60), 0, {"horizon_in": 10.0}),
        (partial(stepped_back, 60), 16, {"horizon_in": 2.0}),
    ],
)
async def test_status_shows_how_steady_stands_to_utc(
    make: Callable[[], Inside], seconds: float, shown: dict[str, float]
) -> None:
    inside = make()
    await trio.sleep(seconds)
    told = inside.report.status()["steady"]
    assert {name: told[name] for name in shown} == shown


@EITHER
@pytest.mark.parametrize(("wait", "seconds"), [(True, SAVE_SECONDS), (False, SOON_SECONDS)])
async def test_a_request_waits_for_the_save_it_needs(
    inside: Inside, timeline: str, wait: bool, seconds: float
) -> None:
    """One that does not want to wait is not bothered with a disk that works."""
    blocks: list[Block | SteadyBlock] = []

    async def ask() -> None:
        blocks.append(await awaited(inside.allocator.take(timeline, 1, False, wait, uid=UID)))

    async with inside.needing_a_save() as saved, trio.open_nursery() as nursery:
        nursery.start_soon(ask)
        await trio.sleep(seconds - 0.01)
        assert blocks == []
        saved.set()
    assert trio.current_time() == pytest.approx(HOUR + seconds - 0.01)
    assert blocks[0].node == inside.timeline.node.value


@EITHER
@pytest.mark.parametrize(
    ("broken", "error"),
    [
        (False, "must_wait: a save of the state has taken 0.05 s so far; ask again with wait"),
        (
            True,
            "must_wait: the state could not be saved (No space left on device), and the daemon"
            " tries again; ask again with wait",
        ),
    ],
)
async def test_who_does_not_wait_is_told_of_a_missing_save_within_50_ms(
    inside: Inside, timeline: str, broken: bool, error: str
) -> None:
    async with inside.needing_a_save(broken=broken):
        assert await refusal(inside, timeline, 1, False, False) == error
        assert trio.current_time() == pytest.approx(HOUR + SOON_SECONDS, abs=1e-6)


@HANGS_OR_FAILS
async def test_without_a_save_in_time_a_volatile_node_serves(
    inside: Inside, broken: bool, cause: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A request waits 1 s at most. All get the same node, which is never saved."""
    blocks: list[Block] = []

    async def ask(wait: bool) -> None:
        blocks.append(await inside.take_waiting(wait=wait))

    async with inside.needing_a_save(broken=broken) as saved:
        async with trio.open_nursery() as nursery:
            for _ in range(20):
                nursery.start_soon(ask, True)
        # From here on nobody waits, whether willing to or not.
        await ask(wait=False)
        assert trio.current_time() == pytest.approx(HOUR + 0.8, abs=0.001)
        assert f"a volatile node (no save within 0.8 s ({cause}))" in caplog.text
        inside.disk.broken = False
        saved.set()
        await trio.sleep(20)
    assert {state.node for state in inside.disk.kept} == {inside.timeline.node}
    [node] = {block.node for block in blocks}
    assert node != inside.timeline.node.value
    assert len({block.first for block in blocks}) == 21


@HANGS_OR_FAILS
async def test_steady_never_turns_volatile(inside: Inside, broken: bool, cause: str) -> None:
    async with inside.needing_a_save(broken=broken):
        for waits, wait in ((SAVE_SECONDS, True), (0, True), (0, False)):
            begun = trio.current_time()
            told = await refusal(inside, "steady", 1, False, wait)
            assert told == NEVER_SAVED.format(cause)
            assert trio.current_time() - begun == pytest.approx(waits, abs=1e-6)
        # That of the start.
        assert inside.timeline.openings == 1
        # The horizon lies behind, so what is left is below zero.
        left = inside.report.status()["steady"]["horizon_in"]
        assert left == pytest.approx(0.1 - HOUR - SAVE_SECONDS)


async def test_who_is_woken_late_by_a_save_that_succeeded_is_served(
    inside: Inside, autojump_clock: MockClock
) -> None:
    """A daemon short of the processor refuses nobody for that."""
    async with inside.saving():
        await trio.sleep(HOUR)
        inside.disk.kept_one = partial(autojump_clock.jump, SAVE_SECONDS)
        block = await inside.take_steady_waiting()
        assert trio.current_time() == HOUR + SAVE_SECONDS
    assert block.count == 1


async def test_once_a_save_succeeds_steady_requests_wait_for_the_next_again(inside: Inside) -> None:
    gate = inside.disk.gate = trio.Event()
    async with inside.saving():
        await trio.sleep(0.2)
        await refusal(inside, "steady", 1, False)
        inside.disk.gate = None
        gate.set()
        await trio.sleep(1)
        assert (await inside.take_steady_waiting()).count == 1


async def test_who_waits_when_the_daemon_stops_is_told(inside: Inside) -> None:
    async with inside.needing_a_save() as saved:
        codes: list[str] = []

        async def ask() -> None:
            with pytest.raises(RefusedError) as raised:
                await inside.take_waiting()
            codes.append(raised.value.code)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask)
            await trio.sleep(0.5)
            nursery.start_soon(partial(inside.saver.finish, 10))
            await trio.sleep(0.1)
            saved.set()
        assert codes == ["unavailable"]


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
async def test_take_and_make_say_over_the_wire_that_they_must_wait(
    inside: Inside, asked: tuple[Any, ...]
) -> None:
    async with inside.needing_a_save():
        before = inside.standing()
        async with inside.talking() as peer:
            reply = await peer.call(*asked)
            assert (reply.code, reply.result) == ("must_wait", None)
            assert inside.standing() == before
            assert (inside.service.rpc.requests, inside.service.rpc.ids) == (1, 0)
            assert inside.service.rpc.refused == {"must_wait": 1}
            assert (await peer.call("make", "v4", 1, False)).error is None


@pytest.mark.parametrize(
    ("greedy", "other", "is_always_served", "least"),
    [
        # However many requests each has under way: 15 and 9 would be 93 and 56 million ticks.
        ((15, MAX_BLOCK, True, 0.001), (9, MAX_BLOCK, True, 0.001), False, (60e6, 60e6)),
        # Each request of a user that wants less than its share is served.
        ((40, MAX_BLOCK, True, 0.0001), (1, 100_000, True, 0.01), True, (60e6, 15 * 100_000)),
        # Of single ticks, one user wants a quarter of what there is.
        ((1, 1, False, 0.0001), (1, 2500, False, 0.00137), False, (1000, 0.3 * 2500 / 0.00137)),
        (
            (1, MAX_BLOCK, False, 0.0001),
            (1, 2500, False, 0.00137),
            False,
            (1e6, 0.3 * 2500 / 0.00137),
        ),
    ],
    ids=["both whole", "little whole", "single ticks", "short blocks"],
)
async def test_a_greedy_user_leaves_another_its_share(
    full: Inside,
    greedy: tuple[Any, ...],
    other: tuple[Any, ...],
    is_always_served: bool,
    least: tuple[float, float],
) -> None:
    """Each draws for a second, in some tasks that pause between two requests.

    It gets what is told at least. Two that want the same get the same, and all that there is.
    """
    got: Counter[int] = Counter()

    async def draw(uid: int, count: int, whole: bool, pause: float) -> None:
        while True:
            try:
                block = await awaited(full.allocator.take("utc", count, whole, uid=uid))
            except RefusedError:
                got[-uid] += 1
            else:
                got[uid] += block.count
            await trio.sleep(pause)

    with trio.move_on_after(1):
        async with trio.open_nursery() as nursery:
            for uid, (tasks, *asked) in ((1, greedy), (2, other)):
                for _ in range(tasks):
                    nursery.start_soon(draw, uid, *asked)
    assert got[1] >= least[0]
    assert got[2] >= least[1]
    assert not (is_always_served and got[-2])
    if greedy[1:] == other[1:]:
        assert got[1] == pytest.approx(got[2], rel=0.15)
        assert got[1] + got[2] == pytest.approx(150_000_000, rel=0.15)


async def test_a_user_whose_share_is_used_up_is_told_so(full: Inside) -> None:
    refused: list[str] = []

    async def ask_twice(uid: int) -> None:
        try:
            for count in (MAX_BLOCK, 2):
                await awaited(full.allocator.take("utc", count, True, uid=uid))
        except RefusedError as error:
            refused.append(f"{error.code}: " + error.message.removeprefix(f"uid {uid} "))

    async with trio.open_nursery() as nursery:
        for uid in range(1, 41):
            nursery.start_soon(ask_twice, uid)
    assert (
        "busy: has used up its share of the ticks, one of 41; ask for fewer, or try again later"
        in refused
    )


async def test_a_user_who_has_had_the_share_hears_when_there_is_more(inside: Inside) -> None:
    inside.save_ahead()
    inside.take(MAX_BLOCK)
    await awaited(inside.allocator.take("utc", MAX_BLOCK, False, uid=UID + 1))
    await trio.sleep(0.1)
    assert inside.take(MAX_BLOCK).count > 999_000
    told = await refusal(inside, "utc", 1, False, False)
    share = f"must_wait: uid {UID} has used up its share of the ticks, and has some again in "
    assert told.startswith(share)
    assert trio.current_time() == pytest.approx(0.1, abs=1e-6)


async def test_a_user_who_lacks_few_ticks_of_the_share_waits_for_a_millisecond(
    inside: Inside,
) -> None:
    """A wake-up for each few ticks would use up the daemon's time."""
    inside.save_ahead()
    inside.take(MAX_BLOCK)
    await awaited(inside.allocator.take("utc", MAX_BLOCK, False, uid=UID + 1))
    await trio.sleep(0.1)
    # Half of 10 ms had gathered, so 1000 ticks are lacking, which come in 0.2 ms.
    inside.take(51_000)
    await inside.take_waiting()
    assert trio.current_time() == pytest.approx(0.1 + LEAST_WAIT, abs=1e-6)


async def test_of_two_users_each_has_half_of_the_lanes_for_whole_blocks(full: Inside) -> None:
    with pytest.raises(MustPause):
        at_once(full.allocator.take("utc", *ALL, uid=UID + 1))
    await trio.sleep(0.1)
    full.take(MAX_BLOCK, whole=True)
    await full.take_waiting(MAX_BLOCK, whole=True)
    # Half of 15 lanes had gathered 0.75 million ticks in 10 ms, and gives 75 million a second.
    assert trio.current_time() == pytest.approx(0.1 + 0.25 / 75, abs=1e-5)


async def test_requests_that_have_waited_do_not_count(full: Inside) -> None:
    full.limits.waiting_per_uid = 1

    def take() -> Any:
        return full.allocator.take("utc", *ALL, uid=1)

    for _ in range(3):
        with pytest.raises(MustPause):
            at_once(take())
        async with meanwhile(partial(awaited, take())):
            await trio.testing.wait_all_tasks_blocked()
            with pytest.raises(RefusedError, match="uid 1 has 1 requests waiting"):
                at_once(take())


@pytest.mark.parametrize(
    ("lacks_a_save", "most", "what"),
    [(False, 3, "waiting for free ticks, the most"), (True, MOST_WAITING, "waiting, the")],
)
async def test_only_so_many_requests_of_one_user_wait(
    full: Inside, lacks_a_save: bool, most: int, what: str
) -> None:
    if lacks_a_save:
        # Another generation is to serve, and nobody saves it.
        full.wall.step(-HOUR)
    full.limits.waiting_per_uid = 3
    with contextlib.ExitStack() as stack:
        for _ in range(most):
            waiting = full.allocator.take("utc", *ALL, uid=1)
            stack.callback(waiting.close)
            next(waiting)
        assert f"busy: uid 1 has {most} requests {what}" in await refusal(full, "utc", *ALL, uid=1)
        with pytest.raises(MustPause):
            at_once(full.allocator.take("utc", *ALL, uid=2))
