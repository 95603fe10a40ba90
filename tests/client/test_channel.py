"""What a client asks its daemon for, when, and what it makes of the answers."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import SafeUUID

import msgpack
import pytest

from tests.client.conftest import Serve
from tests.client.fakes import (
    NO_LEASE,
    NODE,
    START,
    Answer,
    Server,
    Time,
    gives,
    granted,
    grants,
    in_turn,
    offsets,
    wanted,
)
from tests.client.lanes import Lanes, World, lease, leasing
from tests.kinds import LEASED, SECOND, TIMED, apart, tick
from tests.rig import until
from uuidd.core.ids.kinds import TIMES
from uuidd.core.timeline.outcomes import MAX_BLOCK
from uuidd.core.timeline.page import DUE_AT, HORIZON_AT
from uuidd.core.wire.methods import MOST_ASK_AGAIN
from uuidd_client import Client, DaemonUnavailable, NoWorkerId, TimeOutOfRange, life
from uuidd_client.channel import (
    MAX_EMPTY,
    NO_LEASE_SECONDS,
    RETRY_SECONDS,
    TELL_TICKS,
    Channel,
    Settings,
)
from uuidd_client.client import Channels
from uuidd_client.cutter import Cutter
from uuidd_client.system import SYSTEM_CLOCK

if TYPE_CHECKING:
    from uuidd_client.client import Kind

pytestmark = pytest.mark.usefixtures("implementation")

TICK = 1e-7
HOUR, YEAR = 3600 * SECOND, 365 * 86400 * SECOND


@pytest.mark.parametrize("second", LEASED)
@pytest.mark.parametrize("first", ["v1", "v7"])
def test_the_first_request_is_for_a_block_and_the_second_for_a_lease(
    world: World, time: Time, first: Kind, second: Kind
) -> None:
    """Of whatever kind: a program that makes a few ids, and ends, takes no lane from the others."""
    with world.server() as server, Client(world.path, _clock=time) as client:
        client.make(first, 1)
        assert (server.asked, len(server.requests)) == (0, 1)
        time.move(1)
        client.make(second, 1)
        assert (server.asked, len(server.requests)) == (1, 1)


@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        (NO_LEASE, NO_LEASE_SECONDS),
        ("no_lease: all 240 lanes are leased; ask again in 12.3 s", 12.3),
        ("no_lease: no lease before UTC; ask again in 0.2 s", NO_LEASE_SECONDS),
        ("no_lease: none; ask again in 1e9 s", NO_LEASE_SECONDS),
        ("no_lease: none; ask again in nan s", NO_LEASE_SECONDS),
        ("", MOST_ASK_AGAIN),
    ],
)
def test_a_lease_is_asked_for_when_the_daemon_says(
    path: Path, time: Time, lanes: Lanes, said: str, seconds: float
) -> None:
    """But not in haste, nor never, whatever it says; and later if the page cannot be received."""
    lanes.refusing, lanes.refusal, lanes.passed = bool(said), said, []
    with (
        Server(path, grants(), lanes.answered) as server,
        Client(path, max_age=0, _clock=time) as client,
    ):
        asked = []
        for pause in (0, 0, seconds - 0.01, 0.01):
            time.move(pause)
            client.make("v1", 1)
            asked.append(server.asked)
        assert asked == [0, 1, 1, 2]


def test_a_lease_that_has_ended_is_followed_by_another(world: World, time: Time) -> None:
    with leasing(world) as (server, client):
        (before,) = client.make("v1", 1)
        time.move(NO_LEASE_SECONDS)
        world.lanes.revoke()
        client.make("v1", 1)
        assert (server.asked, len(server.requests), client.stats().leased) == (1, 1, False)
        time.move(1)
        (after,) = client.make("v1", 1)
        assert (server.asked, len(server.requests)) == (2, 1)
        assert after.clock_seq != before.clock_seq


def test_leases_that_end_at_once_are_asked_for_once_a_second(world: World, time: Time) -> None:
    """A daemon that revokes all that it grants is not asked on and on."""
    with leasing(world, max_age=0) as (server, client):
        for _ in range(50):
            world.lanes.revoke()
            client.make("v1", 1)
            time.move(NO_LEASE_SECONDS / 10)
        assert 4 <= server.asked - 1 <= 6


@pytest.mark.parametrize("kind", ["v1", "v7"])
def test_past_the_horizon_blocks_serve_until_the_daemon_has_saved(
    world: World, time: Time, kind: Kind
) -> None:
    """The lease is kept. The tick before the horizon is the last one that may be used."""
    with leasing(world) as (server, client):
        world.lanes.words[HORIZON_AT] = time.utc + 1
        client.make(kind, 1)
        assert not server.requests
        time.move(1)
        world.lanes.words[HORIZON_AT] = time.utc
        client.make(kind, 1)
        assert len(server.requests) == 1
        time.move(1)
        world.lanes.words[HORIZON_AT] = time.utc + 1
        client.make(kind, 1)
        assert (len(server.requests), server.asked) == (1, 1)


@pytest.fixture
def restarted(world: World, time: Time) -> Iterator[tuple[World, Server, Client]]:
    """Return a daemon, the next one, and a client that has a lease of the first, in max_age 0."""
    following = World(world.path, time)
    world.lanes.words[DUE_AT] = time.utc + SECOND
    with Client(world.path, max_age=0, _clock=time) as client:
        with world.server():
            lease(client)
        with following.server() as server:
            client.make("flake", 1)
            server.requests.clear()
            yield world, server, client
    following.lanes.close()


def test_the_lease_of_a_daemon_that_has_ended_lasts_up_to_its_horizon(
    restarted: tuple[World, Server, Client], time: Time
) -> None:
    """Nobody raises that horizon again, so the next daemon is asked for a lease then."""
    former, server, client = restarted
    former.lanes.words[HORIZON_AT] = time.utc + SECOND + 1
    time.move(1)
    client.make("v1", 1)
    assert (server.requests, server.asked) == ([], 0)
    time.move(1)
    client.make("v1", 1)
    assert (len(server.requests), server.asked) == (1, 0)
    client.make("v1", 1)
    assert (len(server.requests), server.asked) == (1, 1)


def test_no_tick_before_the_lease_is_used(world: World, time: Time) -> None:
    """The last holder of the lane may have used it, so a list waits for later ones."""
    with world.server() as server, Client(world.path, _clock=time) as client:
        client.make("v7", 1)
        time.move(1)
        world.lanes.begin = time.utc - 100
        found = offsets("v1", client.make("v1", 1000))
        assert (server.asked, len(server.requests)) == (1, 1)
    assert found[0] == world.lanes.begin - START
    assert len(set(found)) == 1000


def test_a_lease_that_begins_later_is_kept_until_then(world: World, time: Time) -> None:
    with world.server() as server, Client(world.path, max_age=0, _clock=time) as client:
        world.lanes.begin = time.utc + SECOND
        lease(client)
        client.make("v1", 1)
        assert (server.asked, len(server.requests)) == (1, 3)
        time.move(1)
        client.make("v1", 1)
        assert (server.asked, len(server.requests)) == (1, 3)


def test_a_time_past_the_field_of_a_kind_is_not_made_of_the_lane(world: World, time: Time) -> None:
    with leasing(world, fallback=False) as (server, client):
        time.utc = TIMES["ksuid"].end - 1
        world.lanes.words[HORIZON_AT] = time.utc + HOUR
        assert client.make("ksuid", 1)
        assert not server.requests
        time.move(1)
        with pytest.raises(TimeOutOfRange, match="a ksuid holds times from"):
            client.make("ksuid", 1)


def test_a_time_before_the_field_of_a_kind_is_not_made_of_the_lane(
    world: World, time: Time
) -> None:
    time.utc, world.lanes.begin = TIMES["ksuid"].epoch - SECOND, 0
    with world.server(), Client(world.path, fallback=False, max_age=0, _clock=time) as client:
        lease(client)
        with pytest.raises(TimeOutOfRange, match="a ksuid holds times from"):
            client.make("ksuid", 1)
        time.move(1)
        assert client.make("ksuid", 1)


def told(server: Server, client: Client) -> int:
    """Return how often the daemon was told of ids in use, once it has read all that was sent."""
    client.make("flake", 1)
    return server.told


def test_the_daemon_is_told_from_half_of_the_horizon_on(world: World, time: Time) -> None:
    """Once for each horizon. A holder that makes nothing tells nothing, so an idle host rests."""
    begun, words, found = time.utc, world.lanes.words, []
    words[DUE_AT], words[HORIZON_AT] = begun + 25 * SECOND, begun + 30 * SECOND
    with leasing(world, max_age=0) as (server, client):
        for second in range(24, 48, 2):
            if second == 28:
                words[DUE_AT], words[HORIZON_AT] = begun + 43 * SECOND, begun + 60 * SECOND
            time.utc = begun + second * SECOND
            found.append(told(server, client))
            client.make("v1", 1)
            client.make("v7", 1)
            found.append(told(server, client))
    assert found == [0] * 3 + [1] * 18 + [2] * 3


def test_after_a_restart_the_next_daemon_is_told_again_and_again(
    restarted: tuple[World, Server, Client], time: Time
) -> None:
    """It cannot raise the horizon that the holder sees, but it has one when that one is over."""
    _, server, client = restarted
    time.move(1)
    found = []
    for _ in range(4):
        for _ in range(3):
            client.make("v1", 1)
            client.make("v7", 1)
            time.move(TICK)
        found.append(told(server, client))
        time.move(TELL_TICKS / SECOND)
    assert found == [1, 2, 3, 4]


@pytest.mark.parametrize("kind", TIMED)
def test_without_any_age_each_id_is_asked_for(serve: Serve, kind: Kind) -> None:
    count = 3 if kind == "snowflake" else 1
    server, client = serve(gives(*((count * number, count) for number in range(5))), max_age=0)
    draw = client.factory(kind)
    found = [draw(), *client.make(kind, 3), draw()]
    assert wanted(server) == [count] * 5
    assert len(set(found)) == 5


@pytest.mark.parametrize("kind", ["v1", "v6", "v7"])
def test_with_a_lease_and_without_any_age_each_id_has_its_own_reading_of_utc(
    world: World, time: Time, kind: Kind
) -> None:
    with leasing(world, max_age=0) as (server, client):
        draw, time.step = client.factory(kind), 1
        for make in (lambda: [draw()], lambda: client.make(kind, 3)):
            time.move(1)
            begun = time.utc
            ticks = [tick(kind, id) for id in make()]
            assert begun < ticks[0]
            assert ticks == sorted(set(ticks))
        assert not server.requests


@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize("kind", ["v1", "v7"])
def test_a_block_is_used_until_it_is_too_old(
    serve: Serve, time: Time, kind: Kind, many: bool
) -> None:
    """Its age is that of its first tick, which was chosen as early as the request was sent."""

    def late(_: bytes) -> Answer:
        time.utc += 30
        return granted(0, 50)

    # Of 100 ticks, the block has 50.
    _, client = serve(in_turn(late, gives((1000, 10))), max_age=100.5 * TICK)
    draw = client.factory(kind)

    def offset() -> int:
        return offsets(kind, client.make(kind, 1) if many else [draw()])[0]

    assert offset() == 0
    time.utc += 19
    assert offset() == 1
    time.utc += 1
    assert offset() == 1000


@pytest.mark.parametrize("kind", ["v1", "v7"])
@pytest.mark.parametrize(
    ("count", "waits"), [(10, False), (1000, False), (1_000_000, False), (1_000_001, True)]
)
def test_a_list_of_a_lane_is_of_the_latest_ticks(
    world: World, time: Time, kind: Kind, count: int, waits: bool
) -> None:
    with leasing(world) as (server, client):
        begun = time.utc
        made = client.make(kind, count, form="bytes")
        assert not server.requests
    assert (time.utc > begun) is waits
    ids = apart(kind, made)
    assert len(set(ids)) == len(ids) == count
    ticks = [tick(kind, id) for id in (*ids[:: count // 10], ids[-1])]
    assert ticks == sorted(ticks)
    assert begun - SECOND // 10 <= ticks[0]
    assert ticks[-1] <= time.utc


@pytest.mark.parametrize(
    ("kind", "max_age", "count", "asked"),
    [
        ("v1", 0.1, 1, 64),
        # Half of max_age: a block is as old as its first tick.
        ("v1", 0.000_001, 1, 5),
        ("v1", 0.1, 5000, 5000),
        # What is wanted at once is used up at once: 0.9 of max_age.
        ("v1", 0.01, 1_000_000, 90_000),
        # Though these ticks have room for fewer.
        ("snowflake", 0.01, 1_000_000, 90_000),
        # No more than a daemon gives.
        ("v1", 60.0, 5_000_000, MAX_BLOCK),
        ("v1", 0.0, 1000, 1),
    ],
)
def test_a_request_is_for_what_is_needed_and_for_what_max_age_allows(
    serve: Serve, kind: Kind, max_age: float, count: int, asked: int
) -> None:
    server, client = serve(gives(), fallback=False, max_age=max_age)
    with pytest.raises(DaemonUnavailable):
        client.make(kind, count)
    assert wanted(server) == [asked]


def latest(time: Time) -> Answer:
    """Return an answer that gives the latest ticks, as many as are asked for, steady ones once."""
    steady = 0

    def answer(request: bytes) -> Answer:
        nonlocal steady
        timeline, count, *_ = msgpack.unpackb(request)[3]
        first = time.utc - START - count + 1
        if timeline != "utc":
            first = max(first, steady)
            steady = first + count
        return granted(first, count)

    return answer


@pytest.mark.parametrize(
    ("bursts", "learnt"),
    # Once one was seen, there is room for the next, and for half as much again.
    [([20] * 10, 0), ([100, 100, 133, 50, 50], 1), ([5000, 5000, 6666, 2500, 2500], 1)],
    ids=["few", "hundred", "thousands"],
)
@pytest.mark.parametrize("kind", ["v1", "v7", "ksuid", "flake", "snowflake"])
def test_a_burst_like_the_last_one_is_one_round_trip(
    serve: Serve, time: Time, kind: Kind, bursts: list[int], learnt: int
) -> None:
    found = []
    server, client = serve(latest(time))
    draw: Callable[[], object] = client.factory(kind)
    for burst in bursts:
        for _ in range(burst):
            draw()
            time.move(0.000_001)
        found.append(len(server.requests))
        server.requests.clear()
        time.move(0.2)
    assert found[learnt:] == [1] * (len(bursts) - learnt)


@pytest.mark.parametrize("kind", TIMED)
@pytest.mark.parametrize("step", [-3600 * SECOND, -1, SECOND // 5, 3600 * SECOND])
def test_a_step_of_utc_ends_a_block(serve: Serve, time: Time, kind: Kind, step: int) -> None:
    """In either direction: otherwise ids would tell times ahead of UTC, or long past."""
    server, client = serve(latest(time))
    draws: list[Callable[[], Any]] = [client.factory(kind), lambda: client.make(kind, 1)[0]]
    ids = [draw() for draw in draws * 2]
    assert len(server.requests) == 1
    time.utc += step
    ids += [draw() for draw in draws * 2]
    assert len(server.requests) == 2
    # A clock that a test has frozen costs no request an id.
    time.ticks += 3600 * SECOND
    ids += [draw() for draw in draws * 2]
    assert len(server.requests) == 2
    assert len(set(ids)) == 12


def test_an_id_has_the_node_and_the_clock_sequence_of_its_block(serve: Serve) -> None:
    """Either may change alone: the clock sequence does when UTC was set back."""
    origins: list[dict[str, Any]] = [
        {},
        {"clock_seq": 6},
        {"clock_seq": 6, "node": bytes(5) + b"\7"},
    ]
    blocks = [granted(number, 1) | origin for number, origin in enumerate(origins)]
    _, client = serve(in_turn(*blocks), max_age=0)
    found = [client.uuid1(), *client.make("v6", 1), client.uuid1()]
    assert [(id.node, id.clock_seq) for id in found] == [(NODE, 5), (NODE, 6), (7, 6)]


def test_a_block_that_was_used_up_in_time_is_followed_by_a_larger_one(
    path: Path, time: Time
) -> None:
    with Server(path, gives(*((1000 * n, 10) for n in range(12)))) as server:
        client = Client(path, fallback=False, max_age=0.0002, _clock=time)
        for _ in range(120):
            client.flake()
        assert wanted(server) == [64, 128, 256, 512, *[1000] * 8]
        client.close()


def test_after_a_pause_there_is_room_for_half_as_much_again_as_before_it(
    serve: Serve, time: Time
) -> None:
    server, client = serve(gives(*((SECOND * number, 2000) for number in range(3))))
    for count in (1000, 1, 1):
        client.make("flake", count)
        time.move(1)
    assert wanted(server) == [1000, 1500, 64]


def test_a_daemon_whose_blocks_have_no_place_is_given_up(serve: Serve) -> None:
    server, client = serve(gives(*[(1, 1)] * 100))
    with pytest.raises(
        DaemonUnavailable, match=f"{MAX_EMPTY} blocks in a row have no place for a snowflake"
    ) as caught:
        client.snowflake()
    assert caught.value.reason == "unusable"
    assert len(server.requests) == 1 + MAX_EMPTY


@pytest.mark.parametrize(
    ("kind", "years", "words"),
    [
        ("snowflake", 60, "the time is 2083-.*a snowflake holds times from 2010-11.* to 2080-07"),
        ("ksuid", 130, "the time is 2153-.*a ksuid holds times from 2014-05-13.* to 2150-06"),
        ("ksuid", -11, "the time is 2012-.*a ksuid holds times from 2014-05-13.* to 2150-06"),
        ("v7", -60, "the time is 1963-.*a v7 holds times from 1970-01-01"),
    ],
)
def test_a_time_that_the_kind_cannot_hold_is_named(
    serve: Serve, time: Time, kind: Kind, years: int, words: str
) -> None:
    time.utc += years * YEAR
    _, client = serve(gives((years * YEAR, 3)))
    with pytest.raises(TimeOutOfRange, match=words) as caught:
        client.make(kind, 1)
    assert caught.value.kind == kind


@pytest.mark.parametrize("kind", ["snowflake", "ksuid"])
def test_a_daemon_whose_time_no_id_can_hold_is_wrong(serve: Serve, time: Time, kind: Kind) -> None:
    _, client = serve(gives((130 * YEAR, 3), (0, 3)))
    with pytest.raises(DaemonUnavailable, match="an unusable answer: the time is 2153-"):
        client.make(kind, 1)
    assert client.make(kind, 1)


def test_a_daemon_that_refused_is_not_asked_for_a_quarter_of_a_second(
    serve: Serve, time: Time
) -> None:
    def slow(_: bytes) -> Answer:
        time.move(5)
        return "unavailable: the disk is full"

    server, client = serve(slow, max_age=0)
    asked = []
    for _ in range(12):
        client.make("flake", 1)
        asked.append(len(server.requests))
        time.move(RETRY_SECONDS / 4)
    assert asked == [1] * 4 + [2] * 4 + [3] * 4


def test_a_daemon_that_was_not_there_is_asked_again_after_a_quarter_of_a_second(
    path: Path, time: Time
) -> None:
    """To try it costs next to nothing, and ids are to be safe soon after it is back."""
    with Client(path, max_age=0, _clock=time) as client:
        found = [client.uuid1()]
        with Server(path, gives((SECOND * 60, 64))):
            time.move(RETRY_SECONDS - 0.01)
            found.append(client.uuid1())
            time.move(0.01)
            found.append(client.uuid1())
    unknown = SafeUUID.unknown
    assert [id.is_safe for id in found] == [unknown, unknown, SafeUUID.safe]


def test_a_client_that_was_closed_asks_at_once_where_it_was_refused(serve: Serve) -> None:
    server, client = serve("unavailable: the disk is full", max_age=0)
    for asked in (1, 1):
        client.flake()
        assert len(server.requests) == asked
    client.close()
    client.flake()
    assert len(server.requests) == 2


def test_a_daemon_that_is_silent_is_looked_after_at_each_call(serve: Serve, time: Time) -> None:
    """The connection does not wait for it again, so there is nothing to put off."""
    answers = in_turn(b"", *[gives((60 * SECOND + n, 1)) for n in range(1000)])
    server, client = serve(answers, max_age=0, timeout=0.01)
    assert client.uuid1().is_safe is SafeUUID.unknown
    until(lambda: server.requests)
    server.say_late(0, granted(0, 1))
    # The time does not go on.
    until(lambda: client.uuid1().is_safe is SafeUUID.safe)


def test_without_fallback_a_daemon_that_is_absent_is_asked_each_time(
    path: Path, time: Time
) -> None:
    """Without other ids there is nothing to be won by not asking. An iterator goes on too."""
    with Client(path, fallback=False, _clock=time) as client:
        draws = [client.uuid1, client.iter("v1").__next__]
        for draw in draws * 2:
            with pytest.raises(DaemonUnavailable, match="No such file"):
                draw()
        with Server(path, grants()):
            assert [draw().is_safe for draw in draws] == [SafeUUID.safe] * 2


@pytest.mark.parametrize(
    ("kind", "said", "error"),
    [
        ("v1", "unavailable: the disk is full", DaemonUnavailable),
        ("snowflake", "no_worker_id: it has none", NoWorkerId),
    ],
)
def test_without_fallback_a_refusal_is_raised_again_meanwhile(
    serve: Serve, time: Time, kind: Kind, said: str, error: type[DaemonUnavailable]
) -> None:
    """A program in a loop does not keep a daemon busy that cannot help. Each error is its own."""
    raised = []
    server, client = serve(said, fallback=kind == "snowflake")
    for asked in (1, 1, 2):
        with pytest.raises(error, match=said.partition(": ")[2]) as caught:
            client.make(kind, 1)
        assert type(caught.value) is error
        raised.append(caught.value)
        assert len(server.requests) == asked
        time.move(RETRY_SECONDS / 2)
    assert len({*map(id, raised)}) == 3


def test_what_is_refused_to_one_timeline_is_given_to_the_others(serve: Serve) -> None:
    def answer(request: bytes) -> Answer:
        return "unavailable: no disk" if b"steady" in request else granted(0, 64)

    _, client = serve(answer)
    assert client.uuid7().is_safe is SafeUUID.unknown
    assert client.uuid1().is_safe is SafeUUID.safe
    assert client.snowflake()


def test_each_id_of_a_list_is_marked_by_its_own_block(serve: Serve) -> None:
    """When the daemon goes in the middle of a call, only what it gave is safe."""
    _, client = serve(gives((0, 2)))
    made = client.make("v1", 4)
    assert [id.is_safe for id in made] == [SafeUUID.safe] * 2 + [SafeUUID.unknown] * 2


def test_a_page_that_tells_of_a_clone_each_time_is_given_up(world: World, time: Time) -> None:
    def cloned(_: bytes) -> Answer:
        world.lanes.renew()
        return granted(0, 1)

    with (
        Server(world.path, cloned, greeting=[world.lanes.fd]),
        Client(world.path, fallback=False, _clock=time) as client,
        pytest.raises(DaemonUnavailable, match="its page told of 100 clones in one call"),
    ):
        client.uuid7()


@pytest.mark.parametrize("kind", TIMED)
@pytest.mark.parametrize("there", [True, False])
def test_a_clock_that_stands_still_holds_nobody_up(
    path: Path, monkeypatch: pytest.MonkeyPatch, kind: Kind, there: bool
) -> None:
    if not there and kind == "snowflake":
        return
    time = Time(10)
    world = World(path, time)
    with contextlib.ExitStack() as stack:
        stack.callback(world.lanes.close)
        if there:
            stack.enter_context(world.server())
        client = stack.enter_context(Client(path, _clock=time))
        found = [client.make(kind, 1)[0] for _ in range(2)]
        time.move(1)
        # From now on, only what is elapsed goes on.
        utc = time.utc
        monkeypatch.setattr(Time, "utc", property(lambda _: utc, lambda *_: None), raising=False)
        draw = client.factory(kind)
        for _ in range(20):
            found.append(draw())
            world.ahead += 1000
        found += client.make(kind, 200)
    assert len(set(found)) == len(found)


class Interrupted(dict[life.Life, Channel]):
    """The channels of a client; a handler runs between a look for one and what follows it."""

    def __init__(self, handler: Callable[[], object]) -> None:
        super().__init__()
        self.handlers = iter([handler])

    def get(self, key: life.Life, default: Any = None) -> Any:
        """Return the channel, if it was there before the handler."""
        found = super().get(key, default)
        next(self.handlers, lambda: None)()
        return found


def settings_of(path: Path) -> Settings:
    return Settings(str(path), True, 0.1, 1.0, SYSTEM_CLOCK, Cutter, shared=True)


def test_a_handler_that_makes_the_channel_of_a_life_first_leaves_it(path: Path) -> None:
    """Otherwise the next call would begin anew, before ids that were made already."""
    channels = Channels(partial(Channel, settings_of(path)))
    found: list[Channel] = []
    channels.made = Interrupted(lambda: channels.call(found.append))
    channels.call(found.append)
    channels.call(found.append)
    assert found == [found[0]] * 3


def test_requests_of_a_call_that_interrupts_another_count_too(path: Path) -> None:
    channel = Channel(settings_of(path), life.current())
    with Server(path, grants()):
        channel.in_turn(lambda _: channel.make("v7", "uuid", 1))
        assert channel.stats().blocks == 1
        channel.close()


def test_a_call_that_interrupts_another_leaves_the_log_to_it(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A line is logged without a lock: who handles it may wait for one that another call has."""
    channel = Channel(settings_of(path), life.current())

    def interrupted(_: Channel) -> None:
        channel.make("v7", "uuid", 1)
        assert caplog.messages == []

    with warnings.catch_warnings(action="ignore"):
        channel.in_turn(interrupted)
    assert len(caplog.messages) == 1
