"""Ids made by columns: bit for bit what each kind's own functions give, one at a time."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uuidd.core.ids import bulk, ksuid, push_id, ulid, uuids, versions
from uuidd.core.ids.bulk import RandomBytes
from uuidd.core.ids.ticks import TICKS_PER_MS, TICKS_PER_SECOND, UNIX_EPOCH, TimeField

TICK = UNIX_EPOCH + 1_700_000_000 * TICKS_PER_SECOND
"""The first of a second, so also of a millisecond."""


class Column(NamedTuple):
    """What draws many ids, and of one its function; *free* random bits are the lowest."""

    draw: Callable[[int, int, RandomBytes], list[int]]
    of_tick: Callable[[int, int], int]
    field: TimeField
    free: int
    run: int


def numbers(packed: bulk.Packed, width: int = 16) -> Callable[[int, int, RandomBytes], list[int]]:
    """Give as ints what *packed* gives as *width* bytes each."""

    def draw(first: int, count: int, random: RandomBytes) -> list[int]:
        raw = packed(first, count, random)
        assert len(raw) == width * count
        return [int.from_bytes(raw[at : at + width], "big") for at in range(0, len(raw), width)]

    return draw


def parsed(
    texts: Callable[[int, int, RandomBytes], list[str]], from_text: Callable[[str], int]
) -> Callable[[int, int, RandomBytes], list[int]]:
    """Give as ints what *texts* writes."""
    return lambda first, count, random: [from_text(text) for text in texts(first, count, random)]


COLUMNS = {
    "v7": Column(numbers(bulk.v7), versions.v7_of_tick, versions.V7_TIME, 60, TICKS_PER_MS),
    "ulid": Column(numbers(bulk.ulids), ulid.of_tick, ulid.TIME, 66, TICKS_PER_MS),
    "ulid text": Column(
        parsed(bulk.ulid_texts, ulid.from_text), ulid.of_tick, ulid.TIME, 66, TICKS_PER_MS
    ),
    "ksuid": Column(numbers(bulk.ksuids, 20), ksuid.of_tick, ksuid.TIME, 104, TICKS_PER_SECOND),
    "push_id text": Column(
        parsed(bulk.push_id_texts, push_id.from_text),
        push_id.of_tick,
        push_id.TIME,
        58,
        TICKS_PER_MS,
    ),
}
EACH = pytest.mark.parametrize("column", COLUMNS.values(), ids=COLUMNS.keys())


def zeros(count: int) -> bytes:
    """A source of zeros."""
    return bytes(count)


def ones(count: int) -> bytes:
    """A source of ones."""
    return b"\xff" * count


def seeded(seed: int) -> RandomBytes:
    """Give a source that repeats."""
    return Random(seed).randbytes


def one_by_one(column: Column, first: int, found: list[int]) -> list[int]:
    """Give the ids of the ticks from *first* on with the random bits of those found."""
    mask = (1 << column.free) - 1
    return [column.of_tick(first + at, value & mask) for at, value in enumerate(found)]


def reached(draw: Callable[[RandomBytes], list[int]]) -> list[tuple[int, int]]:
    """Give which bit of which id each bit of the source reaches, asserting that it is one or none.

    The source is asked once, and each of its bits is set by itself.
    """
    asked: list[int] = []

    def note(count: int) -> bytes:
        asked.append(count)
        return bytes(count)

    plain = draw(note)
    (length,) = asked
    found = []
    for bit in range(8 * length):
        drawn = draw(partial((1 << bit).to_bytes, byteorder="little"))
        changed = [
            (at, one ^ other) for at, (one, other) in enumerate(zip(plain, drawn, strict=True))
        ]
        changed = [(at, change) for at, change in changed if change]
        assert len(changed) <= 1
        found += changed
    return found


# --- kinds with a time


@EACH
@pytest.mark.parametrize(
    ("skip", "count"),
    [(0, 1), (0, 10_000), (1, 9_999), (4_095, 2), (5_000, 300), (9_000, 1_000), (9_999, 1)],
)
def test_many_are_the_ids_of_each_tick(column: Column, skip: int, count: int) -> None:
    """At the begin, in the middle and at the end of a run, from one id to ten thousand."""
    found = column.draw(TICK + skip, count, seeded(count))
    assert len(found) == count
    assert found == one_by_one(column, TICK + skip, found)


@EACH
@given(st.data())
def test_any_ticks_of_a_run_are_right(column: Column, data: st.DataObject) -> None:
    """Anywhere in the time that the kind can tell, and in order."""
    field = column.field
    first = data.draw(st.integers(field.epoch, field.end - 1))
    room = column.run - (first - field.epoch) % column.run
    count = data.draw(st.integers(0, min(room, 40)))
    found = column.draw(first, count, seeded(data.draw(st.integers(0, 99))))
    assert found == one_by_one(column, first, found)
    assert found == sorted(set(found))


@EACH
def test_the_end_of_a_second_is_right(column: Column) -> None:
    """The last ticks of a second have the highest counts of ticks."""
    first = TICK + TICKS_PER_SECOND - 100
    found = column.draw(first, 100, seeded(1))
    assert found == one_by_one(column, first, found)


@EACH
@pytest.mark.parametrize("skip", [0, 1, 5_000, 9_990])
def test_no_random_bit_is_fixed_and_none_touches_the_time(column: Column, skip: int) -> None:
    """A source of zeros gives zeros in all of them, one of ones gives ones, and nothing else."""
    ticks = range(TICK + skip, TICK + skip + 10)
    assert column.draw(ticks[0], 10, zeros) == [column.of_tick(tick, 0) for tick in ticks]
    highest = (1 << column.free) - 1
    assert column.draw(ticks[0], 10, ones) == [column.of_tick(tick, highest) for tick in ticks]


@EACH
def test_each_random_bit_comes_from_a_bit_of_its_own(column: Column) -> None:
    """No bit of the source is used twice, so that no two random bits go together."""
    found = reached(lambda random: column.draw(TICK + 77, 3, random))
    assert sorted(found) == [(at, 1 << bit) for at in range(3) for bit in range(column.free)]


@EACH
def test_the_first_and_the_last_tick_of_the_field_fit(column: Column) -> None:
    """The time field is all zeros, and all ones."""
    for tick in (column.field.epoch, column.field.end - 1):
        assert column.draw(tick, 1, zeros) == [column.of_tick(tick, 0)]


@EACH
def test_a_tick_outside_the_field_is_refused(column: Column) -> None:
    """A time before the epoch or past the end is an error that names kind, tick and range."""
    for tick in (column.field.epoch - 1, column.field.end):
        with pytest.raises(
            ValueError, match=f"^tick is {tick}; the time of a {column.field.kind} is "
        ):
            column.draw(tick, 1, zeros)


@EACH
def test_none_is_none(column: Column) -> None:
    """No ids are asked for, and none are given."""
    assert column.draw(TICK, 0, ones) == []


# --- v4


@given(st.integers(0, 60), st.integers(0, 99))
def test_each_v4_has_its_random_bits_and_nothing_else(count: int, seed: int) -> None:
    """Version and variant are put over the source's bytes, 16 for each."""
    found = numbers(bulk.v4)(0, count, seeded(seed))
    assert found == [versions.v4(versions.v4_bits(value)) for value in found]
    mask = versions.v4((1 << versions.V4_RANDOM_BITS) - 1) ^ versions.v4(0)
    raw = seeded(seed)(16 * count)
    assert [value & mask for value in found] == [
        int.from_bytes(raw[at : at + 16], "big") & mask for at in range(0, 16 * count, 16)
    ]


def test_each_random_bit_of_a_v4_comes_from_a_bit_of_its_own() -> None:
    """All 122, and the other six stay as they are."""
    found = reached(lambda random: numbers(bulk.v4)(0, 2, random))
    mask = versions.v4((1 << versions.V4_RANDOM_BITS) - 1) ^ versions.v4(0)
    free = [1 << bit for bit in range(128) if mask >> bit & 1]
    assert sorted(found) == [(at, bit) for at in range(2) for bit in free]


# --- the forms of packed ids, and runs


def test_ints_and_bytes_are_what_was_packed() -> None:
    """For either width each id is one by itself, the first byte highest."""
    packed = bulk.ksuids(TICK, 5, seeded(3))
    cut = [bytes(packed[at : at + 20]) for at in range(0, 100, 20)]
    assert list(bulk.each(bulk.ksuids, 20)(TICK, 5, seeded(3))) == cut
    assert list(bulk.ints(bulk.ksuids, 20)(TICK, 5, seeded(3))) == [
        int.from_bytes(raw, "big") for raw in cut
    ]


@pytest.mark.parametrize("packed", [bulk.v4, bulk.v7, bulk.ulids])
def test_texts_of_uuids_are_what_was_packed(packed: bulk.Packed) -> None:
    """The text of each is the one that uuids gives of its int."""
    assert list(bulk.uuid_texts(packed)(TICK, 50, seeded(4))) == [
        uuids.to_text(value) for value in numbers(packed)(TICK, 50, seeded(4))
    ]


def test_texts_are_those_of_the_kind() -> None:
    """They are in upper case and of full length, as the kind's own functions write them."""
    for text in bulk.ulid_texts(TICK, 100, seeded(5)):
        assert text == ulid.to_text(ulid.from_text(text))
    for text in bulk.push_id_texts(TICK, 100, seeded(5)):
        assert text == push_id.to_text(push_id.from_text(text))


ROOMS = pytest.mark.parametrize(
    ("room", "run"),
    [(bulk.room_in_ms, TICKS_PER_MS), (bulk.room_in_second, TICKS_PER_SECOND)],
    ids=["millisecond", "second"],
)


@ROOMS
def test_room_is_up_to_the_next_run(room: Callable[[int], int], run: int) -> None:
    """The first tick of a run has room for all of it, the last for itself."""
    assert [room(TICK + skip) for skip in (0, 1, run - 1, run)] == [run, run - 1, 1, run]


@ROOMS
@given(tick=st.integers(0, 2**60))
def test_all_ticks_with_room_are_in_one_run(
    room: Callable[[int], int], run: int, tick: int
) -> None:
    """The last tick with room is in the same Unix unit as the first, the one after it is not."""
    last = tick + room(tick) - 1
    assert (last - UNIX_EPOCH) // run == (tick - UNIX_EPOCH) // run
    assert (last + 1 - UNIX_EPOCH) % run == 0
