from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import kinds
from tests.core.draws import Draws, zeros
from uuidd.core.ids import snowflake, versions
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
    """Return a Backfill whose random bits are all zeros, so that ids differ by place only."""
    return Backfill(kind, random=zeros, **REQUIRED.get(kind, {}), **given)


@pytest.mark.parametrize("kind", AT_TIME_KINDS)
def test_the_first_id_of_a_time_is_at_exactly_that_time(kind: str) -> None:
    """All its microseconds are kept; a Snowflake takes the slot that is at it."""
    tick = kinds.tick(kind, backfill(kind).take(TIME))
    if kind == "snowflake":
        assert snowflake.slot_at(milliseconds(tick)[1]) == snowflake.slot_at(REST)
    else:
        assert tick == TICK


@pytest.mark.parametrize("kind", AT_TIME_KINDS)
def test_a_repeat_is_on_the_next_free_place(kind: str) -> None:
    """Three in a row are on three places in a row; a Snowflake's are 3 ticks apart at most."""
    ids = backfill(kind)
    ticks = [kinds.tick(kind, ids.take(TIME)) for _ in range(3)]
    steps = [later - earlier for earlier, later in pairwise(ticks)]
    assert all(1 <= step <= 3 for step in steps)
    assert kind == "snowflake" or steps == [1, 1]


def test_a_time_whose_place_a_repeat_took_gets_the_next() -> None:
    """An id is never made again, whichever time it was first made for."""
    ids = backfill("v1", unit="ms")
    ticks = [
        versions.gregorian_fields(ids.take(tick)).tick for tick in (TICK, TICK, TICK + 1, TICK + 1)
    ]
    assert ticks == [TICK, TICK + 1, TICK + 2, TICK + 3]


def test_a_repeat_continues_at_the_units_beginning() -> None:
    """At the unit's end it does not leave the unit, and fills it to the last place."""
    ids = backfill("v6", unit="us")
    ticks = [versions.gregorian_fields(ids.take(TICK + 7)).tick - TICK for _ in range(10)]
    assert ticks == [7, 8, 9, 0, 1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize(
    ("kind", "unit", "time", "places", "other"),
    [
        ("v1", None, TICK, 1, "clock_seq"),
        ("v1", None, TIME, 10, "clock_seq"),
        ("v6", "tick", TIME, 1, "clock_seq"),
        ("v6", "us", TICK, 10, "clock_seq"),
        ("v1", "ms", TICK, 10_000, "clock_seq"),
        ("v7", "ms", MS, 10_000, "Backfill"),
        ("flake", None, MS, 10_000, "node"),
        ("snowflake", None, TIME, 4096, "worker"),
    ],
)
def test_a_unit_has_all_its_places_and_then_an_error(
    kind: str, unit: str | None, time: Any, places: int, other: str
) -> None:
    """All are in the unit, no two alike; the error says the unit, its places and the way out."""
    ids = backfill(kind, unit=unit)
    made = {ids.take(time) for _ in range(places)}
    assert len(made) == places
    span = places if kind != "snowflake" else TICKS_PER_MS
    assert {kinds.tick(kind, value) // span for value in made} == {TICK // span}
    message = rf"all {places} places of the \S+ 2022-02-22T.* use a coarser unit or another {other}"
    with pytest.raises(ValueError, match=message):
        ids.take(time)


def test_a_refused_call_changes_nothing() -> None:
    """After a time out of range, a full unit or a failed draw, the next id is the same."""

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
    assert kinds.tick("ulid", broken.take(TIME)) == TICK
    full = backfill("v1")
    first = full.take(TICK)
    for _ in range(2):
        with pytest.raises(ValueError, match="all 1 places"):
            full.take(TICK)
    assert [kinds.tick("v1", id) for id in (first, full.take(TICK + 1))] == [TICK, TICK + 1]


@pytest.mark.parametrize("kind", AT_TIME_KINDS)
@given(offsets=st.lists(MICROSECONDS, max_size=60))
def test_no_id_comes_twice_and_each_keeps_its_unit(kind: str, offsets: list[int]) -> None:
    """In any order, with any repeats, for random bits that never change."""
    ids = backfill(kind, unit="s" if field_of(kind).unit > TICKS_PER_MS else "ms")
    begin = TIME.replace(microsecond=0)
    made = [(offset, ids.take(begin + timedelta(microseconds=offset))) for offset in offsets]
    assert len({value for _, value in made}) == len(made)
    unit = max(field_of(kind).unit, TICKS_PER_MS)
    first = TICK - TICK % 10_000_000
    for offset, value in made:
        assert kinds.tick(kind, value) // unit == (first + offset * 10) // unit


@given(
    takes=st.lists(
        st.tuples(st.integers(0, 30), st.sampled_from(["tick", "datetime"])), max_size=50
    )
)
def test_it_finds_what_a_search_from_the_time_finds(takes: list[tuple[int, str]]) -> None:
    """The pointers lead to the same place as trying one after the other."""
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
    """The last costs about as much as the first, because pointers are set to the end."""
    pointers = Counting(10_000)
    assert pointers.reads < 5 * 10_000


class Counting(dict[int, int]):
    """Pointers that count how often they are read, in a Backfill of *repeats* ids."""

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


def test_a_unit_that_the_field_cuts_has_fewer_places() -> None:
    """A Snowflake's first second begins at its epoch, and no id comes before that."""
    ids = Backfill("snowflake", random=Draws(), unit="s", worker=0)
    last = snowflake.TWITTER_EPOCH // 1000 * 1000 + 999
    values = [ids.take(last) for _ in range(4097)]
    assert values[4095] == (last - snowflake.TWITTER_EPOCH) << 22 | 4095
    assert values[4096] == 0


@pytest.mark.parametrize("kind", ["v1", "v6"])
def test_node_and_clock_seq_are_drawn_once(kind: str) -> None:
    """Each Backfill has one random node, with the multicast bit, for all its ids."""
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
def test_a_unit_that_is_unknown_or_too_fine_is_refused(kind: str, unit: str, message: str) -> None:
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


def test_an_error_of_a_full_second_names_no_coarser_unit() -> None:
    """There is none. This second holds one millisecond."""
    ids = Backfill("snowflake", random=Draws(), unit="s", worker=0, epoch=999)
    for _ in range(4096):
        ids.take(999)
    with pytest.raises(ValueError, match=r"the s 1970-01-01T00:00:00Z are taken: use another"):
        ids.take(999)
