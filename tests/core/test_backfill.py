from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.draws import Draws
from uuidd.core.ids import flake, ksuid, push_id, snowflake, ulid, versions
from uuidd.core.ids.at_time import AT_TIME_KINDS, field_of
from uuidd.core.ids.backfill import Backfill
from uuidd.core.ids.nodes import MULTICAST
from uuidd.core.ids.ticks import TICKS_PER_MS, milliseconds

TIME = datetime(2022, 2, 22, 19, 22, 22, 123456, tzinfo=UTC)
TICK = 138648505420000000 + 1_234_560
MS, REST = milliseconds(TICK)

REQUIRED: dict[str, dict[str, Any]] = {"snowflake": {"worker": 5}}

MICROSECONDS = st.integers(0, 4000)


def backfill(kind: str, **given: Any) -> Backfill:
    """Give a Backfill whose random bits are all zeros, so that only places tell ids apart."""
    return Backfill(kind, random=lambda bits: 0 >> bits, **REQUIRED.get(kind, {}), **given)


def tick_of(kind: str, value: int) -> int:
    """Give the tick that an id carries; a Snowflake's slot is on a tick."""
    if kind in ("v1", "v6"):
        return versions.gregorian_fields(value).tick
    if kind == "v7":
        return versions.v7_tick(value)
    if kind == "ksuid":
        found = ksuid.fields(value)
        return ksuid.TIME.tick(found.timestamp) + (found.payload >> ksuid.RANDOM_BITS)
    if kind == "snowflake":
        fields = snowflake.fields(value)
        return snowflake.tick_of_place((fields.ms << 12) + fields.sequence)
    if kind == "flake":
        return flake.TIME.tick(flake.fields(value).ms) + flake.fields(value).sequence
    if kind == "ulid":
        return ulid.TIME.tick(ulid.fields(value).ms) + (
            ulid.fields(value).random >> ulid.RANDOM_BITS
        )
    push = push_id.fields(value)
    return push_id.TIME.tick(push.ms) + (push.random >> push_id.RANDOM_BITS)


@pytest.mark.parametrize("kind", AT_TIME_KINDS)
def test_the_first_id_of_a_time_is_at_that_very_time(kind: str) -> None:
    """All its microseconds are kept; a Snowflake takes the slot that is at it."""
    tick = tick_of(kind, backfill(kind).take(TIME))
    if kind == "snowflake":
        assert snowflake.slot_at(milliseconds(tick)[1]) == snowflake.slot_at(REST)
    else:
        assert tick == TICK


@pytest.mark.parametrize("kind", AT_TIME_KINDS)
def test_a_repeat_is_on_the_next_free_place(kind: str) -> None:
    """Three in a row are on three places in a row; a Snowflake's are 3 ticks apart at most."""
    ids = backfill(kind)
    ticks = [tick_of(kind, ids.take(TIME)) for _ in range(3)]
    steps = [later - earlier for earlier, later in pairwise(ticks)]
    assert all(1 <= step <= 3 for step in steps)
    assert kind == "snowflake" or steps == [1, 1]


def test_a_time_whose_place_a_repeat_took_gets_the_next() -> None:
    """What was given out comes never again, whoever asked for it first."""
    ids = backfill("v1", unit="ms")
    ticks = [
        versions.gregorian_fields(ids.take(tick)).tick for tick in (TICK, TICK, TICK + 1, TICK + 1)
    ]
    assert ticks == [TICK, TICK + 1, TICK + 2, TICK + 3]


def test_a_repeat_goes_on_from_the_units_begin() -> None:
    """At the unit's end it does not leave the unit: it comes round, and fills it to the last."""
    ids = backfill("v6", unit="us")
    ticks = [versions.gregorian_fields(ids.take(TICK + 7)).tick - TICK for _ in range(10)]
    assert ticks == [7, 8, 9, 0, 1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize(
    ("kind", "unit", "time", "places"),
    [
        ("v1", None, TICK, 1),
        ("v1", None, TIME, 10),
        ("v6", "tick", TIME, 1),
        ("v6", "us", TICK, 10),
        ("v1", "ms", TICK, 10_000),
        ("v7", None, TIME, 10_000),
        ("v7", "ms", MS, 10_000),
        ("ulid", None, TIME, 10_000),
        ("push_id", None, MS, 10_000),
        ("flake", None, MS, 10_000),
        ("snowflake", None, TIME, 4096),
    ],
)
def test_a_unit_gives_all_its_places_and_then_an_error(
    kind: str, unit: str | None, time: Any, places: int
) -> None:
    """All are in the unit, no two alike; the error says the unit, its places and the way out."""
    ids = backfill(kind, unit=unit)
    made = {ids.take(time) for _ in range(places)}
    assert len(made) == places
    span = places if kind != "snowflake" else TICKS_PER_MS
    assert {tick_of(kind, value) // span for value in made} == {TICK // span}
    with pytest.raises(ValueError, match=rf"all {places} places of the \S+ 2022-02-22T"):
        ids.take(time)
    with pytest.raises(ValueError, match="use a coarser unit or another "):
        ids.take(time)


def test_an_error_names_what_makes_room() -> None:
    """Another field of the kind, where it has one, else a Backfill with other random bits."""
    for kind, way in (
        ("v6", "another clock_seq"),
        ("flake", "another node"),
        ("snowflake", "another worker"),
        ("v7", "another Backfill"),
    ):
        ids = backfill(kind)
        time = MS if kind != "v6" else TICK
        for _ in range({"v6": 1, "snowflake": 4096}.get(kind, 10_000)):
            ids.take(time)
        with pytest.raises(ValueError, match=way):
            ids.take(time)


def test_a_refused_call_changes_nothing() -> None:
    """After a time it cannot tell, a full unit or a failed draw, the next id is the same."""

    def failing_once(bits: int) -> int:
        if not drawn:
            drawn.append(bits)
            raise OSError(bits)
        return 0

    drawn: list[int] = []
    ids = Backfill("v7", random=Draws())
    twin = Backfill("v7", random=Draws())
    with pytest.raises(ValueError, match="the time of a v7 is"):
        ids.take(-1)
    with pytest.raises(TypeError):
        ids.take(1.5)  # type: ignore[arg-type]  # a float is what is refused
    assert ids.take(MS) == twin.take(MS)
    broken = Backfill("ulid", random=failing_once)
    with pytest.raises(OSError, match="66"):
        broken.take(TIME)
    assert tick_of("ulid", broken.take(TIME)) == TICK
    full = backfill("v1")
    first = full.take(TICK)
    for _ in range(2):
        with pytest.raises(ValueError, match="all 1 places"):
            full.take(TICK)
    assert (
        versions.gregorian_fields(first).tick,
        versions.gregorian_fields(full.take(TICK + 1)).tick,
    ) == (
        TICK,
        TICK + 1,
    )


@pytest.mark.parametrize("kind", AT_TIME_KINDS)
@given(offsets=st.lists(MICROSECONDS, max_size=60))
def test_no_id_comes_twice_and_each_keeps_its_unit(kind: str, offsets: list[int]) -> None:
    """In any order, with any repeats, for random bits that never change."""
    ids = backfill(kind, unit="s" if kind == "ksuid" else "ms")
    begin = TIME.replace(microsecond=0)
    made = [(offset, ids.take(begin + timedelta(microseconds=offset))) for offset in offsets]
    assert len({value for _, value in made}) == len(made)
    unit = field_of(kind).unit if kind == "ksuid" else TICKS_PER_MS
    first = TICK - TICK % 10_000_000
    for offset, value in made:
        assert tick_of(kind, value) // unit == (first + offset * 10) // unit


@given(
    takes=st.lists(
        st.tuples(st.integers(0, 30), st.sampled_from(["tick", "datetime"])), max_size=50
    )
)
def test_it_does_as_a_search_from_the_time_on_would(takes: list[tuple[int, str]]) -> None:
    """The pointers find the very place that trying one after the other finds."""
    ids = backfill("v1")
    taken: set[int] = set()
    for offset, what in takes:
        tick = TICK + offset if what == "tick" else TICK + offset // 10 * 10
        size = 1 if what == "tick" else 10
        time = tick if what == "tick" else TIME + timedelta(microseconds=offset // 10)
        begin = tick - tick % size
        order = [*range(tick, begin + size), *range(begin, tick)]
        free = next((place for place in order if place not in taken), None)
        if free is None:
            with pytest.raises(ValueError, match="are taken"):
                ids.take(time)
            continue
        assert versions.gregorian_fields(ids.take(time)).tick == free
        taken.add(free)


def test_many_repeats_of_one_time_follow_few_pointers() -> None:
    """The last costs what the first does: the pointers followed are turned to the end."""
    pointers = Counting(10_000)
    assert pointers.reads < 5 * 10_000


class Counting(dict[int, int]):
    """Pointers that count how often they are read, in a Backfill of so many repeats."""

    def __init__(self, repeats: int) -> None:
        super().__init__()
        self.reads = 0
        ids = backfill("v1", unit="s")
        ids._later = self
        for _ in range(repeats):
            ids.take(TIME)
        assert len(self) == repeats

    def __getitem__(self, place: int) -> int:
        self.reads += 1
        return super().__getitem__(place)


def test_a_unit_that_the_field_holds_in_part_has_as_many_places() -> None:
    """A Snowflake's first second begins at its epoch, and no id comes before that."""
    ids = Backfill("snowflake", random=Draws(), unit="s", worker=0)
    last = snowflake.TWITTER_EPOCH // 1000 * 1000 + 999
    values = [ids.take(last) for _ in range(4097)]
    assert values[4095] == (last - snowflake.TWITTER_EPOCH) << 22 | 4095
    assert values[4096] == 0


@pytest.mark.parametrize("kind", ["v1", "v6"])
def test_node_and_clock_seq_are_drawn_once(kind: str) -> None:
    """One random node, marked as such, for all ids of a Backfill, and another for the next one."""
    draws = Draws()
    ids, others = (Backfill(kind, random=draws) for _ in range(2))
    spaces = {versions.gregorian_fields(ids.take(tick))[1:] for tick in range(5)}
    assert len(spaces) == 1
    assert {versions.gregorian_fields(others.take(tick))[1:] for tick in range(5)}.isdisjoint(
        spaces
    )
    assert all(node & MULTICAST for _, node in spaces)


@pytest.mark.parametrize(
    ("kind", "unit", "message"),
    [
        ("v7", "us", "unit is 'us', which is finer than the time of a v7; it must be ms or s"),
        ("snowflake", "tick", "finer than the time of a snowflake; it must be ms or s"),
        ("ksuid", "ms", "finer than the time of a ksuid; it must be s"),
        ("v1", "day", "unit is 'day'; it must be one of tick, us, ms, s"),
    ],
)
def test_a_unit_that_does_not_serve_is_refused(kind: str, unit: str, message: str) -> None:
    """At once, and not at the first repeat."""
    with pytest.raises(ValueError, match=message):
        backfill(kind, unit=unit)


@pytest.mark.parametrize(
    ("kind", "given", "message"),
    [
        ("snowflake", {}, "worker is missing"),
        ("v7", {"node": 1}, "node is 1; a v7 has no node"),
        ("v1", {"worker": 1}, "worker is 1; a v1 has no worker, only clock_seq, node"),
        ("v4", {}, "kind is 'v4'"),
    ],
)
def test_fields_are_those_of_the_kind(kind: str, given: dict[str, Any], message: str) -> None:
    """As for one id, and at once."""
    with pytest.raises(ValueError, match=message):
        Backfill(kind, random=Draws(), **given)


def test_a_full_second_has_no_coarser_unit_to_offer() -> None:
    """The error then names the other way out alone; this second holds one millisecond."""
    ids = Backfill("snowflake", random=Draws(), unit="s", worker=0, epoch=999)
    for _ in range(4096):
        ids.take(999)
    with pytest.raises(ValueError, match=r"the s 1970-01-01T00:00:00Z are taken: use another"):
        ids.take(999)
