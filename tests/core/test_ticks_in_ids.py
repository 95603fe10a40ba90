"""Times of ids: the tick that ours carry, and what each kind's time field can tell."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uuidd.core.ids import flake, ksuid, push_id, snowflake, ulid, uuids, versions
from uuidd.core.ids.inspect import foreign
from uuidd.core.ids.ticks import (
    GREGORIAN,
    TICKS_PER_MS,
    TICKS_PER_SECOND,
    UNIX_EPOCH,
    TimeField,
    milliseconds,
    unix_field,
)
from uuidd.core.ids.times import text, tick_of


class Ticked(NamedTuple):
    """A kind whose ids carry a tick and *free* random bits, or a node; *read* gives both back."""

    of_tick: Callable[[int, int], int]
    read: Callable[[int], tuple[int, int]]
    field: TimeField
    free: int
    name: str = "random"


def of_v7(value: int) -> tuple[int, int]:
    """Give the tick and the random bits of a v7 of ours."""
    return versions.v7_tick(value), value & (1 << versions.V7_RANDOM_BITS) - 1


def of_ulid(value: int) -> tuple[int, int]:
    """Give the tick and the random bits of a ULID of ours."""
    found = ulid.fields(value)
    rest, random = divmod(found.random, 1 << ulid.RANDOM_BITS)
    return ulid.TIME.tick(found.ms) + rest, random


def of_push_id(value: int) -> tuple[int, int]:
    """Give the tick and the random bits of a Push ID of ours."""
    found = push_id.fields(value)
    rest, random = divmod(found.random, 1 << push_id.RANDOM_BITS)
    return push_id.TIME.tick(found.ms) + rest, random


def of_ksuid(value: int) -> tuple[int, int]:
    """Give the tick and the random bits of a KSUID of ours."""
    found = ksuid.fields(value)
    rest, random = divmod(found.payload, 1 << ksuid.RANDOM_BITS)
    return ksuid.TIME.tick(found.timestamp) + rest, random


def of_flake(value: int) -> tuple[int, int]:
    """Give the tick and the node of a Flake of ours."""
    found = flake.fields(value)
    return flake.TIME.tick(found.ms) + found.sequence, found.node


TICKED = {
    "v7": Ticked(versions.v7_of_tick, of_v7, versions.V7_TIME, 60),
    "ulid": Ticked(ulid.of_tick, of_ulid, ulid.TIME, 66),
    "push_id": Ticked(push_id.of_tick, of_push_id, push_id.TIME, 58),
    "ksuid": Ticked(ksuid.of_tick, of_ksuid, ksuid.TIME, 104),
    "flake": Ticked(flake.of_tick, of_flake, flake.TIME, 48, "node"),
}
EACH = pytest.mark.parametrize("kind", TICKED.values(), ids=TICKED.keys())


def ticks(field: TimeField) -> st.SearchStrategy[int]:
    """Any tick that a field can tell."""
    return st.integers(field.epoch, field.end - 1)


# --- ids of a tick


@EACH
@given(data=st.data())
def test_a_tick_comes_back(kind: Ticked, data: st.DataObject) -> None:
    """The tick and the bits beside it go into an id, and come out of it."""
    parts = data.draw(ticks(kind.field)), data.draw(st.integers(0, (1 << kind.free) - 1))
    assert kind.read(kind.of_tick(*parts)) == parts


@EACH
@given(data=st.data())
def test_a_later_tick_gives_a_higher_id(kind: Ticked, data: st.DataObject) -> None:
    """One tick is enough, whatever the random bits are; a Flake's node comes before its tick."""
    free = st.integers(0, (1 << kind.free) - 1)
    if kind.name == "node":
        free = st.just(data.draw(free))
    tick = data.draw(st.integers(kind.field.epoch, kind.field.end - 2))
    later = data.draw(st.integers(tick + 1, kind.field.end - 1) | st.just(tick + 1))
    assert kind.of_tick(tick, data.draw(free)) < kind.of_tick(later, data.draw(free))


@EACH
def test_the_first_and_the_last_tick_fit(kind: Ticked) -> None:
    """A kind tells all of its time field, with all free bits clear and set."""
    for tick in (kind.field.epoch, kind.field.end - 1):
        for free in (0, (1 << kind.free) - 1):
            assert kind.read(kind.of_tick(tick, free)) == (tick, free)


@EACH
def test_a_tick_outside_the_field_is_refused(kind: Ticked) -> None:
    """One before the epoch and one past the last are none; the error names the kind's range."""
    first, last = kind.field.epoch, kind.field.end - 1
    for tick in (first - 1, last + 1):
        message = f"^tick is {tick}; the time of a .* is from tick {first} to {last}$"
        with pytest.raises(ValueError, match=message):
            kind.of_tick(tick, 0)


@EACH
@pytest.mark.parametrize("tick", [True, float(UNIX_EPOCH * 2), None])
def test_a_tick_that_is_no_int_is_refused(kind: Ticked, tick: object) -> None:
    """A float is not exact, and a bool is no number."""
    with pytest.raises(TypeError, match=r"^tick is .*; it must be an int$"):
        kind.of_tick(tick, 0)  # type: ignore[arg-type]  # that is what is tested


@EACH
def test_free_bits_that_do_not_fit_are_refused(kind: Ticked) -> None:
    """They never run over into the tick; the error names the field, the value and the range."""
    for free in (-1, 1 << kind.free):
        message = f"^{kind.name} is {free}; it must be 0 to {(1 << kind.free) - 1} "
        with pytest.raises(ValueError, match=message):
            kind.of_tick(kind.field.epoch, free)


def test_a_v7_that_carries_no_tick_is_refused() -> None:
    """14 bits above 9999 are no tick of a millisecond; the error names the UUID and the bits."""
    assert versions.v7_tick(versions.v7(0, 9999 >> 2, (9999 & 3) << 60)) == UNIX_EPOCH + 9999
    value = versions.v7(0, 10_000 >> 2, (10_000 & 3) << 60)
    with pytest.raises(ValueError, match=f"^{uuids.to_text(value)} carries no tick: 10000 is not"):
        versions.v7_tick(value)


# --- time fields

FIELDS = GREGORIAN | {
    "v2": versions.V2_TIME,
    "v7": versions.V7_TIME,
    "ncs": foreign.NCS_TIME,
    "apollo": foreign.APOLLO_TIME,
    "flake": flake.TIME,
    "ulid": ulid.TIME,
    "push_id": push_id.TIME,
    "ksuid": ksuid.TIME,
    "snowflake": snowflake.time_field(),
    "sonyflake": foreign.sonyflake_time(),
    "uidgenerator": foreign.uidgenerator_time(),
}
EACH_FIELD = pytest.mark.parametrize("field", FIELDS.values(), ids=FIELDS.keys())

SPANS = {
    "v1": ("1582-10-15T00:00:00Z", "5236-03-31T21:21:00Z"),
    "v6": ("1582-10-15T00:00:00Z", "5236-03-31T21:21:00Z"),
    "v2": ("1582-10-15T00:00:00Z", "5236-03-31T21:13:51Z"),
    "v7": ("1970-01-01T00:00:00Z", "+10889-08-02T05:31:50Z"),
    "ncs": ("1980-01-01T00:00:00Z", "2015-09-05T05:58:26Z"),
    "apollo": ("1980-01-01T00:00:00Z", "2015-09-05T05:58:26Z"),
    "ulid": ("1970-01-01T00:00:00Z", "+10889-08-02T05:31:50Z"),
    "push_id": ("1970-01-01T00:00:00Z", "+10889-08-02T05:31:50Z"),
    "ksuid": ("2014-05-13T16:53:20Z", "2150-06-19T23:21:35Z"),
    "snowflake": ("2010-11-04T01:42:54Z", "2080-07-10T17:30:30Z"),
    "sonyflake": ("2014-09-01T00:00:00Z", "2188-11-16T03:28:58Z"),
    "uidgenerator": ("2016-05-19T16:00:00Z", "2024-11-20T13:24:15Z"),
}


@pytest.mark.parametrize("name", SPANS)
def test_the_years_of_a_kind(name: str) -> None:
    """The seconds in which a kind's time begins, and in which its last unit does."""
    field = FIELDS[name]
    first, last = (text(tick, TICKS_PER_SECOND) for tick in (field.epoch, field.end - field.unit))
    assert (first, last) == SPANS[name]


@EACH_FIELD
@given(data=st.data())
def test_a_field_tells_the_unit_of_a_tick(field: TimeField, data: st.DataObject) -> None:
    """Its value is that of the unit in which the tick is, and fits into its bits."""
    tick = data.draw(ticks(field))
    raw = field.raw(tick)
    assert raw < 1 << field.bits
    assert field.tick(raw) <= tick < field.tick(raw) + field.unit
    assert field.raw(field.tick(raw)) == raw


@EACH_FIELD
def test_a_field_tells_nothing_outside(field: TimeField) -> None:
    """Neither the tick before its first nor the one after its last, nor a value of more bits."""
    assert field.raw(field.epoch) == 0
    assert field.raw(field.end - 1) == (1 << field.bits) - 1
    for tick in (field.epoch - 1, field.end):
        with pytest.raises(ValueError, match=f"^tick is {tick}; the time of a {field.kind} is "):
            field.raw(tick)
    for raw in (-1, 1 << field.bits):
        with pytest.raises(ValueError, match=f"^timestamp is {raw}; it must be 0 to "):
            field.tick(raw)


@EACH_FIELD
def test_a_time_outside_the_field_is_refused(field: TimeField) -> None:
    """The error names the time as it was given, and the kind's first and last time."""
    if field.unit == 1:
        first, last = field.epoch, field.end - 1
    else:
        first = -((UNIX_EPOCH - field.epoch) // field.unit)
        last = (field.end - 1 - UNIX_EPOCH) // field.unit
    for time in (first - 1, last + 1):
        message = f"^time is {time}; .*{text(field.epoch, field.unit)[:19]}"
        with pytest.raises(ValueError, match=message.replace("+", r"\+")):
            tick_of(time, field)
    assert field.epoch <= tick_of(last, field) < field.end


@EACH_FIELD
def test_an_int_and_a_datetime_give_the_same_tick(field: TimeField) -> None:
    """An int is in the kind's unit; a time that the kind cannot tell is refused."""
    at = datetime(2015, 9, 1, tzinfo=UTC)
    tick = UNIX_EPOCH + int(at.timestamp()) * TICKS_PER_SECOND
    if not field.epoch <= tick < field.end:
        with pytest.raises(ValueError, match=r"^time is 2015-09-01T00:00:00.000000Z; "):
            tick_of(at, field)
        return
    assert tick_of(at, field) == tick
    since = tick if field.unit == 1 else tick - UNIX_EPOCH
    if since % field.unit == 0:
        assert tick_of(since // field.unit, field) == tick


@EACH_FIELD
@pytest.mark.parametrize("time", [1.0, True, "2015-09-01", None])
def test_a_time_that_is_none_is_refused(field: TimeField, time: object) -> None:
    """Not a float, not a bool, not text."""
    with pytest.raises(TypeError, match=r"^time is "):
        tick_of(time, field)  # type: ignore[arg-type]  # that is what is tested


def test_an_epoch_that_is_no_int_is_refused() -> None:
    """A float epoch would make every id inexact."""
    for epoch in (1.0, True):
        with pytest.raises(TypeError, match=f"^epoch is {epoch}; it must be an int$"):
            unix_field("snowflake", TICKS_PER_MS, 41, epoch_ms=epoch)  # type: ignore[arg-type]  # likewise


@given(st.integers(0, (1 << 60) - 1))
def test_milliseconds_and_their_tick_make_up_the_tick(tick: int) -> None:
    """Before 1970 too, where the milliseconds are below zero and the tick within is not."""
    ms, rest = milliseconds(tick)
    assert 0 <= rest < TICKS_PER_MS
    assert UNIX_EPOCH + ms * TICKS_PER_MS + rest == tick
