from __future__ import annotations

from collections.abc import Generator

import pytest
import trio
from trio.testing import MockClock

from tests import kinds
from tests.daemon.fakes import BEGIN, HOUR, UID, Inside, awaited
from tests.kinds import KINDS, MS, SECOND, STEADY, TIMED, UNIX
from uuidd.core.ids import snowflake
from uuidd.core.ids.ticks import TICKS_PER_SECOND
from uuidd.core.wire import methods
from uuidd.server.fairness import Pause
from uuidd.server.service import PIECES

pytestmark = pytest.mark.usefixtures("autojump_clock")

WORKER = 345

BOUNDS = [0.5, 1.00005, 214.7, 429.49674]
"""Seconds after which the last 1,000 ticks lie within a millisecond or run over the bounds of
milliseconds, of a second, and of the low 32 bits of a tick."""


@pytest.fixture
async def inside(autojump_clock: MockClock) -> Inside:
    """A daemon's inside with a worker number and a far horizon."""
    return Inside(worker=WORKER, ahead=HOUR)


def making(inside: Inside, kind: str, count: int) -> Generator[Pause, None, list[str]]:
    """Return the answer to ``make``, before anything of it is done."""
    call = methods.Make(kind, count, True)
    return inside.service.make(call, UID)


async def made(inside: Inside, kind: str, count: int) -> list[str]:
    """Return the reply to ``make``."""
    async with inside.talking() as peer:
        reply = await peer.call("make", kind, count)
    assert reply.error is None
    found: list[str] = reply.result
    return found


@pytest.mark.parametrize("at", BOUNDS)
@pytest.mark.parametrize("kind", list(KINDS))
async def test_make_gives_exactly_so_many_ids(kind: str, at: float, inside: Inside) -> None:
    """None comes twice, and those of the steady kinds rise, over two makes in a row as well."""
    await trio.sleep(at)
    found: list[str] = []
    for count in (1, 2, 999, 1000):
        before = inside.service.rpc.ids
        more = await made(inside, kind, count)
        assert {type(text) for text in more} == {str}
        assert len(more) == count == inside.service.rpc.ids - before
        found += more
    assert len(set(found)) == 2002
    if kind in STEADY:
        assert found == sorted(found, key=lambda text: (len(text), text))


@pytest.mark.parametrize("at", BOUNDS)
@pytest.mark.parametrize("kind", TIMED)
async def test_made_ids_are_of_now(kind: str, at: float, inside: Inside) -> None:
    await trio.sleep(at)
    now = BEGIN + trio.current_time()
    texts = await made(inside, kind, 1000)
    found = [(kinds.tick(kind, text) - UNIX) / SECOND for text in texts]
    # A float of so many seconds is good to a quarter of a microsecond.
    assert all(now - 2442e-7 < time + 5e-7 and time < now + 5e-7 for time in found)
    assert found == sorted(found)
    if at in (0.5, 1.00005) and KINDS[kind].unit == MS and kind != "snowflake":
        # Just past a millisecond: these tests do see runs that go over its bound.
        assert len({kinds.fields(kind, text)["time"] for text in texts}) == 2


async def test_a_make_takes_no_more_ticks_than_it_needs(inside: Inside) -> None:
    """A tick for each id; of Snowflakes, 4,096 to a millisecond, 2.44 ticks for each."""
    await trio.sleep(1)
    for kind, ticks in (("v7", 1000), ("flake", 1000), ("snowflake", 2442)):
        before = inside.steady.next
        await trio.sleep(1)
        await made(inside, kind, 1000)
        assert inside.steady.next - 1 == inside.wall.now()
        await made(inside, kind, 1000)
        assert inside.steady.next - 1 == inside.wall.now()
        assert inside.wall.now() - before > ticks
    assert methods.MAX_MAKE == 1000


async def test_snowflakes_have_the_worker_number_and_fill_slot_after_slot(inside: Inside) -> None:
    await trio.sleep(1.0003)
    found = await made(inside, "snowflake", 1000)
    assert {kinds.fields("snowflake", text)["worker"] for text in found} == {WORKER}
    places = [kinds.place("snowflake", text) for text in found]
    assert places == list(range(places[0], places[0] + 1000))
    ticks = [snowflake.tick_of_place(place) for place in places]
    assert inside.wall.now() - 2442 < ticks[0] <= ticks[-1] <= inside.wall.now()


async def test_others_have_their_turn_between_the_pieces_of_a_make(inside: Inside) -> None:
    """A thousand in base 62 take milliseconds, but no other client waits for as long."""
    await trio.sleep(1)
    pauses = list(making(inside, "ksuid", 1000))
    assert pauses == [None] * len(pauses)
    assert len(pauses) >= 1000 / PIECES["ksuid"]


async def test_a_make_has_its_turn_before_it_takes_ticks_and_after_it_has_waited(
    inside: Inside,
) -> None:
    """So no tick waits for a turn, and no id is made in the time of others."""
    before = inside.steady.next
    many = making(inside, "ksuid", 1000)
    assert next(many) is None
    assert inside.steady.next == before
    many.close()
    inside.use_up()
    few = making(inside, "v1", 1000)
    pauses: list[Pause] = []
    while pauses[-1:] != [None]:
        pauses.append(next(few))
        if pause := pauses[-1]:
            await pause()
    assert len(pauses) == 2
    assert len(await awaited(few)) == 1000


async def test_snowflakes_need_a_worker_number() -> None:
    inside = Inside(ahead=HOUR)
    before = inside.steady.next, inside.lanes
    async with inside.talking() as peer:
        reply = await peer.call("make", "snowflake", 10)
        assert reply.result is None
        assert reply.error == (
            "no_worker_id: this uuidd has no worker number, so it makes no Snowflakes; start it"
            " with --worker N, 0 to 1023, another on each host"
        )
        assert (inside.steady.next, inside.lanes) == before
        assert (inside.service.rpc.requests, inside.service.rpc.ids) == (1, 0)
        assert inside.service.rpc.refused == {"no_worker_id": 1}
        assert len((await peer.call("make", "flake", 10)).result) == 10


async def test_a_kind_whose_time_field_is_full_is_refused(inside: Inside) -> None:
    inside.wall.step((snowflake.time_field().end - inside.wall.now()) / TICKS_PER_SECOND + 1)
    inside.save_ahead(HOUR)
    async with inside.talking() as peer:
        error = (await peer.call("make", "snowflake", 10)).error
        assert error is not None
        assert error.startswith("unavailable: no snowflake can be made: ms is ")
        assert (inside.service.rpc.requests, inside.service.rpc.ids) == (1, 0)
        assert inside.service.rpc.refused == {"unavailable": 1}
        assert len((await peer.call("make", "v7", 10)).result) == 10


async def test_status_tells_the_day_on_which_each_kind_is_full(inside: Inside) -> None:
    async with inside.talking() as peer:
        full_on = (await peer.call("status")).result["full_on"]
    last = [(kind, KINDS[kind].last.partition("T")[0]) for kind in TIMED]
    assert list(full_on.items()) == last
