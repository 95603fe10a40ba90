"""Ids of a leased lane, of blocks and of the fallback: their order, their age, and their time."""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from tests.client.fakes import START, Blocks, Server, Time
from tests.client.lanes import Clock, World
from tests.client.raw import raw_fork
from tests.kinds import KINDS, LANED, LEASED, SECOND
from uuidd.core.ids import ksuid, versions
from uuidd.core.ids.ticks import TICKS_PER_MS, TICKS_PER_SECOND
from uuidd.core.timeline.page import HORIZON_AT
from uuidd_client import Client
from uuidd_client.fork_guard import ForkGuard
from uuidd_client.own_lane import LEASE_AGE, NO_LEASE_SECONDS
from uuidd_client.places import LIST_AHEAD, Places
from uuidd_client.source import Source

if TYPE_CHECKING:
    from uuidd_client.client import Kind

TICK = 1 / TICKS_PER_SECOND
HOUR = 3600 * TICKS_PER_SECOND


@pytest.fixture
def world(tmp_path: Path, time: Time) -> Iterator[World]:
    """Return a daemon that is not there yet."""
    world = World(tmp_path / "s", time)
    yield world
    world.lanes.close()


@contextmanager
def leasing(world: World, kind: Kind, **settings: Any) -> Iterator[tuple[Server, Client]]:
    """Return a daemon, and a client that has leased a lane of it for *kind*."""
    with world.server() as server, Client(world.path, _clock=world.time, **settings) as client:
        client.make(kind, 1)
        # Then nothing is left of its block.
        world.time.move(20)
        client.make(kind, 1)
        assert server.asked == 1
        world.time.move(0.5)
        server.requests.clear()
        yield server, client


def tick(id: Any) -> int:
    """Return the tick of a v1, v6 or v7."""
    if id.version == 7:
        return versions.v7_tick(id.int)
    return versions.gregorian_fields(id.int).tick


def key(kind: str, id: Any) -> Any:
    """Return what ids of *kind* have to rise in."""
    return tick(id) if kind == "v1" else id


def rising(kind: str, ids: list[Any]) -> bool:
    """Whether each id is above the one before it."""
    keys = [key(kind, id) for id in ids]
    return all(before < after for before, after in itertools.pairwise(keys))


# --- from one to the other


@pytest.mark.parametrize("kind", LEASED)
def test_ids_rise_from_lease_to_block_to_fallback_and_back(
    world: World, time: Time, kind: Kind
) -> None:
    """In each form of drawing, at each change of where they come from (P4)."""
    found: list[Any] = []
    # A whole second, and more, at each change: a KSUID says no more of its time.
    pause = 1.5 if KINDS[kind].unit == SECOND else 0.002

    with Client(world.path, _clock=world.time) as client:
        draw = client.factory(kind)

        def more() -> None:
            for _ in range(3):
                found.append(draw())
                time.move(pause)
                if KINDS[kind].unit == SECOND:
                    continue
                found.extend(client.make(kind, 40))
                time.move(pause)

        with world.server() as server:
            more()
            more()
            assert server.asked
            assert world.lanes.words[HORIZON_AT] > time.utc
            # To blocks.
            world.lanes.words[HORIZON_AT] = 0
            blocks = len(server.requests)
            more()
            assert len(server.requests) > blocks
            # And back.
            world.lanes.words[HORIZON_AT] = START + HOUR
            more()
            # To another lane.
            world.lanes.revoke()
            more()
            time.move(NO_LEASE_SECONDS)
            more()
        # To the fallback.
        world.lanes.revoke()
        more()
        time.move(2 * NO_LEASE_SECONDS)
        with world.server() as server:
            more()
            time.move(2 * NO_LEASE_SECONDS)
            more()
            assert server.asked
    assert rising(kind, found)


def test_what_was_used_of_a_block_is_behind_the_lane(world: World, time: Time) -> None:
    """A long list does not reach back to before it."""
    with world.server(), Client(world.path, _clock=world.time) as client:
        block = client.make("v1", 10_000)
        found = client.make("v1", 50_000)
    assert rising("v1", block + found)


@pytest.mark.parametrize("kind", ["v1", "v7"])
def test_blocks_are_behind_what_was_used_of_the_lane(world: World, time: Time, kind: Kind) -> None:
    """Of a block that overlaps with it the first part is left out."""
    with leasing(world, kind) as (server, client):
        found = [*client.make(kind, LIST_AHEAD)]
        time.move(100 * TICK)
        world.lanes.words[HORIZON_AT] = 0
        found += client.make(kind, 1000)
        assert server.requests
    assert rising(kind, found)


def test_a_list_does_not_reach_back_to_before_the_lease(world: World, time: Time) -> None:
    """The last holder of the lane may have used what is there."""
    world.lanes.begin = time.utc - 100
    lane = world.lanes.own_lane()
    places = Places("v1", cast(Source, Blocks(clock=time)), ForkGuard(), 0.1, lane=lane)
    places.ensure(1000)
    assert (places.first, places.end) == (world.lanes.begin, time.utc + 1)


def test_a_handlers_ids_are_above_those_of_the_lane_that_it_interrupts(
    world: World, time: Time
) -> None:
    """It gets a block, which may begin before them."""
    with leasing(world, "v1") as (server, client):
        channel = client._session.get().channel("utc")
        # So many that the last one has the tick of now.
        found = client.make("v1", 6000)
        time.move(100 * TICK)
        channel.in_turn(lambda _: found.extend(client.make("v1", 1000)))
        assert server.requests
        time.move(100 * TICK)
        found += client.make("v1", 50)
    assert rising("v1", found)


# --- v1 and v6


@pytest.mark.usefixtures("implementation")
def test_a_v1_and_a_v6_have_no_tick_in_common(world: World, time: Time) -> None:
    """However they are drawn: else a v1 that is converted to a v6 may be equal to another (P1)."""
    with leasing(world, "v1") as (server, client):
        ways = [client.factory("v1"), client.factory("v6"), client.iter("v1").__next__]
        found: list[Any] = []
        for number in range(400):
            found += [draw() for draw in ways]
            if number % 20 == 0:
                found += client.make("v6", number) + client.make("v1", number)
            time.move(number % 7 * TICK)
        assert server.asked == 1
    places = {versions.gregorian_fields(id.int)[:3] for id in found}
    assert len(places) == len(found)


# --- after a renewal and in a child


def made_before(world: World, client: Client, kind: Kind, source: str) -> list[Any]:
    """Return ids of a lane, or of a block, or of the fallback, the last of them of now."""
    found: list[Any] = [*client.make(kind, 1)]
    world.time.move(0.2)
    if source == "lane":
        found += client.make(kind, 1)
        world.time.move(0.2)
        found += client.make(kind, 20_000)
    world.time.move(0.2)
    return [*found, client.factory(kind)()]


@pytest.mark.usefixtures("implementation")
@pytest.mark.parametrize("source", ["lane", "block", "fallback"])
@pytest.mark.parametrize("kind", ["v1", "v6"])
def test_a_long_list_begins_after_what_was_made_before_a_renewal(
    world: World, time: Time, kind: Kind, source: str
) -> None:
    """Also if it is made of another lane, or of blocks (P4)."""
    with Client(world.path, _clock=world.time) as client:
        with contextlib.nullcontext() if source == "fallback" else world.server():
            found = made_before(world, client, kind, source)
            client.renew()
            time.move(0.001)
            found += client.make(kind, 1)
            client.renew()
        with world.server() as server:
            time.move(0.001)
            found += client.make(kind, 50_000)
            time.move(0.001)
            found += client.make(kind, 50_000)
            assert server.asked
    assert rising(kind, found)


@pytest.mark.process
@pytest.mark.usefixtures("implementation")
@pytest.mark.parametrize("fork", [os.fork, raw_fork])
@pytest.mark.parametrize("kind", ["v1", "v6"])
def test_a_long_list_of_a_child_begins_after_what_its_parent_made(
    tmp_path: Path, kind: Kind, fork: Callable[[], int]
) -> None:
    """Also if it is made of another lane (P4)."""
    world = World(tmp_path / "s", Clock())
    with world.server(), Client(world.path, _clock=world.time) as client:
        found = [id for count in (1, 1, 20_000) for id in client.make(kind, count)]
        pid = fork()
        if not pid:
            status = 1
            try:
                found += [id for count in (300_000, 10) for id in client.make(kind, count)]
                status = 0 if rising(kind, found) else 2
            finally:
                os._exit(status)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    world.lanes.close()


# --- steps of UTC


@pytest.mark.parametrize("back", [TICKS_PER_MS, 20 * TICKS_PER_MS, HOUR])
@pytest.mark.parametrize("kind", LEASED)
def test_no_id_comes_twice_when_utc_steps_back(
    world: World, time: Time, kind: Kind, back: int
) -> None:
    """Nor one of the lane for a time that this process has used."""
    with leasing(world, kind) as (server, client):
        draw = client.factory(kind)
        found = [draw() for _ in range(3)]
        found += client.make(kind, 5000)
        time.utc -= back
        world.ahead = back
        for _ in range(3):
            found.append(draw())
            time.move(TICK)
        assert server.requests
        time.utc += back
        world.ahead = 0
        time.move(TICK)
        found += [draw(), *client.make(kind, 10)]
    assert len(set(found)) == len(found)


@pytest.mark.parametrize("kind", LANED)
def test_steady_ids_rise_when_utc_steps_back(world: World, time: Time, kind: Kind) -> None:
    """The lane has no such time, and the daemon's steady timeline goes on."""
    with leasing(world, kind) as (_, client):
        found = [*client.make(kind, 1)]
        time.utc -= 20 * TICKS_PER_MS
        world.ahead = 20 * TICKS_PER_MS
        for _ in range(3):
            time.move(1 if KINDS[kind].unit == SECOND else 0.000_01)
            found += client.make(kind, 1)
    assert rising(kind, found)


@pytest.mark.parametrize("kind", ["v1", "v7"])
def test_past_the_horizon_ids_are_of_blocks(world: World, time: Time, kind: Kind) -> None:
    """As when UTC steps forward by an hour."""
    with leasing(world, kind) as (server, client):
        draw = client.factory(kind)
        found = [draw()]
        assert not server.requests
        time.utc += HOUR
        for _ in range(3):
            found.append(draw())
            time.move(0.2)
        assert len(server.requests) == 3
    assert rising(kind, found)


@pytest.mark.parametrize("kind", ["v1", "v7"])
def test_a_clock_that_stands_still_holds_nobody_up(world: World, time: Time, kind: Kind) -> None:
    """As in a test that has frozen it: the daemon, whose clock goes on, has blocks."""
    with leasing(world, kind) as (server, client):
        draw = client.factory(kind)
        found = [draw()]
        for _ in range(40):
            found.append(draw())
            world.ahead += 10
        assert server.requests
    assert len(set(found)) == len(found)


# --- the age of an id


@pytest.mark.usefixtures("implementation")
@pytest.mark.parametrize("kind", ["v1", "v6", "v7"])
def test_an_id_of_a_lane_is_a_millisecond_old_at_most(world: World, time: Time, kind: Kind) -> None:
    """However it is drawn, and however long the client's blocks may be used."""
    with leasing(world, kind, max_age=10.0) as (_, client):
        draws = [client.factory(kind), client.iter(kind).__next__]
        for number in range(3000):
            id = draws[number // 100 % 2]()
            assert 0 <= time.utc - tick(id) <= LEASE_AGE * TICKS_PER_SECOND
            time.move(0.000_001 * (number % 50) + TICK)


@pytest.mark.parametrize("kind", ["v1", "v6", "v7"])
def test_without_any_age_an_id_has_its_own_reading_of_utc(
    world: World, time: Time, kind: Kind
) -> None:
    """And costs no round trip."""
    with leasing(world, kind, max_age=0) as (server, client):
        draw = client.factory(kind)
        for _ in range(100):
            time.move(TICK)
            id = draw()
            assert tick(id) == time.utc
        assert not server.requests


def test_without_any_age_each_id_of_a_list_has_its_own_reading(world: World, time: Time) -> None:
    """The list takes as long as they do."""
    with leasing(world, "v1", max_age=0) as (server, client):
        begun, time.step = time.utc, 1
        assert [tick(id) - begun for id in client.make("v1", 5)] == [1, 2, 3, 4, 5]
        assert not server.requests


# --- lists


@pytest.mark.parametrize("count", [10, 1000, 1_000_000])
@pytest.mark.parametrize("kind", ["v1", "v7"])
def test_a_list_of_a_lane_is_of_the_latest_ticks(
    world: World, time: Time, kind: Kind, count: int
) -> None:
    """No id comes twice, is of the future, or is older than max_age."""
    with leasing(world, kind, max_age=0.1) as (server, client):
        begun = time.utc
        made = client.make(kind, count, form="bytes")
        assert not server.requests
    ids = [made[at : at + 16] for at in range(0, 16 * count, 16)]
    assert len(set(ids)) == count
    read = versions.v7_tick if kind == "v7" else lambda id: versions.gregorian_fields(id).tick
    ticks = [read(int.from_bytes(id, "big")) for id in (ids[0], *ids[:: count // 10], ids[-1])]
    assert ticks == sorted(ticks)
    assert begun - 0.1 * TICKS_PER_SECOND <= ticks[0]
    assert ticks[-1] <= time.utc


def test_lists_one_after_another_are_distinct_and_rise(world: World, time: Time) -> None:
    """Each goes on after the one before it."""
    with leasing(world, "v6") as (server, client):
        found = [id for _ in range(5) for id in client.make("v6", 2 * LIST_AHEAD)]
        assert not server.requests
    assert rising("v6", found)


@pytest.mark.parametrize("kind", ["v1", "v6", "v7"])
def test_an_id_of_a_short_list_is_a_millisecond_old_at_most(
    world: World, time: Time, kind: Kind
) -> None:
    """Also of the lists that use what one before them has left."""
    with leasing(world, kind, max_age=10.0) as (_, client):
        for number in range(300):
            ids = client.make(kind, 1 + number % 100)
            assert time.utc - tick(ids[0]) <= LEASE_AGE * TICKS_PER_SECOND
            time.move(0.000_01 * (number % 50) + 100 * TICK)


@pytest.mark.parametrize("kind", ["v1", "v7"])
def test_short_lists_in_a_row_use_ticks_from_before_the_first(
    world: World, time: Time, kind: Kind
) -> None:
    """All at one moment: so a burst of lists may need more ticks than come while it lasts."""
    with leasing(world, kind) as (server, client):
        begun = time.utc
        found = [id for _ in range(LIST_AHEAD // 1000) for id in client.make(kind, 1000)]
        assert (time.utc, server.requests) == (begun, [])
    assert rising(kind, found)


def test_a_long_list_is_made_at_once_of_ticks_that_have_passed(world: World, time: Time) -> None:
    """And without the daemon."""
    with leasing(world, "v1") as (server, client):
        begun = time.utc
        assert len(client.make("v1", 100_000)) == 100_000
        assert (time.utc, server.requests) == (begun, [])


# --- what a kind cannot hold


def test_a_time_past_the_field_of_a_kind_is_not_made_of_the_lane(world: World, time: Time) -> None:
    """The daemon's answer, which cannot hold it either, is the error that says so."""
    with leasing(world, "ksuid", fallback=False) as (_, client):
        end = ksuid.TIME.end
        time.utc = end - 1
        world.lanes.words[HORIZON_AT] = end + HOUR
        assert len(client.make("ksuid", 1)) == 1
        time.move(1)
        with pytest.raises(Exception, match="a ksuid holds times from"):
            client.make("ksuid", 1)
