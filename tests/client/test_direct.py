"""Ids that are made one by one, with the tick of now, without a lock or a run."""

from __future__ import annotations

import itertools
import os
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from uuid import UUID, SafeUUID

import pytest

from tests import kinds
from tests.client.breaking import come_between
from tests.client.fakes import START, Blocks, Time, block
from tests.client.lanes import Clock, Lanes, World
from tests.client.raw import raw_fork
from uuidd.core.ids import versions
from uuidd.core.ids.layouts import LAYOUTS
from uuidd.core.ids.ticks import TICKS_PER_SECOND, UNIX_EPOCH
from uuidd.core.timeline.page import DUE_AT, HORIZON_AT
from uuidd_client import Client, direct
from uuidd_client.direct import MANY, PAUSE
from uuidd_client.fork_guard import ForkGuard
from uuidd_client.places import Places
from uuidd_client.source import LatestSteady, Source

if TYPE_CHECKING:
    from uuidd_client.client import Kind

pytestmark = pytest.mark.usefixtures("implementation")

KINDS = ["v1", "v6", "v7"]
FORMS = ["uuid", "text"]

TICKS = [
    START,
    START + 1,
    UNIX_EPOCH + 4,
    (1 << 60) - 2,
    *range(START + 12345, START + 10**12, 33_333_333_337),
]
"""With all bits of the tick, in turn, set and not set."""


@pytest.fixture
def lanes(time: Time) -> Iterator[Lanes]:
    """Return what leases lanes, without an end."""
    lanes = Lanes((1 << 60) - 1, clock=time)
    lanes.begin = 0
    yield lanes
    lanes.close()


class One:
    """What makes ids of *kind* in *form*, one by one: *draw*; and what it shares with runs."""

    def __init__(self, lanes: Lanes, kind: str, form: str = "uuid", max_age: float = 0.1) -> None:
        self.latest = LatestSteady()
        lane = lanes.own_lane(self.latest if kind == "v7" else None)
        self.guard = ForkGuard()
        self.blocks = Blocks(block(0, 1), clock=lanes.clock)
        source = cast(Source, self.blocks)
        self.places = Places(kind, source, self.guard, max_age, lane=lane)
        assert lane.lease is not None
        self.lease = lane.lease
        made = direct.direct(form, self.places, self.lease)
        assert made is not None
        self.draw: Callable[[], Any] = made


# --- the value


@pytest.mark.parametrize("random", [b"\x00", b"\xff"])
@pytest.mark.parametrize("kind", KINDS)
def test_an_id_is_that_of_its_tick_bit_for_bit(
    lanes: Lanes, time: Time, monkeypatch: pytest.MonkeyPatch, kind: str, random: bytes
) -> None:
    """As a run makes it, of the same tick, lane and random bits."""
    monkeypatch.setattr(direct, "random_bytes", lambda count: random * count)
    one = One(lanes, kind)
    for tick in sorted(TICKS):
        time.utc = tick
        made = one.draw()
        run = LAYOUTS[kind].forms["uuid"](tick, 1, one.lease.origin, lambda count: random * count)
        assert (made.int, made.is_safe) == (next(run), SafeUUID.safe)


def test_a_v7_has_52_random_bits(lanes: Lanes, time: Time, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of them as it was drawn."""
    one = One(lanes, "v7")
    seen = set()
    for bit in range(64):
        drawn = (1 << bit).to_bytes(8, "big")
        monkeypatch.setattr(direct, "random_bytes", lambda size, drawn=drawn: drawn * (size // 8))
        time.move(0.002)
        seen.add(one.draw().int & (1 << 52) - 1)
    assert seen == {0, *(1 << bit for bit in range(52))}


def test_random_bits_are_used_once_and_not_after_a_pause(
    lanes: Lanes, time: Time, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A few ids share what one call of the system returns."""
    reads: list[int] = []

    def read(size: int) -> bytes:
        reads.append(size)
        return os.urandom(size)

    monkeypatch.setattr(direct, "random_bytes", read)
    one, tails = One(lanes, "v7"), set()
    for pause in (0.002, 0.00001, 0.00001, 0.002, 0.00001):
        time.move(pause)
        tails.add(one.draw().int & (1 << 52) - 1)
    assert len(tails) == 5
    assert len(reads) == 2


@pytest.mark.parametrize("kind", KINDS)
def test_a_text_is_that_of_its_uuid(lanes: Lanes, time: Time, kind: str) -> None:
    """For many ticks."""
    one = One(lanes, kind, "text")
    for tick in sorted(TICKS):
        time.utc = tick
        made = one.draw()
        read = UUID(made)
        assert str(read) == made
        assert (versions.v7_tick if kind == "v7" else _tick)(read.int) == tick


def _tick(value: int) -> int:
    return versions.gregorian_fields(value).tick


@pytest.mark.parametrize("kind", [kind for kind in kinds.KINDS if kind not in KINDS])
def test_other_kinds_are_made_in_runs(lanes: Lanes, time: Time, kind: str) -> None:
    """For them there is no such function; nor for the bytes of a UUID."""
    one = One(lanes, "v1")
    places = Places(kind, cast(Source, one.blocks), one.guard, 0.1)
    assert direct.direct("text", places, one.lease) is None
    assert direct.direct("bytes", one.places, one.lease) is None


# --- when none is made


def test_no_tick_is_used_twice(lanes: Lanes, time: Time) -> None:
    """While the clock stands still, or steps back, a run has to serve."""
    one = One(lanes, "v1")
    assert one.draw()
    assert one.draw() is None
    time.utc -= 1
    assert one.draw() is None
    time.utc += 2
    assert one.draw()


def test_no_tick_of_what_is_reserved_is_used(lanes: Lanes, time: Time) -> None:
    """A run that was cut has it."""
    one = One(lanes, "v1")
    one.places.ensure(1, ahead=16)
    assert one.draw() is None
    time.utc += 1
    assert one.draw()


def test_no_tick_before_that_of_a_block_is_used(lanes: Lanes, time: Time) -> None:
    """The block may be of a clock that is ahead."""
    one = One(lanes, "v1")
    one.places.first = time.utc + 1
    assert one.draw() is None
    time.utc += 1
    assert one.draw()


def test_none_is_made_at_the_horizon(lanes: Lanes, time: Time) -> None:
    """The last one is that before it."""
    one = One(lanes, "v1")
    lanes.words[HORIZON_AT] = time.utc
    assert one.draw() is None
    lanes.words[HORIZON_AT] = time.utc + 1
    assert one.draw()


def test_no_tick_is_used_after_the_lease_has_ended(lanes: Lanes, time: Time) -> None:
    """The token is that of another holder, or none."""
    one = One(lanes, "v1")
    lanes.words[one.lease.at] += 1
    assert one.draw() is None
    lanes.revoke()
    assert one.draw() is None


def test_no_tick_before_the_begin_of_the_lease_is_used(lanes: Lanes, time: Time) -> None:
    """The last holder of the lane may have used it."""
    lanes.begin = time.utc + 1
    one = One(lanes, "v1")
    assert one.draw() is None
    time.utc += 1
    assert one.draw()


def test_no_steady_tick_before_the_latest_is_used(lanes: Lanes, time: Time) -> None:
    """As after the fallback has led UTC. Another kind may have used the tick of now."""
    one = One(lanes, "v7")
    one.latest.note(time.utc + 2)
    assert one.draw() is None
    time.utc += 5
    assert one.draw()
    assert one.latest.end == time.utc + 1


def test_none_is_made_while_the_daemon_has_to_be_told(lanes: Lanes, time: Time) -> None:
    """That costs a call to the system, which the next run makes."""
    one = One(lanes, "v1")
    one.lease.tell_at = time.utc + 1
    assert one.draw()
    time.utc += 1
    assert one.draw() is None
    assert lanes.words[DUE_AT] > time.utc


def test_many_in_a_row_are_made_in_runs(lanes: Lanes, time: Time) -> None:
    """Until there is a pause."""
    one = One(lanes, "v1")
    for _ in range(MANY):
        assert one.draw()
        time.utc += 10
    assert one.draw() is None
    time.utc += PAUSE
    assert one.draw()


def test_without_any_age_all_are_made_one_by_one(lanes: Lanes, time: Time) -> None:
    """A run could not be drawn from."""
    one = One(lanes, "v1", max_age=0)
    for _ in range(10 * MANY):
        assert one.draw()
        time.utc += 1


def test_none_is_made_in_a_forks_child(lanes: Lanes, time: Time) -> None:
    """The last look is at memory that a child finds empty."""
    one = One(lanes, "v1")
    one.guard.wipe()
    assert one.draw() is None


@pytest.mark.process
@pytest.mark.parametrize("fork", [os.fork, raw_fork])
@pytest.mark.parametrize("form", FORMS)
def test_a_child_does_not_use_its_parents_lease(
    lanes: Lanes, time: Time, fork: Callable[[], int], form: str
) -> None:
    """However it was forked."""
    one = One(lanes, "v7", form)
    pid = fork()
    if not pid:
        os._exit(one.draw() is not None)
    assert os.waitpid(pid, 0)[1] == 0
    assert one.draw()


# --- beside runs


@pytest.fixture
def ticking(time: Time) -> Time:
    """Return the clock, which goes on by a tick whenever its tick is read."""
    time.step = 1
    return time


@pytest.fixture
def leased(tmp_path: Path, ticking: Time) -> Iterator[Client]:
    """Return a client that has leased lanes for v1 and v7."""
    world = World(tmp_path / "s", ticking)
    with world.server() as server, Client(world.path, fallback=False, _clock=world.time) as client:
        for kind in ("v1", "v7"):
            client.make(kind, 1)
            ticking.move(1)
            client.make(kind, 1)
            ticking.move(1)
        assert server.asked == 2
        yield client
    world.lanes.close()


def place(id: Any) -> tuple[int, int]:
    """Return the tick and the lane of a v1 or v7 in any form."""
    value = id.int if isinstance(id, UUID) else UUID(id).int
    if value >> 76 & 15 == 7:
        return versions.v7_tick(value), value >> versions.V7_RANDOM_BITS - 8 & 0xFF
    fields = versions.gregorian_fields(value)
    return fields.tick, fields.clock_seq


def key(id: Any) -> int:
    """Return the tick of a v1 or v7 in any form."""
    return place(id)[0]


@pytest.mark.parametrize("kind", ["v1", "v7"])
def test_a_run_of_another_form_is_dropped_when_an_id_was_made(
    leased: Client, ticking: Time, kind: Kind
) -> None:
    """What is left of it is older."""
    uuids, texts = leased.factory(kind), leased.factory(kind, "text")
    uuids()
    found = [texts(), uuids(), texts(), uuids(), uuids(), texts(), texts(), uuids(), texts()]
    keys = [key(id) for id in found]
    assert keys == sorted(set(keys))
    # They are of now: only the first of a form was in a run.
    assert ticking.utc - keys[-1] < 3


def test_a_list_begins_behind_an_id_that_was_made(lanes: Lanes, time: Time) -> None:
    """Of the lane's latest ticks, those up to the id's are left out."""
    one = One(lanes, "v1")
    assert one.draw()
    time.utc += 5
    one.places.ensure(100)
    assert (one.places.first, one.places.end) == (time.utc - 4, time.utc + 1)


def test_places_do_not_outlive_an_id_that_was_made_meanwhile(lanes: Lanes, time: Time) -> None:
    """As by a signal handler, in the middle of a request for a block."""
    one = One(lanes, "v1")
    lanes.words[HORIZON_AT] = 0

    def draw() -> None:
        lanes.words[HORIZON_AT] = time.utc + 1
        assert one.draw()

    one.blocks.before = draw
    one.places.ensure(1)
    assert one.blocks.asked
    assert not one.places.valid()
    # Nor does a run that is made of them.
    assert not one.places.deadline[0]


def test_places_are_not_valid_once_the_mark_has_moved(lanes: Lanes, time: Time) -> None:
    """An id that the extension makes of the lane moves only the mark."""
    one = One(lanes, "v1")
    one.places.ensure(100)
    assert one.places.valid()
    one.places.reserved.raise_to(time.utc + 2)
    assert not one.places.valid()


DRAWS: dict[str, Callable[[Client, Kind], list[Any]]] = {
    "uuid": lambda client, kind: [client.factory(kind)()],
    "text": lambda client, kind: [next(client.iter(kind, "text"))],
    "list": lambda client, kind: client.make(kind, 3, "text"),
}


@pytest.mark.parametrize("between", DRAWS)
@pytest.mark.parametrize("way", DRAWS)
@pytest.mark.parametrize("kind", ["v1", "v7"])
def test_a_handler_that_draws_anywhere_repeats_nothing_and_keeps_the_order(
    leased: Client, ticking: Time, kind: Kind, way: str, between: str
) -> None:
    """Its ids are above all before, and all that are drawn later are above its ids."""
    found: list[Any] = []
    highest = 0
    for at in itertools.count(1):
        inside: list[Any] = []
        # One by one, or out of runs.
        if at % 2:
            ticking.move(0.002)
        for _ in range(at % 3):
            found += DRAWS[way](leased, kind) + DRAWS[between](leased, kind)
            highest = key(found[-1])
        ids = come_between(
            lambda: DRAWS[way](leased, kind),
            at,
            lambda inside=inside: inside.extend(DRAWS[between](leased, kind)),  # type: ignore[misc]
        )
        later = [id for name in ("uuid", "text", "list") for id in DRAWS[name](leased, kind)]
        keys = [key(id) for id in inside]
        assert keys == sorted(keys)
        assert not keys or keys[0] > highest, at
        assert key(ids[0]) > highest, at
        assert key(later[0]) > max(keys + [key(id) for id in ids]), at
        found += inside + ids + later
        highest = key(found[-1])
        if not inside:
            break
    assert at > 5
    assert len({place(id) for id in found}) == len(found)


@pytest.mark.parametrize("way", ["factory", "iter"])
@pytest.mark.parametrize("kind", ["v1", "v7"])
def test_a_handler_may_find_no_tick_in_the_middle_of_a_draw(
    tmp_path: Path, time: Time, kind: Kind, way: str
) -> None:
    """Nor may another thread, of which it stands for: CPython 3.11.2 raised SystemError then."""
    world = World(tmp_path / "s", time)
    with world.server(), Client(world.path, fallback=False, _clock=world.time) as client:
        client.make(kind, 1)
        time.move(1)
        draw = client.iter(kind).__next__ if way == "iter" else client.factory(kind)
        found: list[Any] = []
        for at in itertools.count(1):
            inside: list[Any] = []
            # So that ids are made one by one, and the handler finds the tick of now used.
            time.move(1)
            found.append(draw())
            time.move(1 / TICKS_PER_SECOND)
            found.append(come_between(draw, at, lambda inside=inside: inside.append(draw())))  # type: ignore[misc]
            if not inside:
                break
            found += inside
        assert at > 1
    world.lanes.close()
    assert len(set(found)) == len(found)


@pytest.mark.parametrize("kind", ["v1", "v7"])
def test_threads_that_draw_in_all_ways_at_once_get_no_tick_twice(
    tmp_path: Path, kind: Kind
) -> None:
    """One by one and in runs, of one lane; each thread's ids rise."""
    world = World(tmp_path / "s", Clock())
    with world.server() as server, Client(server.path, fallback=False) as client:
        client.make(kind, 100)
        found: list[list[Any]] = [[] for _ in range(4)]

        def draw(ids: list[Any]) -> None:
            uuids, texts = client.factory(kind), client.iter(kind, "text")
            for number in range(300):
                ids.append(uuids())
                ids.append(next(texts))
                if number % 10 == 0:
                    ids += client.make(kind, 20)

        before = sys.getswitchinterval()
        sys.setswitchinterval(1e-6)
        try:
            threads = [threading.Thread(target=draw, args=[ids]) for ids in found]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(60)
        finally:
            sys.setswitchinterval(before)
        assert server.asked == 1
    world.lanes.close()
    every = [place(id) for ids in found for id in ids]
    assert len(set(every)) == len(every) == 4 * 1200
    for ids in found:
        keys = [key(id) for id in ids]
        assert keys == sorted(keys)


def test_a_horizon_that_no_clock_reaches_is_no_error(tmp_path: Path) -> None:
    """A daemon may write any word into its page."""
    world = World(tmp_path / "s", Clock())
    world.lanes.words[HORIZON_AT] = world.lanes.words[DUE_AT] = (1 << 64) - 1
    with world.server(), Client(tmp_path / "s", fallback=False) as client:
        assert len({client.uuid7() for _ in range(100)}) == 100
    world.lanes.close()
