"""The ids of one client rise, and none comes twice, wherever they come from."""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import SafeUUID

import msgpack
import pytest

from tests.client.breaking import break_off, come_between
from tests.client.conftest import Serve, together
from tests.client.fakes import START, Answer, Server, Time, gives, granted, offsets
from tests.client.lanes import Clock, World, leasing
from tests.judge import assert_rising
from tests.kinds import (
    GREGORIAN,
    LEASED,
    MS,
    SECOND,
    TIMED,
    UNLEASED,
    fields,
    gregorian,
    place,
    tick,
)
from tests.rig import until
from uuidd.core.timeline.page import HORIZON_AT
from uuidd_client import Client, DaemonUnavailable, life
from uuidd_client.channel import MOST_TRIES, NO_LEASE_SECONDS

if TYPE_CHECKING:
    from uuidd_client.client import Kind

pytestmark = pytest.mark.usefixtures("implementation")

HOUR = 3600 * SECOND


def rising(kind: str, ids: list[Any]) -> bool:
    """Whether each id is above the one before it: of v1, whether its tick is."""
    keys = [tick(kind, id) if kind == "v1" else id for id in ids]
    return all(before < after for before, after in itertools.pairwise(keys))


@pytest.mark.parametrize("kind", [kind for kind in TIMED if kind != "snowflake"])
def test_ids_rise_from_lease_to_block_to_fallback_and_back(
    world: World, time: Time, kind: Kind
) -> None:
    found: list[Any] = []
    lane = kind in LEASED
    with Client(world.path, _clock=time) as client:
        draw = client.factory(kind)

        def more() -> None:
            for _ in range(3):
                found.append(draw())
                time.move(0.002)
                found.extend(client.make(kind, 40))
                time.move(0.002)

        with world.server() as server:
            more()
            time.move(1)
            more()
            assert server.asked == lane
            # To blocks.
            world.lanes.words[HORIZON_AT] = 0
            blocks = len(server.requests)
            time.move(1)
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
            assert server.asked == 2 * lane
        # To the fallback.
        world.lanes.revoke()
        time.move(1)
        more()
        assert client.stats().fallback_blocks
        time.move(1)
        with world.server() as server:
            more()
            time.move(1)
            more()
            assert server.asked == lane
    assert rising(kind, found)


def test_a_block_of_old_ticks_of_utc_is_followed_by_another(serve: Serve) -> None:
    _, client = serve(gives((100, 10), (50, 10), (95, 15), (200, 1)))
    client.make("v1", 10)
    assert offsets("v1", client.make("v1", 1)) == [200]


def test_a_daemon_that_goes_on_to_give_old_ticks_of_utc_is_believed(serve: Serve) -> None:
    """After a few requests: its clock was set back, and that of the client was not."""
    server, client = serve(gives((100, 10), *((10 * number, 1) for number in range(9))))
    client.make("v1", 10)
    assert offsets("v1", client.make("v1", 1)) == [10 * MOST_TRIES]
    assert len(server.requests) == 2 + MOST_TRIES


@pytest.mark.parametrize("renewed", [False, True])
@pytest.mark.parametrize("kind", UNLEASED)
def test_under_another_node_or_worker_ids_go_on_in_the_next_millisecond(
    serve: Serve, time: Time, kind: Kind, renewed: bool
) -> None:
    """Within one, a lower node or worker would put them before those already used."""
    server, client = serve(gives((0, 3), (10, 10, 1), (MS - 3, 10, 1)))
    found = client.make(kind, 1, "int")
    if renewed:
        client.renew()
    time.move(1)
    found += client.make(kind, 1, "int")
    assert len(server.requests) == 3
    assert found == sorted(found)
    first, second = (fields(kind, id)["time"] for id in found)
    assert second - first == 1


@pytest.mark.parametrize("kind", UNLEASED)
def test_under_the_same_node_and_worker_ids_go_on_at_once(
    serve: Serve, time: Time, kind: Kind
) -> None:
    server, client = serve(gives((0, 3), (10, 10)))
    found = client.make(kind, 1, "int")
    time.move(1)
    found += client.make(kind, 1, "int")
    assert len(server.requests) == 2
    first, second = (fields(kind, id)["time"] for id in found)
    assert second == first


def test_a_v1_and_a_v6_have_no_tick_in_common(world: World, time: Time) -> None:
    """However they are drawn: else a v1 that is converted to a v6 may be equal to another (P1)."""
    with leasing(world) as (server, client):
        ways = [client.factory("v1"), client.factory("v6"), client.iter("v1").__next__]
        found: list[Any] = []
        for number in range(400):
            found += [draw() for draw in ways]
            if number % 20 == 0:
                found += client.make("v6", number) + client.make("v1", number)
            time.utc += number % 7
        assert server.asked == 1
    assert len({gregorian(id.int)[:3] for id in found}) == len(found)


@pytest.mark.parametrize("kind", ["v7", "flake", "snowflake"])
def test_without_fallback_a_daemon_that_is_behind_is_told_of(
    serve: Serve, time: Time, kind: Kind
) -> None:
    """It has lost its state, or has one of before. It is asked again at each call."""
    _, client = serve(gives((1000, 3), (50, 3), (2000, 3)), fallback=kind == "snowflake")
    before = client.make(kind, 1)
    time.move(1)
    with pytest.raises(
        DaemonUnavailable, match="its steady timeline is behind what this process has used"
    ) as caught:
        client.make(kind, 1)
    assert caught.value.reason == "behind"
    assert rising(kind, before + client.make(kind, 1))


def test_a_daemon_that_is_behind_is_not_used_where_there_is_a_fallback(
    path: Path, time: Time
) -> None:
    """Its ids would come before those that were made here while it was away."""
    with Client(path, _clock=time) as client:
        found = [client.uuid7()]
        time.move(1)
        with Server(path, gives((50, 64))) as server:
            found.append(client.uuid7())
            assert server.requests
    assert found[1].is_safe is SafeUUID.unknown
    assert rising("v7", found)


def test_the_fallback_goes_on_behind_a_daemon_that_is_ahead(path: Path, time: Time) -> None:
    with Client(path, _clock=time) as client:
        with Server(path, gives((15 * SECOND, 64))):
            found = [client.uuid7()]
            client.close()
        time.move(1)
        found += client.make("v7", 100)
    assert found[1].is_safe is SafeUUID.unknown
    assert rising("v7", found)


@pytest.mark.parametrize("kind", ["v7", "flake"])
def test_a_daemon_more_than_an_hour_behind_is_used(path: Path, time: Time, kind: Kind) -> None:
    """What was used was of a clock that was wrong, or set by a test: order begins anew."""
    for lead, behind in ((HOUR + 63, True), (HOUR + 64, False)):
        with (
            Server(path, gives((lead, 64), (0, 64), (64, 64))),
            Client(path, fallback=False, _clock=time) as client,
        ):
            assert offsets(kind, client.make(kind, 1)) == [lead]
            time.move(1)
            if behind:
                with pytest.raises(DaemonUnavailable, match="is behind"):
                    client.make(kind, 1)
            else:
                assert offsets(kind, client.make(kind, 65)) == [*range(65)]


def test_v1_begin_again_where_utc_was_set_back(serve: Serve, time: Time) -> None:
    server, client = serve(gives((100, 10), (-900, 10)))
    client.make("v1", 10)
    time.utc = START - 890
    assert offsets("v1", client.make("v1", 2)) == [-900, -899]
    assert len(server.requests) == 2


@pytest.mark.parametrize("kind", LEASED)
def test_a_small_step_back_of_utc_is_waited_for(world: World, time: Time, kind: Kind) -> None:
    with leasing(world) as (server, client):
        draw = client.factory(kind)
        found = [draw()]
        time.utc -= MS
        found.append(draw())
        assert not server.requests
    assert rising(kind, found)


@pytest.mark.parametrize("back", [MS, 20 * MS, HOUR])
@pytest.mark.parametrize("kind", LEASED)
def test_no_id_comes_twice_when_utc_steps_back_and_forth(
    world: World, time: Time, kind: Kind, back: int
) -> None:
    with leasing(world) as (_, client):
        draw = client.factory(kind)
        found = [*client.make(kind, 1000), draw()]
        latest = time.utc
        time.utc -= back
        world.ahead = back
        for _ in range(3):
            found.append(draw())
            time.utc += 1
        world.ahead = 0
        for now in range(latest - 2, latest + 3):
            time.utc = now
            found += [draw(), *client.make(kind, 10)]
    places = [place(kind, id) for id in found if _spot(kind, id)[1] & 0xFF == 16]
    assert len(set(places)) == len(places)
    assert len(set(found)) == len(found)


DRAWS: dict[str, Callable[[Client, Kind], list[Any]]] = {
    "uuid": lambda client, kind: [client.factory(kind)()],
    "text": lambda client, kind: [next(client.iter(kind, "text"))],
    "list": lambda client, kind: client.make(kind, 3, "text"),
}


def _spot(kind: str, id: Any) -> tuple[int, int]:
    found = fields(kind, id)
    return tick(kind, id), found["clock_seq"] if kind in GREGORIAN else found["lane"]


@pytest.mark.parametrize(
    ("kind", "way", "source", "step"),
    [
        *(
            (kind, way, source, 1)
            for kind, way in (("v1", "uuid"), ("v1", "list"), ("v7", "text"))
            for source in ("lane", "block", "fallback")
        ),
        # What is drawn leads UTC.
        ("v7", "uuid", "fallback", -100),
    ],
)
def test_a_handler_that_draws_anywhere_repeats_nothing_and_keeps_the_order(
    world: World, time: Time, kind: Kind, way: str, source: str, step: int
) -> None:
    world.lanes.refusing = source == "block"
    time.step = 1
    with contextlib.ExitStack() as stack:
        if source != "fallback":
            stack.enter_context(world.server())
        for at in itertools.count(1):
            client = Client(world.path, fallback=source == "fallback", _clock=time)
            before = client.make(kind, 3)
            time.ticks += SECOND
            time.utc += step * SECOND
            inside: list[Any] = []
            between = [*DRAWS.values()][at % 3]
            ids = come_between(
                lambda: DRAWS[way](client, kind),  # noqa: B023  (called at once)
                at,
                lambda: inside.extend(between(client, kind)),  # noqa: B023
            )
            later = [id for draw in DRAWS.values() for id in draw(client, kind)]
            client.close()
            ticks = [[tick(kind, id) for id in part] for part in (before, inside, ids, later)]
            assert ticks == [sorted(part) for part in ticks]
            assert not inside or ticks[1][0] > ticks[0][-1], at
            assert ticks[2][0] > ticks[0][-1], at
            assert ticks[3][0] > max(ticks[1] + ticks[2]), at
            found = [_spot(kind, id) for id in (*before, *inside, *ids, *later)]
            assert len(set(found)) == len(found), at
            if not inside:
                break
        assert at > 5


@pytest.mark.parametrize("kind", ["v1", "v7"])
def test_a_call_that_is_broken_off_anywhere_leaves_the_client_as_it_was(
    path: Path, time: Time, kind: Kind
) -> None:
    """Ctrl-C may come at any line: another thread gets ids, and only of the ticks of a block."""
    numbers = itertools.count(1)

    def answer(_: bytes) -> Answer:
        # What lies between two blocks is another process's.
        return granted(1000 * next(numbers), 10)

    with Server(path, answer):
        for at in itertools.count(1):
            with Client(path, fallback=False, _clock=time) as client:
                found: list[Any] = [*client.make(kind, 10)]
                broken = break_off(partial(client.make, kind, 1), at)
                thread = threading.Thread(target=lambda: found.extend(client.make(kind, 2)))  # noqa: B023
                thread.start()
                thread.join(60)
                found += client.make(kind, 2)
            assert all(offset % 1000 < 10 for offset in offsets(kind, found)), at
            assert rising(kind, found)
            assert len(found) == 14
            if broken is None:
                break
        assert at > 10


@pytest.mark.parametrize("kind", ["v1", "v6"])
def test_a_block_that_came_late_has_no_future_tick_after_a_step_back(
    serve: Serve, time: Time, kind: Kind
) -> None:
    """Its ticks are later than the request, and UTC was set back to between the two."""

    def answer(_: bytes) -> Answer:
        time.move(0.002)
        return granted(time.utc - START - 60, 60)

    _, client = serve(answer, fallback=False)
    draw = client.factory(kind)
    draw()
    time.utc -= 10_000
    assert tick(kind, draw()) <= time.utc


@pytest.mark.usefixtures("turns_are_short")
@pytest.mark.parametrize("kind", ["v1", "v7"])
@pytest.mark.parametrize("max_age", [0, 0.1])
@pytest.mark.parametrize("leased", [True, False])
def test_threads_get_no_id_twice(path: Path, kind: Kind, max_age: float, leased: bool) -> None:
    world = World(path, Clock())
    world.lanes.refusing = not leased
    with world.server() as server, Client(path, fallback=False, max_age=max_age) as client:
        client.make(kind, 1)
        texts = client.iter(kind, "text")

        def draw() -> list[Any]:
            uuids, ids = client.factory(kind), list[Any]()
            for number in range(50):
                ids.append(uuids())
                ids.append(next(texts))
                if number % 10 == 0:
                    ids += client.make(kind, 20)
            return ids

        found = together(*[draw] * 4)
        # A refused lease is asked for again after a second, which a busy machine may take.
        assert not leased or server.asked == 1
        assert server.connections == 1
    world.lanes.close()
    every = [_spot(kind, id) for ids in found for id in ids]
    assert len(set(every)) == len(every) == 4 * 200
    for ids in found:
        assert_rising(tick(kind, id) for id in ids)


def saving(request: bytes) -> Answer:
    """Say what a daemon says that has to save its state before it gives steady ticks."""
    method, params = msgpack.unpackb(request)[2:]
    if method == "status":
        return {}
    timeline, _, _, wait = params
    if timeline == "utc":
        return granted(0, 1)
    return b"" if wait else "must_wait: for a save"


def waiting(server: Server) -> list[int]:
    """Return the numbers of the requests that wait for a save."""
    requests = enumerate(map(msgpack.unpackb, server.requests))
    return [number for number, (*_, params) in requests if params and params[-1] is True]


def test_others_get_ids_while_a_call_waits_for_a_save(serve: Serve) -> None:
    found: list[Any] = []
    server, client = serve(saving, fallback=False)
    thread = threading.Thread(target=lambda: found.append(client.uuid7()))
    thread.start()
    until(lambda: waiting(server))
    assert client.make("v1", 1)
    assert client.status() == {}
    assert not found
    assert server.connections == 2
    server.say_late(waiting(server)[0], granted(0, 1))
    thread.join(60)
    assert offsets("v7", found) == [0]


def test_one_call_of_each_timeline_waits_for_a_save(serve: Serve) -> None:
    """A daemon whose disk is slow is not met by a pile of connections."""
    found: list[Any] = []
    server, client = serve(saving, fallback=False)
    threads = [threading.Thread(target=lambda: found.append(client.uuid7())) for _ in range(3)]
    for number, thread in enumerate(threads, 2):
        thread.start()
        # One of them is that of the call that waits.
        until(lambda number=number: len(server.requests) == number and waiting(server))  # type: ignore[misc]
    for number in range(3):
        until(lambda number=number: len(waiting(server)) == number + 1)  # type: ignore[misc]
        server.say_late(waiting(server)[number], granted(100 * number, 1))
        until(lambda number=number: len(found) > number)  # type: ignore[misc]
    for thread in threads:
        thread.join(60)
    assert offsets("v7", found) == [0, 100, 200]


class Ending(Time):
    """A clock that ends the life once, when UTC is read after it was *armed*."""

    armed = False

    def utc_ns(self) -> int:
        """Return UTC in nanoseconds since 1970."""
        if self.armed:
            self.armed = False
            life.current().end()
        return super().utc_ns()


LIVED: dict[str, Callable[[Client], list[Any]]] = {
    "list": lambda client: client.make("v7", 2),
    "packed": lambda client: [client.make("v7", 1, "bytes")],
    "function": lambda client: [client.factory("v7")()],
    "method": lambda client: [client.uuid7()],
}


@pytest.mark.parametrize("read", [False, True])
@pytest.mark.parametrize("make", LIVED)
def test_a_call_in_which_the_life_ends_is_made_again(path: Path, make: str, read: bool) -> None:
    """Before the daemon's answer was read, or while ids are made of it.

    What came in the life before is dropped: a clone, or the other process of a fork, has it too.
    """
    time, blocks, ends = Ending(10), gives((0, 64), (1000, 64)), [None]

    def answer(_: bytes) -> Answer:
        if ends:
            ends.pop()
            if read:
                time.armed = True
            else:
                life.current().end()
        return blocks

    with Server(path, answer) as server, Client(path, fallback=False, _clock=time) as client:
        assert offsets("v7", LIVED[make](client))[0] == 1000
        assert len(server.requests) == 2


def test_who_waits_for_a_thread_of_the_life_before_goes_on_without_it(serve: Serve) -> None:
    """In a fork's child that thread does not exist, and nobody lets go of its lock."""
    begun, found = threading.Event(), list[Any]()

    def answer(_: bytes) -> Answer:
        first = not begun.is_set()
        begun.set()
        return b"" if first else granted(100, 1)

    server, client = serve(answer, fallback=False, timeout=600)
    held = threading.Thread(target=lambda: found.append(client.uuid7()))
    other = threading.Thread(target=lambda: found.append(client.uuid1()))
    held.start()
    assert begun.wait(60)
    try:
        other.start()
        client.renew()
        until(lambda: 1 in [id.version for id in found])
    finally:
        # That thread may have noticed the end of the life before it waited.
        with contextlib.suppress(OSError):
            server.say_late(0, granted(0, 1))
        held.join(60)
        other.join(60)
    assert offsets("v7", [id for id in found if id.version == 7]) == [100]


BETWEEN, LONG = 0.000_1, 1_200
"""Seconds that pass before a list of so many ids: more than there are ticks in that time."""


def made_before(world: World, client: Client, kind: Kind, source: str) -> list[Any]:
    """Return ids of a lane, or of a block, or of the fallback, the last of them of now."""
    found: list[Any] = [*client.make(kind, 1)]
    world.time.move(0.2)
    if source == "lane":
        found += client.make(kind, 1)
        world.time.move(0.2)
        found += client.make(kind, LONG)
    world.time.move(0.2)
    return [*found, client.factory(kind)()]


@pytest.mark.parametrize("source", ["lane", "block", "fallback"])
@pytest.mark.parametrize("kind", ["v1", "v6", "v7", "ksuid"])
def test_a_long_list_begins_after_what_was_made_before_a_renewal(
    world: World, time: Time, kind: Kind, source: str
) -> None:
    with Client(world.path, _clock=time) as client:
        with contextlib.nullcontext() if source == "fallback" else world.server():
            found = made_before(world, client, kind, source)
            client.renew()
            time.move(BETWEEN)
            found += client.make(kind, 1)
            client.renew()
        with world.server() as server:
            time.move(BETWEEN)
            found += client.make(kind, LONG)
            time.move(BETWEEN)
            found += client.make(kind, LONG)
            assert server.asked
    assert rising(kind, found)


def test_a_closed_client_has_no_lease_and_asks_for_another(world: World, time: Time) -> None:
    with leasing(world) as (server, client):
        found = client.make("v7", 2)
        client.close()
        # The daemon ends the leases of a connection with it.
        world.lanes.revoke()
        assert not client.stats().leased
        found += client.make("v7", 2)
        time.move(NO_LEASE_SECONDS)
        found += client.make("v7", 2)
        assert client.stats().leased
        assert (server.asked, server.connections) == (2, 2)
    assert rising("v7", found)


def test_a_closed_client_draws_nothing_of_the_block_that_it_had(serve: Serve) -> None:
    _, client = serve(gives((0, 64), (100, 64)))
    draw = client.factory("v7")
    draw()
    client.close()
    assert offsets("v7", [draw()]) == [100]
