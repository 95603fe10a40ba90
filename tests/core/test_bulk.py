"""Many ids at once: bit for bit what each kind's own functions return, one at a time."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random
from typing import NamedTuple

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from uuidd.core.ids import bulk, ksuid, push_id, ulid, uuids, versions
from uuidd.core.ids.bulk import RandomBytes
from uuidd.core.ids.ticks import TICKS_PER_MS, TICKS_PER_SECOND, UNIX_EPOCH, TimeField

TICK = UNIX_EPOCH + 1_700_000_000 * TICKS_PER_SECOND
"""The first of a second, so also of a millisecond."""


class Many(NamedTuple):
    """Draws many ids, and makes one of a tick; *free* bits follow it: a lane, and random ones."""

    draw: Callable[[int, int, int | None, RandomBytes], list[int]]
    of_tick: Callable[[int, int], int]
    field: TimeField
    free: int
    run: int


def numbers(
    packed: bulk.Packed, width: int = 16
) -> Callable[[int, int, int | None, RandomBytes], list[int]]:
    """Return as ints the ids of *packed*, of *width* bytes each."""

    def draw(first: int, count: int, lane: int | None, random: RandomBytes) -> list[int]:
        raw = packed(first, count, lane, random)
        assert len(raw) == width * count
        return [int.from_bytes(raw[at : at + width], "big") for at in range(0, len(raw), width)]

    return draw


def parsed(
    texts: bulk.Ids[str], from_text: Callable[[str], int]
) -> Callable[[int, int, int | None, RandomBytes], list[int]]:
    """Return as ints the ids of *texts*."""
    return lambda first, count, lane, random: [
        from_text(text) for text in texts(first, count, lane, random)
    ]


MANY = {
    "v7": Many(numbers(bulk.v7), versions.v7_of_tick, versions.V7_TIME, 60, TICKS_PER_MS),
    "ulid": Many(numbers(bulk.ulids), ulid.of_tick, ulid.TIME, 66, TICKS_PER_MS),
    "ulid text": Many(
        parsed(bulk.ulid_texts, ulid.from_text), ulid.of_tick, ulid.TIME, 66, TICKS_PER_MS
    ),
    "ksuid": Many(numbers(bulk.ksuids, 20), ksuid.of_tick, ksuid.TIME, 104, TICKS_PER_SECOND),
    "push_id text": Many(
        parsed(bulk.push_id_texts, push_id.from_text),
        push_id.of_tick,
        push_id.TIME,
        58,
        TICKS_PER_MS,
    ),
}
EACH = pytest.mark.parametrize("many", MANY.values(), ids=MANY.keys())


LANES = st.none() | st.integers(0, 255)


def zeros(count: int) -> bytes:
    """A source of zeros."""
    return bytes(count)


def one_by_one(many: Many, first: int, found: list[int]) -> list[int]:
    """Return the ids of the ticks from *first* with the lane and random bits of those found."""
    mask = (1 << many.free) - 1
    return [many.of_tick(first + at, value & mask) for at, value in enumerate(found)]


def reached(draw: Callable[[RandomBytes], list[int]]) -> list[tuple[int, int]]:
    """Return which bit of which id each bit of the source sets, asserting that it is one or none.

    The source is called once, and each of its bits is set alone.
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
            (at, one ^ other)
            for at, (one, other) in enumerate(zip(plain, drawn, strict=True))
            if one != other
        ]
        assert len(changed) <= 1
        found += changed
    return found


# --- kinds that end in random bits


@EACH
@given(st.data())
def test_any_ticks_of_a_run_are_right(many: Many, data: st.DataObject) -> None:
    """Anywhere in the time field, and in order."""
    field = many.field
    first = data.draw(st.integers(field.epoch, field.end - 1))
    room = many.run - (first - field.epoch) % many.run
    count = data.draw(st.integers(0, min(room, 40)))
    lane = data.draw(LANES)
    found = many.draw(first, count, lane, Random(data.draw(st.integers(0, 99))).randbytes)
    assert len(found) == count
    assert found == one_by_one(many, first, found)
    assert found == sorted(set(found))


@EACH
def test_a_whole_millisecond_is_right(many: Many) -> None:
    """All 10,000 ticks, at the end of a second."""
    first = TICK + TICKS_PER_SECOND - TICKS_PER_MS
    found = many.draw(first, TICKS_PER_MS, 0xA5, Random(1).randbytes)
    assert len(found) == TICKS_PER_MS
    assert found == one_by_one(many, first, found)


@EACH
@pytest.mark.parametrize(("lane", "laned"), [(None, 0), (0, 8), (0xA5, 8)])
def test_each_random_bit_comes_from_a_bit_of_its_own(
    many: Many, lane: int | None, laned: int
) -> None:
    """No bit of the source is used twice, so that no two random bits depend on each other."""
    found = reached(lambda random: many.draw(TICK + 77, 3, lane, random))
    random_bits = many.free - laned
    assert sorted(found) == [(at, 1 << bit) for at in range(3) for bit in range(random_bits)]


@EACH
def test_the_lane_comes_right_after_the_tick(many: Many) -> None:
    """Each lane has its own 8 bits there, and 256 is none."""
    for lane in range(256):
        assert many.draw(TICK + 77, 2, lane, zeros) == [
            many.of_tick(TICK + 77 + at, lane << many.free - 8) for at in range(2)
        ]
    with pytest.raises(ValueError, match=r"^lane is 256;"):
        many.draw(TICK + 77, 2, 256, zeros)


@EACH
def test_a_tick_fits_up_to_the_ends_of_the_field(many: Many) -> None:
    """A tick before the epoch or past the end is an error that names kind and tick."""
    for tick in (many.field.epoch, many.field.end - 1):
        assert many.draw(tick, 1, 0, zeros) == [many.of_tick(tick, 0)]
    for tick in (many.field.epoch - 1, many.field.end):
        message = f"^tick is {tick}; the time of a {many.field.kind} is "
        with pytest.raises(ValueError, match=message):
            many.draw(tick, 1, 0, zeros)


@given(st.integers(0, 60), st.integers(0, 99))
def test_each_v4_has_its_random_bits_and_nothing_else(count: int, seed: int) -> None:
    """Version and variant replace bits of the source, which has 16 bytes for each v4."""
    found = numbers(bulk.v4)(0, count, 0xFF, Random(seed).randbytes)
    assert found == [versions.v4(versions.v4_bits(value)) for value in found]
    mask = versions.v4((1 << versions.V4_RANDOM_BITS) - 1) ^ versions.v4(0)
    raw = Random(seed).randbytes(16 * count)
    assert [value & mask for value in found] == [
        int.from_bytes(raw[at : at + 16], "big") & mask for at in range(0, 16 * count, 16)
    ]


@pytest.mark.parametrize("packed", [bulk.v4, bulk.v7, bulk.ulids])
def test_texts_of_uuids_are_those_of_their_ints(packed: bulk.Packed) -> None:
    """The text of each is the one that ``uuids.to_text`` returns."""
    assert list(bulk.uuid_texts(packed)(TICK, 50, 0xA5, Random(4).randbytes)) == [
        uuids.to_text(value) for value in numbers(packed)(TICK, 50, 0xA5, Random(4).randbytes)
    ]


@pytest.mark.parametrize(
    ("room", "run"),
    [(bulk.room_in_ms, TICKS_PER_MS), (bulk.room_in_second, TICKS_PER_SECOND)],
    ids=["millisecond", "second"],
)
@given(tick=st.integers(0, 2**60))
def test_room_goes_up_to_the_next_unix_unit(
    room: Callable[[int], int], run: int, tick: int
) -> None:
    """The last tick with room is in the same unit as the first, the one after it is not."""
    last = tick + room(tick) - 1
    assert (last - UNIX_EPOCH) // run == (tick - UNIX_EPOCH) // run
    assert (last + 1 - UNIX_EPOCH) % run == 0


# --- v1 and v6

GREGORIAN = {"v1": versions.v1, "v6": versions.v6}
GREGORIAN_TICKS = st.integers(0, 2**60 - 1) | st.builds(
    # Near the ends of runs.
    lambda high, back: (high << 12) - back,
    st.integers(1, 2**48 - 1),
    st.integers(1, 40),
)


def check_run(kind: str, first: int, count: int, clock_seq: int, node: int) -> None:
    """Assert that all forms of a run are those of each tick."""
    arguments = (kind, first, count, clock_seq, node)
    values = [GREGORIAN[kind](tick, clock_seq, node) for tick in range(first, first + count)]
    raw = [value.to_bytes(16, "big") for value in values]
    assert list(bulk.gregorian_ints(*arguments)) == values
    assert list(bulk.gregorian_texts(*arguments)) == [uuids.to_text(value) for value in values]
    assert list(bulk.gregorian_bytes(*arguments)) == raw
    assert bulk.gregorian_packed(*arguments) == b"".join(raw)


@given(GREGORIAN_TICKS)
def test_room_goes_up_to_where_the_low_12_bits_wrap(first: int) -> None:
    """The last tick with room is in the same run as the first, the one after it is not."""
    room = bulk.room_in_run(first)
    assert first >> 12 == first + room - 1 >> 12
    assert first >> 12 != first + room >> 12


@given(
    st.sampled_from(["v1", "v6"]),
    GREGORIAN_TICKS,
    st.integers(0, 20),
    st.integers(0, 2**14 - 1),
    st.integers(0, 2**48 - 1),
)
@example("v1", 2**32 - 5, 20, 2**14 - 1, 2**48 - 1)
@example("v6", 2**12 - 5, 20, 0, 0)
def test_any_part_of_a_run_is_right(
    kind: str, first: int, count: int, clock_seq: int, node: int
) -> None:
    """Each form is that of the v1 or v6 of each tick."""
    check_run(kind, first, min(count, bulk.room_in_run(first)), clock_seq, node)


@pytest.mark.parametrize("kind", ["v1", "v6"])
def test_whole_runs_are_right(kind: str) -> None:
    """Nothing is kept of a run of another clock sequence, node or time."""
    for high, clock_seq, node in [(1, 0, 0), (1, 1, 0), (1, 0, 1), (2, 0, 0), (1 << 47, 0, 0)]:
        check_run(kind, high << 12, 4096, clock_seq, node)


def test_a_field_that_does_not_fit_is_refused() -> None:
    """No id is made of a field that ``versions.v1`` refuses."""
    with pytest.raises(ValueError, match="clock_seq"):
        bulk.gregorian_texts("v1", 0, 1, 2**14, 0)
