"""Many ids at once: bit for bit what ``tests/kinds.py`` says of each."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random
from typing import NamedTuple

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests import kinds
from tests.kinds import FORMS, GREGORIAN, LANED, MS, SECOND, UNIX
from uuidd.core.ids import bulk, places
from uuidd.core.ids.bulk import RandomBytes
from uuidd.core.ids.layouts import LAYOUTS
from uuidd.core.ids.places import Origin

TICK = UNIX + 1_700_000_000 * SECOND
"""The first of a second, so also of a millisecond."""


class Many(NamedTuple):
    """The ids of a *kind* that ends in random bits, drawn in a *form*."""

    kind: str
    form: str

    def draw(self, first: int, count: int, lane: int | None, random: RandomBytes) -> list[int]:
        """Return the ids of ticks as ints."""
        drawn = LAYOUTS[self.kind].forms[self.form](first, count, Origin(1, lane=lane), random)
        return [kinds.number(self.kind, id) for id in drawn]


EACH = pytest.mark.parametrize(
    "many", [Many(*each) for each in FORMS if each[0] in LANED], ids=" ".join
)


LANES = st.none() | st.integers(0, 255)


def zeros(count: int) -> bytes:
    """A source of zeros."""
    return bytes(count)


def one_by_one(many: Many, first: int, lane: int | None, found: list[int]) -> list[int]:
    """Return the ids of the ticks from *first* that have the random bits of those found."""
    origin = Origin(1, lane=lane)
    return [kinds.made(many.kind, first + at, origin, id) for at, id in enumerate(found)]


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
    begin, end = kinds.places(many.kind)
    first = data.draw(st.integers(begin, end - 1))
    unit = kinds.KINDS[many.kind].unit
    room = unit - (first - begin) % unit
    count = data.draw(st.integers(0, min(room, 40)))
    lane = data.draw(LANES)
    found = many.draw(first, count, lane, Random(data.draw(st.integers(0, 99))).randbytes)
    assert len(found) == count
    assert found == one_by_one(many, first, lane, found)
    assert found == sorted(set(found))


@EACH
def test_a_whole_millisecond_is_right(many: Many) -> None:
    """All 10,000 ticks, at the end of a second."""
    first = TICK + SECOND - MS
    found = many.draw(first, MS, 0xA5, Random(1).randbytes)
    assert len(found) == MS
    assert found == one_by_one(many, first, 0xA5, found)


@EACH
@pytest.mark.parametrize("lane", [None, 0, 0xA5])
def test_each_random_bit_comes_from_a_bit_of_its_own(many: Many, lane: int | None) -> None:
    """No bit of the source is used twice, so that no two random bits depend on each other."""
    found = reached(lambda random: many.draw(TICK + 77, 3, lane, random))
    random_bits = kinds.tail(many.kind, lane)
    assert sorted(found) == [(at, 1 << bit) for at in range(3) for bit in range(random_bits)]


@EACH
def test_the_lane_comes_right_after_the_tick(many: Many) -> None:
    """Each lane has its own 8 bits there, and 256 is none."""
    for lane in range(256):
        assert many.draw(TICK + 77, 2, lane, zeros) == [
            kinds.made(many.kind, TICK + 77 + at, Origin(1, lane=lane)) for at in range(2)
        ]
    with pytest.raises(ValueError, match=r"^lane is 256;"):
        many.draw(TICK + 77, 2, 256, zeros)


@EACH
def test_a_tick_fits_up_to_the_ends_of_the_field(many: Many) -> None:
    """A tick before the epoch or past the end is an error that names kind and tick."""
    begin, end = kinds.places(many.kind)
    for tick in (begin, end - 1):
        assert many.draw(tick, 1, 0, zeros) == [kinds.made(many.kind, tick, Origin(1))]
    for tick in (begin - 1, end):
        message = f"^tick is {tick}; the time of a {many.kind} is "
        with pytest.raises(ValueError, match=message):
            many.draw(tick, 1, 0, zeros)


@given(st.integers(0, 60), st.integers(0, 99))
def test_each_v4_has_its_random_bits_and_nothing_else(count: int, seed: int) -> None:
    """Version and variant replace bits of the source, which has 16 bytes for each v4."""
    drawn = bulk.v4(0, count, 0xFF, Random(seed).randbytes)
    raw = Random(seed).randbytes(16 * count)
    assert drawn == b"".join(
        kinds.octets("v4", kinds.made("v4", 0, Origin(1), int.from_bytes(raw[at : at + 16], "big")))
        for at in range(0, 16 * count, 16)
    )


@pytest.mark.parametrize(
    ("room", "run"),
    [(places.room_in_ms, MS), (places.room_in_second, SECOND)],
    ids=["millisecond", "second"],
)
@given(tick=st.integers(0, 2**60))
def test_room_goes_up_to_the_next_unix_unit(
    room: Callable[[int], int], run: int, tick: int
) -> None:
    """The last tick with room is in the same unit as the first, the one after it is not."""
    last = tick + room(tick) - 1
    assert (last - UNIX) // run == (tick - UNIX) // run
    assert (last + 1 - UNIX) % run == 0


# --- v1 and v6

GREGORIAN_TICKS = st.integers(0, 2**60 - 1) | st.builds(
    # Near the ends of runs.
    lambda high, back: (high << 12) - back,
    st.integers(1, 2**48 - 1),
    st.integers(1, 40),
)


def check_run(kind: str, first: int, count: int, clock_seq: int, node: int) -> None:
    """Assert that all forms of a run are those of each tick."""
    arguments = (kind, first, count, clock_seq, node)
    origin = Origin(node, clock_seq)
    values = [kinds.made(kind, tick, origin) for tick in range(first, first + count)]
    raw = [kinds.octets(kind, value) for value in values]
    assert list(bulk.gregorian_ints(*arguments)) == values
    assert list(bulk.gregorian_texts(*arguments)) == [kinds.text(kind, value) for value in values]
    assert list(bulk.gregorian_bytes(*arguments)) == raw
    assert bulk.gregorian_packed(*arguments) == b"".join(raw)


@given(GREGORIAN_TICKS)
def test_room_goes_up_to_where_the_low_12_bits_wrap(first: int) -> None:
    """The last tick with room is in the same run as the first, the one after it is not."""
    room = places.room_in_run(first)
    assert first >> 12 == first + room - 1 >> 12
    assert first >> 12 != first + room >> 12


@given(
    st.sampled_from(GREGORIAN),
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
    check_run(kind, first, min(count, places.room_in_run(first)), clock_seq, node)


@pytest.mark.parametrize("kind", GREGORIAN)
def test_whole_runs_are_right(kind: str) -> None:
    """Nothing is kept of a run of another clock sequence, node or time."""
    for high, clock_seq, node in [(1, 0, 0), (1, 1, 0), (1, 0, 1), (2, 0, 0), (1 << 47, 0, 0)]:
        check_run(kind, high << 12, 4096, clock_seq, node)


def test_a_field_that_does_not_fit_is_refused() -> None:
    """No id is made of a field that ``versions.v1`` refuses."""
    with pytest.raises(ValueError, match="clock_seq"):
        bulk.gregorian_texts("v1", 0, 1, 2**14, 0)
