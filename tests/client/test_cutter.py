"""The rules by which a cutter makes an id, in C and in Python; the bits are those of kinds.py."""

from __future__ import annotations

import faulthandler
import itertools
import mmap
import os
import resource
import signal
from collections.abc import Callable, Iterator
from functools import partial
from random import Random
from typing import Any
from uuid import UUID

import pytest

from tests import kinds
from tests.client import draws
from tests.client.breaking import come_between
from tests.client.cutters import CUTTERS, LANE, PASSED, TOKEN, WAYS, Hand
from tests.client.draws import EPOCH, check, check_draws, range_of
from tests.client.fakes import START
from tests.judge import assert_rising
from tests.kinds import FORMS, KINDS, LEASED, MS, TIMED
from uuidd.core.ids.places import Origin
from uuidd.core.ids.ticks import UNIX_EPOCH
from uuidd_client import cutter
from uuidd_client.cutter import MOST_AHEAD, READINGS

EACH_WAY = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
EACH_WAY_AND_SOURCE = pytest.mark.parametrize(
    "way", [*WAYS.values(), *PASSED.values()], ids=[*WAYS, *PASSED]
)

Way = Callable[[Hand], list[UUID]]


def ticks(ids: list[Any]) -> list[int]:
    return [kinds.tick("v1", id) for id in ids]


@pytest.mark.parametrize("kind", TIMED)
def test_each_place_of_a_block_is_used_once_in_its_order(new: Any, kind: str) -> None:
    first = kinds.places(kind)[0] + 10**12
    hand = Hand(new).block(first, 20)
    places = [kinds.place(kind, hand.one(kind)) for _ in range(20)]
    assert places == [*range(first, first + 20)]
    assert hand.one(kind) is None


@EACH_WAY_AND_SOURCE
def test_no_place_before_those_that_were_used_is_used(new: Any, way: Way) -> None:
    hand = Hand(new).block()
    hand.cutter.raise_to(START + 9)
    assert ticks(way(hand)) == [START + 9]
    assert hand.cutter.used == START + 10
    assert way(hand) == []


def test_what_was_used_does_not_fall(new: Any) -> None:
    hand = Hand(new)
    hand.cutter.raise_to(5)
    hand.cutter.raise_to(3)
    assert hand.cutter.used == 5


@pytest.mark.parametrize("form", ["uuid", "text"])
def test_kinds_and_forms_of_one_cutter_share_its_places(new: Any, form: str) -> None:
    """A v6 is a v1 in another order of bits: both of one tick would be equal when converted."""
    hand = Hand(new).block(count=1000)
    found = []
    for _ in range(30):
        found += hand.ticks(1, "v1", "uuid") + hand.ticks(3, "v6", form)
        found += ticks(hand.many(2, form="bytes"))
    assert None not in found
    assert_rising(found)


@EACH_WAY
def test_without_a_source_there_is_none(new: Any, way: Way) -> None:
    hand = Hand(new)
    assert way(hand) == []
    hand.block()
    assert way(hand)
    hand.cutter.source = None
    assert way(hand) == []


@EACH_WAY
@pytest.mark.parametrize("kind_of_source", ["block", "lane"])
def test_a_source_is_used_in_its_span_of_utc(new: Any, way: Way, kind_of_source: str) -> None:
    hand = Hand(new)
    begin = hand.now
    getattr(hand, kind_of_source)(since=begin, until=begin + 20)
    found = []
    for now in (begin - 1, begin, begin + 19, begin + 20, begin - 1):
        hand.now = now
        found.append(len(way(hand)))
    assert found == [0, 1, 1, 0, 0]


@pytest.mark.parametrize("way", PASSED.values(), ids=PASSED)
def test_a_source_that_is_passed_is_used_whatever_utc_is(new: Any, way: Way) -> None:
    """It was asked for after the call began, so no id of it is too old."""
    assert way(Hand(new).block(since=0, until=0))


def test_a_source_that_is_passed_does_not_stay(new: Any) -> None:
    hand = Hand(new).block()
    passed = hand.source(START + 100, START + 200, origin=LANE)
    hand.many(1, "v1", "uuid", passed)
    hand.many(1, "v1", "bytes", passed)
    assert hand.cutter.source == hand.source(START, START + 10)


@EACH_WAY_AND_SOURCE
@pytest.mark.parametrize("kind_of_source", ["block", "lane"])
def test_none_is_made_at_the_horizon(new: Any, way: Way, kind_of_source: str) -> None:
    hand = Hand(new)
    getattr(hand, kind_of_source)()
    hand.horizon[0] = hand.now
    assert way(hand) == []
    hand.horizon[0] = hand.now + 1
    assert way(hand)


@EACH_WAY_AND_SOURCE
@pytest.mark.parametrize("changed", [1, 1 << 63, TOKEN])
def test_none_is_made_once_the_token_is_another(new: Any, way: Way, changed: int) -> None:
    hand = Hand(new).block()
    hand.token[0] ^= changed
    assert way(hand) == []
    hand.token[0] = TOKEN
    assert way(hand)


@EACH_WAY_AND_SOURCE
@pytest.mark.parametrize("word", ["horizon", "token"])
def test_the_words_of_a_source_are_read_after_utc(new: Any, way: Way, word: str) -> None:
    """A lease that ends meanwhile has ended: the horizon of before may be too far."""
    hand = Hand(new).lane()

    def end() -> None:
        getattr(hand, word)[0] = 0

    hand.between = end
    assert way(hand) == []


@pytest.mark.process
@EACH_WAY
def test_a_cutter_reads_the_horizon_before_the_token(new: Any, way: Way) -> None:
    """Otherwise a lease that ends between the two is used up to a horizon that was raised since.

    To read the horizon ends the process here. So it ends only if the token, which is another's, was
    not read before.
    """
    file = os.memfd_create("horizon")
    os.ftruncate(file, mmap.PAGESIZE)
    memory = mmap.mmap(file, mmap.PAGESIZE)
    hand = Hand(new)
    hand.horizon = memoryview(memory).cast("Q")
    hand.horizon[0] = hand.now + 1
    hand.block()
    hand.token[0] += 1
    os.ftruncate(file, 0)
    os.close(file)
    pid = os.fork()
    if not pid:
        faulthandler.disable()
        signal.signal(signal.SIGBUS, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        way(hand)
        os._exit(0)
    assert os.WTERMSIG(os.waitpid(pid, 0)[1]) == signal.SIGBUS


@EACH_WAY
def test_a_source_is_replaced_as_a_whole(new: Any, way: Way) -> None:
    """What reads the clock may ask for another: no id has the tick of one and the node of both."""
    hand = Hand(new).block(START, 10, origin=Origin(1))

    def replace() -> None:
        hand.between = lambda: None
        hand.block(START + 100, 10, origin=Origin(2))

    hand.between = replace
    [id] = way(hand)
    assert id.node == (1 if kinds.tick("v1", id) < START + 10 else 2)


@EACH_WAY_AND_SOURCE
@pytest.mark.parametrize("kind", ["v1", "v6"])
def test_a_draw_while_the_clock_is_read_has_a_place_of_its_own(
    new: Any, way: Way, kind: str
) -> None:
    hand = Hand(new)
    source = hand.source(START, START + 10)
    hand.cutter.source = source
    inner: list[Any] = []

    def draw() -> None:
        hand.between = lambda: None
        inner.extend(hand.many(1, kind, "bytes", source))

    hand.between = draw
    [tick] = ticks(way(hand))
    assert {tick, kinds.tick(kind, inner[0])} == {START, START + 1}


@pytest.mark.parametrize("way", ["one", "uuid", "bytes"])
def test_a_draw_while_random_bytes_are_read_has_a_place_of_its_own(new: Any, way: str) -> None:
    inner: list[int | None] = []

    def read(size: int) -> bytes:
        if not inner:
            inner.append(0)
            inner[0] = hand.tick("v7", "text")
        return bytes(size)

    hand = Hand(new, random=read).block()
    [made] = [hand.one("v7")] if way == "one" else hand.many(1, "v7", way)
    assert {kinds.tick("v7", made), inner[0]} == {START, START + 1}


@EACH_WAY
@pytest.mark.parametrize("kind_of_source", ["block", "lane"])
@pytest.mark.parametrize("other", WAYS.values(), ids=WAYS)
def test_a_draw_of_a_handler_anywhere_has_a_place_of_its_own(
    way: Way, kind_of_source: str, other: Way
) -> None:
    """Of the cutter in Python. No handler comes into the middle of the one in C."""
    for at in itertools.count(1):
        hand = Hand(cutter.Cutter)
        getattr(hand, kind_of_source)()
        made = [*way(hand), *way(hand)]
        hand.now += 10
        inner: list[UUID] = []
        made += come_between(partial(way, hand), at, lambda: inner.extend(other(hand)))  # noqa: B023
        hand.now += 10
        found = ticks([*made, *inner, *way(hand)])
        assert len(set(found)) == len(found) >= 3
        if not inner:
            break
    assert at > 5


@pytest.mark.parametrize(
    ("max_age", "steps"), [(0.1, (MS, MS)), (0, (1, 2, 3, 50, 51, 1000))], ids=["rested", "no age"]
)
@pytest.mark.parametrize("kind", LEASED)
def test_an_id_of_a_lane_has_the_tick_of_now(
    new: Any, kind: str, max_age: float, steps: tuple[int, ...]
) -> None:
    hand = Hand(new, max_age).lane()
    for step in (0, *steps):
        hand.now += step
        assert hand.tick(kind) == hand.now


@EACH_WAY_AND_SOURCE
def test_a_lane_has_one_id_a_tick(new: Any, way: Way) -> None:
    hand = Hand(new).lane()
    assert ticks(way(hand)) == [hand.now]
    assert way(hand) == []
    hand.now -= 1
    assert way(hand) == []
    hand.now += 2
    assert ticks(way(hand)) == [hand.now]


def test_an_id_waits_for_the_next_tick(new: Any) -> None:
    hand = Hand(new).lane()
    before = hand.tick()
    hand.readings = 0

    def go_on() -> None:
        if hand.readings == 10:
            hand.now += 1

    hand.between = go_on
    assert (before, hand.tick()) == (hand.now - 1, hand.now)
    assert hand.readings == 11


def test_no_id_waits_for_long(new: Any) -> None:
    """A clock that a test has stopped is read some times; one that went back is not waited for."""
    hand = Hand(new).lane()
    hand.one()
    hand.readings = 0
    assert hand.one() is None
    assert READINGS <= hand.readings <= READINGS + 1
    hand.readings = 0
    hand.now -= 1
    assert hand.one() is None
    assert hand.readings <= 2


@EACH_WAY_AND_SOURCE
def test_no_tick_before_the_first_of_a_lane_is_used(new: Any, way: Way) -> None:
    """The last holder of the lane may have used it."""
    hand = Hand(new)
    hand.cutter.raise_to(hand.now - 20)
    hand.lane(first=hand.now)
    [tick] = ticks(way(hand))
    assert tick == hand.now
    hand.lane(first=hand.now + 3)
    hand.now += 2
    assert way(hand) == []


@pytest.mark.parametrize("form", ["uuid", "bytes"])
def test_many_of_a_lane_leave_half_a_millisecond_of_ticks_to_the_next(new: Any, form: str) -> None:
    hand = Hand(new).lane()
    end = 0
    for step in (0, 3, 100_000):
        hand.now += step
        end = max(end, hand.now - 5 + 1 - 5_000) + 5
        assert ticks(hand.many(5, "v1", form)) == [*range(end - 5, end)]


@pytest.mark.parametrize("form", ["uuid", "bytes"])
def test_many_without_any_age_have_the_last_free_ticks_up_to_now(new: Any, form: str) -> None:
    hand = Hand(new, max_age=0).lane()
    for step, count in ((0, 5), (3, 3), (1, 1), (100, 5)):
        hand.now += step
        expected = [*range(hand.now + 1 - count, hand.now + 1)]
        assert ticks(hand.many(5, "v1", form)) == expected


@pytest.mark.parametrize(("kind", "form"), FORMS)
def test_many_are_as_many_as_the_block_has(new: Any, kind: str, form: str) -> None:
    first = kinds.places(kind)[0] + 10**12 - 7 if KINDS[kind].timeline else 0
    hand = Hand(new).block(first, 4_507)
    if kind in ("v7", "ulid", "push_id", "flake"):
        assert first % MS
    ids = hand.many(4_500, kind, form)
    assert len(ids) == 4_500
    ids += hand.many(10, kind, form)
    assert len(set(ids)) == len(ids) == 4_507
    assert not KINDS[kind].timeline or [kinds.place(kind, id) for id in ids] == [
        *range(first, first + 4_507)
    ]
    assert not hand.cutter.many(kind, form, 1)


@pytest.mark.parametrize("source", ["block", "lane"])
def test_none_of_many_uses_nothing(new: Any, source: str) -> None:
    hand = Hand(new)
    getattr(hand, source)()
    assert hand.cutter.many("v1", "uuid", 0) == []
    assert hand.cutter.many("v1", "bytes", 0) == b""
    assert ticks(WAYS["one"](hand)) == [START if source == "block" else hand.now]


@pytest.mark.parametrize(("kind", "form"), [("v1", "uuid"), ("v1", "text"), ("v7", "text")])
def test_none_is_made_once_the_life_is_over(new: Any, kind: str, form: str) -> None:
    hand = Hand(new).block(count=1000)
    assert None not in hand.ticks(6, kind, form)
    hand.alive[0] = 0
    assert hand.one(kind, form) is None


@pytest.mark.parametrize(
    ("kind", "form", "read"),
    [
        *(("v1", form, "clock") for form in ("uuid", "text")),
        *((kind, "text", "bytes") for kind in ("v4", "v7")),
    ],
)
def test_a_life_that_ends_in_the_middle_of_a_draw_is_noticed(
    new: Any, kind: str, form: str, read: str
) -> None:
    """The last look comes after all that could fork."""

    def end(size: int = 0) -> bytes:
        hand.alive[0] = 0
        return bytes(size)

    hand = Hand(new, random=end if read == "bytes" else None).block()
    if read == "clock":
        hand.between = end
    assert hand.one(kind, form) is None


@pytest.mark.parametrize("before", range(4))
def test_a_life_that_ends_anywhere_is_noticed(before: int) -> None:
    """Of the cutter in Python, after some ids: with those that were made ahead, and without."""
    for at in itertools.count(1):
        hand = Hand(cutter.Cutter).block()
        hand.ticks(before)
        made = come_between(hand.one, at, lambda: hand.alive.__setitem__(0, 0))  # noqa: B023
        if hand.alive[0]:
            break
        assert made is None
    assert at > 2


def ahead(hand: Hand, kind: str = "v1", form: str = "text") -> None:
    """Draw until the cutter in Python has made some ahead, which are not used up."""
    for _ in range(70):
        hand.now += 1
        assert hand.one(kind, form) is not None


@pytest.mark.parametrize(
    "draw",
    [
        lambda hand: hand.tick("v1", "uuid"),
        lambda hand: hand.tick("v6", "text"),
        lambda hand: kinds.tick("v1", hand.many(1, "v1", "text")[0]),
        lambda hand: kinds.tick("v1", hand.many(1, "v1", "bytes")[0]),
        lambda hand: [hand.cutter.raise_to(START + 500), START + 499][1],
    ],
    ids=["form", "kind", "many", "packed", "raised"],
)
def test_no_id_made_ahead_comes_after_a_later_one(new: Any, draw: Callable[[Hand], int]) -> None:
    hand = Hand(new).block(count=1000)
    ahead(hand)
    later = draw(hand)
    found = hand.tick("v1", "text")
    assert found is not None
    assert found > later


def test_no_id_made_ahead_is_of_a_former_source(new: Any) -> None:
    hand = Hand(new).block(count=1000)
    ahead(hand)
    hand.block(count=1000, origin=Origin(7))
    assert UUID(hand.one("v1", "text")).node == 7


ENDS: dict[str, Callable[[Hand], object]] = {
    "horizon": lambda hand: hand.horizon.__setitem__(0, 0),
    "token": lambda hand: hand.token.__setitem__(0, 0),
    "end of its span": lambda hand: setattr(hand, "now", hand.now + 1),
    "before its span": lambda hand: setattr(hand, "now", hand.now - 71),
}


@pytest.mark.parametrize("kind", ["v1", "v4"])
@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
def test_no_id_made_ahead_outlives_its_source(
    new: Any, kind: str, end: Callable[[Hand], object]
) -> None:
    hand = Hand(new)
    hand.block(count=1000, since=hand.now, until=hand.now + 71)
    ahead(hand, kind)
    end(hand)
    assert hand.one(kind, "text") is None


@pytest.mark.parametrize("max_age", [0.1, 0.0003])
@pytest.mark.parametrize("steps", [(1, 3), (0, 100), (0, 3000), (1000, 9999)])
def test_no_id_of_a_lane_is_older_than_a_millisecond(
    new: Any, max_age: float, steps: tuple[int, int]
) -> None:
    hand, random = Hand(new, max_age).lane(), Random(1)
    for _ in range(500):
        hand.now += random.randint(*steps)
        tick = hand.tick()
        assert tick is None or 0 <= hand.now - tick < min(max_age * 1e7, MS)


def test_no_id_made_ahead_outlives_a_step_back(new: Any) -> None:
    hand = Hand(new).lane()
    ahead(hand)
    hand.now += 200
    ahead(hand)
    hand.now -= 300
    assert hand.one("v1", "text") is None


@pytest.mark.parametrize("kind", ["v1", "v4"])
def test_few_ids_are_made_ahead(new: Any, kind: str) -> None:
    """In Python only, where to make some at once costs less for each."""
    hand = Hand(new).block(count=5000)
    ahead = []
    for number in range(START + 1, START + 2001):
        assert hand.one(kind)
        ahead.append(hand.cutter.used - number)
    assert max(ahead) == (MOST_AHEAD - 1 if new is cutter.Cutter else 0)


@pytest.mark.parametrize("kind", ["v1", "v4"])
def test_without_any_age_none_is_made_ahead(new: Any, kind: str) -> None:
    hand = Hand(new, max_age=0).block(0, 1 << 60)
    for number in range(20):
        assert hand.one(kind)
        assert hand.cutter.used == number + 1


@pytest.mark.parametrize("nanoseconds", [199, 100, 99, 0, -1, -100, -101])
def test_ticks_are_rounded_down(new: Any, nanoseconds: int) -> None:
    """Before 1970, too: an id is never ahead of its clock."""
    hand = Hand(new)
    made = new(hand.alive, 0.1, lambda: nanoseconds)
    made.source = hand.lane().cutter.source
    assert kinds.tick("v1", made.one("v1", "text")) == UNIX_EPOCH + nanoseconds // 100


def test_the_error_of_a_clock_is_the_callers(new: Any) -> None:
    hand = Hand(new).block()

    def fail() -> None:
        hand.between = lambda: None
        raise KeyboardInterrupt

    for way in WAYS.values():
        hand.between = fail
        with pytest.raises(KeyboardInterrupt):
            way(hand)
    assert hand.tick() == START


def test_the_error_of_a_source_of_random_bytes_is_the_callers(new: Any) -> None:
    errors: list[BaseException] = []

    def read(size: int) -> bytes:
        if errors:
            raise errors.pop()
        return b"\1" * size

    hand = Hand(new, random=read).block()
    for draw in (
        lambda: hand.one("v7"),
        lambda: hand.many(1, "v7", "uuid"),
        lambda: hand.many(1, "v7", "bytes"),
    ):
        errors.append(KeyboardInterrupt())
        with pytest.raises(KeyboardInterrupt):
            draw()
    assert hand.one("v7", "bytes").endswith(b"\1" * 6)


def edges(kind: str) -> Iterator[int]:
    """Return places at which a field of a kind is zero, full, or carried into."""
    begin, end = range_of(kind)
    for shift in range(60):
        yield from (begin + (1 << shift) - 1, begin + (1 << shift), end - (1 << shift))
    middle = begin + (end - begin) // 3
    for unit in (4096, 10_000, 10_000_000, 1 << 32):
        at = begin + (middle - begin) // unit * unit
        yield from (at - 1, at, at + 1, at + unit // 2)


ORIGINS = {
    "zeros": Origin(0, 0, 0, EPOCH, 0),
    "ones": Origin((1 << 48) - 1, (1 << 14) - 1, 1023, EPOCH, 255),
    "mixed": Origin(0x0123_4567_89AB, 0x1234, 0x155, EPOCH, 0xA5),
    "without": Origin(0x0123_4567_89AB, 0x1234, 0x155, EPOCH, None),
}


@pytest.mark.parametrize(("kind", "form"), FORMS)
@pytest.mark.parametrize("origin", ORIGINS.values(), ids=ORIGINS)
@pytest.mark.parametrize("fill", [b"\x00", b"\xff"], ids=["low", "high"])
def test_ids_at_the_edges_of_their_fields(
    new: Any, kind: str, form: str, origin: Origin, fill: bytes
) -> None:
    """A field that runs into another shows with all its neighbours zeros, or all ones."""
    begin, end = range_of(kind)
    for place in sorted({place for place in edges(kind) if begin <= place < end}):
        places = range(place, place + 1)
        check(new, kind, form, places, origin, lambda count: fill * count, "passed", safe=True)


@pytest.mark.parametrize(("kind", "form"), FORMS)
@pytest.mark.parametrize("safe", [True, False])
@pytest.mark.parametrize("shift", [12, 32, None], ids=["run of v6", "run of v1", "second"])
def test_many_ids_over_the_end_of_a_run(
    new: Any, kind: str, form: str, safe: bool, shift: int | None
) -> None:
    """Each has random bits of its own."""
    begin, end = range_of(kind)
    unit = KINDS[kind].slots if shift is None else 1 << shift
    middle = begin + (end - begin) // 3
    first = middle - (middle - (begin if shift is None else 0)) % unit - 150
    places, read = range(first, first + 300), Random(2).randbytes
    check(new, kind, form, places, ORIGINS["without"], read, "many", safe)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", CUTTERS)
def test_thousands_of_draws(name: str, kind: str) -> None:
    check_draws(name, kind, 1, 1000)


@pytest.mark.parametrize("count", ["-5", "0"])
def test_no_draws_are_not_right(count: str) -> None:
    with pytest.raises(SystemExit, match="2"):
        draws.main(["--count", count])
