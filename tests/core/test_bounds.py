from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import kinds
from tests.kinds import KINDS
from uuidd.core.ids import snowflake, versions
from uuidd.core.ids.bounds import (
    BOUNDED_KINDS,
    UNITS,
    bounded_field_of,
    bounds,
    own_unit,
    sort_key,
    span,
    whole,
)
from uuidd.core.ids.ticks import TICKS_PER_MS, UNIX_EPOCH

TIME = datetime(2022, 2, 22, 19, 22, 22, 123456, tzinfo=UTC)
SECOND = 138648505420000000
TICK = SECOND + 1_234_560
MS = 1_645_557_742_123

# A KSUID begins in 2014 and a Snowflake's second is cut by its epoch, so a time that all can tell.
TICKS = st.integers(138_000_000_000_000_000, 145_000_000_000_000_000)


def extremes(kind: str, tick: int) -> list[int]:
    """Return the ids of *kind* in the unit of a tick whose every other bit is zero, and one."""
    if kind == "cassandra":
        return [
            versions.v1(tick, 0x0080, 0x808080808080),
            versions.v1(tick, 0x3F7F, 0x7F7F7F7F7F7F),
        ]
    return [*kinds.bounds(kind, tick)]


@pytest.mark.parametrize("kind", [kind for kind in BOUNDED_KINDS if kind in KINDS])
def test_a_bound_is_all_zeros_or_all_ones_after_the_time(kind: str) -> None:
    """In each bit that is free."""
    assert bounds(kind, TIME) == kinds.bounds(kind, TICK)


@pytest.mark.parametrize("kind", BOUNDED_KINDS)
@given(tick=TICKS, unit=st.sampled_from([None, *UNITS]))
def test_only_the_ids_of_a_unit_are_within_its_bounds(
    kind: str, tick: int, unit: str | None
) -> None:
    """The lowest and highest id of its first and last tick are within, those beside it are not."""
    field = bounded_field_of(kind)
    ticks = field.unit if unit is None else UNITS[unit]
    if ticks < field.unit:
        return
    time = datetime_or_int(kind, tick)
    low, high = (sort_key(kind, value) for value in bounds(kind, time, unit=unit))
    first = tick - tick % ticks if ticks > 1 else tick
    within = extremes(kind, first) + extremes(kind, first + ticks - 1)
    assert all(low <= sort_key(kind, value) <= high for value in within)
    assert all(sort_key(kind, value) < low for value in extremes(kind, first - 1))
    assert all(sort_key(kind, value) > high for value in extremes(kind, first + ticks))


def datetime_or_int(kind: str, tick: int) -> int:
    """Return the int for a tick in the unit of a kind."""
    field = bounded_field_of(kind)
    return tick if field.unit == 1 else (tick - UNIX_EPOCH) // field.unit


@pytest.mark.parametrize("kind", BOUNDED_KINDS)
def test_until_includes_both_units(kind: str) -> None:
    """They are the low of the first unit and the high of the last."""
    later = TIME.replace(minute=30)
    low, _ = bounds(kind, TIME, unit="s")
    _, high = bounds(kind, later, unit="s")
    assert bounds(kind, TIME, later, unit="s") == (low, high)
    assert bounds(kind, TIME, TIME) == bounds(kind, TIME)


@pytest.mark.parametrize("kind", BOUNDED_KINDS)
def test_an_until_before_the_time_is_refused(kind: str) -> None:
    """Also within one unit."""
    with pytest.raises(ValueError, match=r"until is .*, which is before time, "):
        bounds(kind, TIME, TIME.replace(microsecond=0), unit="s")


@pytest.mark.parametrize(
    ("kind", "unit"), [("v6", "tick"), ("cassandra", "tick"), ("ksuid", "s"), ("v7", "ms")]
)
def test_the_unit_is_the_kinds_own_unless_it_is_given(kind: str, unit: str) -> None:
    """The span has the name of that unit."""
    assert own_unit(bounded_field_of(kind)) == unit
    assert bounds(kind, TIME) == bounds(kind, TIME, unit=unit)
    assert span(kind, TIME).unit == unit


@pytest.mark.parametrize(
    ("kind", "unit", "message"),
    [
        ("v7", "us", "unit is 'us', which is finer than the time of a v7; it must be ms or s"),
        ("ksuid", "ms", "unit is 'ms', which is finer than the time of a ksuid; it must be s"),
        ("v6", "minute", "unit is 'minute'; it must be one of tick, us, ms, s"),
    ],
)
def test_a_unit_that_is_unknown_or_too_fine_is_refused(kind: str, unit: str, message: str) -> None:
    """The error lists those that can be used."""
    with pytest.raises(ValueError, match=message):
        bounds(kind, TIME, unit=unit)


def test_a_v1_has_no_bounds() -> None:
    """It does not sort by time as bytes; the error says what to use instead."""
    with pytest.raises(ValueError, match=r"no bounds: use cassandra .*, or v6 .* v1_to_v6"):
        bounds("v1", TIME)


@pytest.mark.parametrize("kind", ["v4", "V7", ""])
def test_an_unknown_kind_is_refused(kind: str) -> None:
    """The error lists the known ones."""
    with pytest.raises(ValueError, match=f"kind is '{kind}'; it must be one of v6, .*, cassandra"):
        bounds(kind, TIME)
    with pytest.raises(ValueError, match=f"kind is '{kind}'"):
        sort_key(kind, 0)


def test_cassandra_has_its_own_name_in_errors() -> None:
    """Its time field is that of v1."""
    with pytest.raises(ValueError, match="the time of a cassandra is from 1582-10-15"):
        bounds("cassandra", -1)


@pytest.mark.parametrize("kind", BOUNDED_KINDS)
def test_the_first_and_the_last_second_are_cut_at_the_ends_of_the_field(kind: str) -> None:
    """They do not wrap."""
    field = bounded_field_of(kind)
    ends = (datetime_or_int(kind, field.epoch), datetime_or_int(kind, field.end - field.unit))
    low, high = bounds(kind, *ends, unit="s")
    assert (low, high) == bounds(kind, *ends)
    held = span(kind, ends[1], unit="s")
    assert held.end == field.end
    assert held.first == max(field.epoch, (field.end - 1) // UNITS["s"] * UNITS["s"])


def test_a_snowflakes_bounds_count_from_its_epoch() -> None:
    """Its units are those of UTC, with any epoch."""
    assert bounds("snowflake", MS, epoch=MS) == (0, (1 << 22) - 1)
    low, high = bounds("snowflake", MS, unit="s", epoch=MS - 5123)
    assert (low >> 22, high >> 22) == (5000, 5999)
    cut = span("snowflake", MS, unit="s", epoch=MS - 3)
    assert cut.first == bounded_field_of("snowflake", MS - 3).epoch
    with pytest.raises(ValueError, match="epoch is 5; only a snowflake has one"):
        bounds("v7", MS, epoch=5)


def test_a_span_has_a_last_unit() -> None:
    """Its first tick, or the span's own first if that is later."""
    held = span("v7", TIME, TIME.replace(second=23), unit="s")
    assert (held.first, held.last, held.end) == (SECOND, SECOND + 10**7, SECOND + 2 * 10**7)
    first = span("snowflake", snowflake.TWITTER_EPOCH, unit="s")
    assert first.last == first.first


def test_a_unit_is_cut_to_the_field() -> None:
    """At both ends."""
    field = bounded_field_of("snowflake")
    assert whole(field.epoch, 10**7, field) == (field.epoch, field.epoch + 343 * TICKS_PER_MS)
    assert whole(field.end - 1, 10**7, field)[1] == field.end


@given(st.lists(st.tuples(TICKS, st.integers(0, 0x3FFF), st.integers(0, (1 << 48) - 1))))
def test_the_key_of_a_v1_is_its_v6(rows: list[tuple[int, int, int]]) -> None:
    """So v1 sort by tick, then by clock_seq and node."""
    ids = sorted((versions.v1(*row) for row in rows), key=lambda value: sort_key("v1", value))
    assert [tuple(versions.gregorian_fields(value)) for value in ids] == sorted(rows)


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 0x3FFF), st.integers(0, (1 << 48) - 1)))
)
def test_the_key_of_cassandra_is_its_order(rows: list[tuple[int, int, int]]) -> None:
    """The tick first, then the low 8 bytes, each of them signed."""

    def order(value: int) -> tuple[int, list[int]]:
        low = (value & (1 << 64) - 1).to_bytes(8, "big")
        return versions.gregorian_fields(value).tick, [
            byte - 256 if byte > 127 else byte for byte in low
        ]

    ids = [versions.v1(*row) for row in rows]
    assert sorted(ids, key=lambda value: sort_key("cassandra", value)) == sorted(ids, key=order)


@pytest.mark.parametrize("kind", [kind for kind in BOUNDED_KINDS if kind in KINDS])
def test_the_key_of_the_others_is_their_bytes(kind: str) -> None:
    """As many as the kind has, the highest first."""
    value = extremes(kind, TICK)[1]
    assert sort_key(kind, value) == kinds.octets(kind, value)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("v1", bounds("v6", TIME)[0]),
        ("v6", bounds("cassandra", TIME)[0]),
        ("v6", bounds("v7", TIME)[0]),
        ("v7", bounds("v6", TIME)[0]),
        ("cassandra", bounds("v6", TIME)[0]),
        *((kind, 1 << found.bits) for kind, found in KINDS.items() if not found.version),
        ("snowflake", -1),
    ],
)
def test_a_value_of_another_kind_has_no_key(kind: str, value: int) -> None:
    """It would sort at a time that it does not have."""
    with pytest.raises(ValueError, match=r"is not a v|only v1 and v6|must be 0 to"):
        sort_key(kind, value)
