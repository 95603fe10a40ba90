"""Times of ids: the tick that ours carry, time fields, and times as users write them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kinds import KINDS, TIMED, TWITTER
from uuidd.core.ids import snowflake
from uuidd.core.ids.kinds import FORMATS, TIMES, time_fields
from uuidd.core.ids.ticks import (
    TICKS_PER_MS,
    TICKS_PER_SECOND,
    UNIX_EPOCH,
    TimeField,
    unix_field,
)
from uuidd.core.ids.times import day, text, tick_of

V1 = TIMES["v1"]

# Published: RFC 9562, A.1.
RFC_TICK = 138648505420000000
RFC_TIME = datetime(2022, 2, 22, 14, 22, 22, tzinfo=timezone(timedelta(hours=-5)))


V2_TIME = FORMATS["v2"].time
assert V2_TIME
FIELDS = time_fields(TWITTER) | {"v2": V2_TIME}
EACH_FIELD = pytest.mark.parametrize("field", FIELDS.values(), ids=FIELDS.keys())

SPANS = {kind: (KINDS[kind].first, KINDS[kind].last) for kind in TIMED} | {
    "v2": ("1582-10-15T00:00:00Z", "5236-03-31T21:13:51Z"),
}


@pytest.mark.parametrize("name", SPANS)
def test_the_years_of_a_kind(name: str) -> None:
    field = FIELDS[name]
    first, last = (text(tick, TICKS_PER_SECOND) for tick in (field.epoch, field.end - field.unit))
    assert (first, last) == SPANS[name]


@EACH_FIELD
@given(data=st.data())
def test_a_field_holds_the_unit_of_a_tick(field: TimeField, data: st.DataObject) -> None:
    tick = data.draw(st.integers(field.epoch, field.end - 1))
    raw = field.raw(tick)
    assert raw < 1 << field.bits
    assert field.tick(raw) <= tick < field.tick(raw) + field.unit
    assert field.raw(field.tick(raw)) == raw


@EACH_FIELD
def test_a_field_holds_nothing_outside(field: TimeField) -> None:
    assert field.raw(field.epoch) == 0
    assert field.raw(field.end - 1) == (1 << field.bits) - 1
    for tick in (field.epoch - 1, field.end):
        with pytest.raises(ValueError, match=f"^tick is {tick}; the time of a {field.kind} is "):
            field.raw(tick)
    for raw in (-1, 1 << field.bits):
        with pytest.raises(ValueError, match=f"^timestamp is {raw}; it must be 0 to "):
            field.tick(raw)


@pytest.mark.parametrize("tick", [True, float(UNIX_EPOCH * 2), None])
def test_a_tick_that_is_not_an_int_is_refused(tick: Any) -> None:
    with pytest.raises(TypeError, match=r"^tick is .*; it must be an int$"):
        V1.raw(tick)


@pytest.mark.parametrize("epoch", [True, 1.0])
def test_an_epoch_that_is_not_an_int_is_refused(epoch: Any) -> None:
    """A float would make every id inexact."""
    with pytest.raises(TypeError, match=f"^epoch is {epoch}; it must be an int$"):
        unix_field("snowflake", TICKS_PER_MS, 41, epoch_ms=epoch)


@EACH_FIELD
def test_a_time_outside_the_field_is_refused(field: TimeField) -> None:
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


@given(st.datetimes(datetime(1582, 10, 15), datetime(5236, 3, 31), timezones=st.just(UTC)))
def test_a_datetime_keeps_each_microsecond(time: datetime) -> None:
    tick = tick_of(time, V1)
    assert datetime(1582, 10, 15, tzinfo=UTC) + timedelta(microseconds=tick // 10) == time
    assert tick % 10 == 0
    assert datetime.fromisoformat(text(tick, 10)) == time
    assert day(tick) == time.date().isoformat()


@pytest.mark.parametrize(
    ("field", "time"),
    [
        (V1, RFC_TICK),
        (V1, RFC_TIME),
        (V1, RFC_TIME.astimezone(UTC)),
        (TIMES["v7"], 1_645_557_742_000),
        (snowflake.time_field(), 1_645_557_742_000),
        (snowflake.time_field(1_600_000_000_000), 1_645_557_742_000),
        (TIMES["ksuid"], 1_645_557_742),
    ],
)
def test_a_time_is_an_instant_or_an_int_in_the_unit_of_the_kind(
    field: TimeField, time: int | datetime
) -> None:
    assert tick_of(time, field) == RFC_TICK


class Other(datetime):
    """A datetime that subtracts in a way of its own, as those of pandas and pendulum do."""

    def __sub__(self, other: Any) -> Any:
        raise OverflowError


def test_a_datetime_of_another_library_is_an_instant() -> None:
    assert tick_of(Other.fromisoformat(RFC_TIME.isoformat()), V1) == RFC_TICK


V1_ENDS = "the time of a v1 is from 1582-10-15T00:00:00.0000000Z to 5236-03-31T21:21:00.6846975Z$"


@pytest.mark.parametrize(
    ("time", "refusal"),
    [
        # Nothing says which zone these are in.
        *((time, "it must be an aware datetime") for time in (datetime.min, datetime(2022, 2, 22))),
        # The last two are past Python's own range in UTC.
        (datetime(1582, 10, 14, 23, 59, 59, 999999, tzinfo=UTC), V1_ENDS),
        (datetime(5236, 3, 31, 21, 21, 0, 684698, tzinfo=UTC), V1_ENDS),
        (datetime.min.replace(tzinfo=UTC), V1_ENDS),
        (datetime.max.replace(tzinfo=timezone(timedelta(hours=-23))), V1_ENDS),
        # A float is not exact, and a bool is not a number here.
        *(
            (time, "it must be an aware datetime or an int")
            for time in (1.5, 1645557742.0, True, None, "2022-02-22T19:22:22Z")
        ),
    ],
)
def test_what_is_not_a_time_of_the_field_is_refused(time: Any, refusal: str) -> None:
    with pytest.raises((TypeError, ValueError), match=f"^time is .*; {refusal}"):
        tick_of(time, V1)


@pytest.mark.parametrize(
    ("unit", "expected"),
    [
        (1, "2022-02-22T19:22:22.0000003Z"),
        (10, "2022-02-22T19:22:22.000000Z"),
        (40, "2022-02-22T19:22:22.000000Z"),
        (10_000, "2022-02-22T19:22:22.000Z"),
        (100_000, "2022-02-22T19:22:22.00Z"),
        (10_000_000, "2022-02-22T19:22:22Z"),
    ],
)
def test_a_text_has_the_digits_that_the_unit_has(unit: int, expected: str) -> None:
    assert text(RFC_TICK + 3, unit) == expected


@pytest.mark.parametrize(
    ("tick", "unit", "expected"),
    [
        (0, 1, "1582-10-15T00:00:00.0000000Z"),
        (UNIX_EPOCH, 10_000_000, "1970-01-01T00:00:00Z"),
        ((1 << 60) - 1, 1, "5236-03-31T21:21:00.6846975Z"),
        (TIMES["v7"].end - 1, 10_000, "+10889-08-02T05:31:50.655Z"),
        (TIMES["flake"].end - 1, 10_000, "+584556019-04-03T14:25:51.615Z"),
    ],
)
def test_a_text_shows_each_year_that_an_id_can_have(tick: int, unit: int, expected: str) -> None:
    assert text(tick, unit) == expected


def test_a_leap_day_is_in_each_leap_year_past_9999() -> None:
    leap = datetime(2000, 2, 29, tzinfo=UTC)
    tick = tick_of(leap, V1) + 20 * 146_097 * 864_000_000_000
    assert day(tick) == "+10000-02-29"
