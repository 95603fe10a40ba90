from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uuidd.core.ids import flake, ksuid, snowflake, ulid, versions
from uuidd.core.ids.ticks import GREGORIAN, UNIX_EPOCH, TimeField
from uuidd.core.ids.times import day, text, tick_of

V1 = GREGORIAN["v1"]
BEGIN = datetime(1582, 10, 15, tzinfo=UTC)

# Published: RFC 9562, A.1.
RFC_TICK = 138648505420000000
RFC_TIME = datetime(2022, 2, 22, 14, 22, 22, tzinfo=timezone(timedelta(hours=-5)))


def test_a_datetime_is_the_tick_of_its_instant_whatever_its_zone() -> None:
    """RFC 9562's example, written in the RFC's own zone."""
    assert tick_of(RFC_TIME, V1) == RFC_TICK
    assert tick_of(RFC_TIME.astimezone(UTC), V1) == RFC_TICK


@given(st.datetimes(datetime(1582, 10, 15), datetime(5236, 3, 31), timezones=st.just(UTC)))
def test_a_datetime_keeps_each_microsecond(time: datetime) -> None:
    """No float is on the way: the tick gives the very datetime back."""
    tick = tick_of(time, V1)
    assert BEGIN + timedelta(microseconds=tick // 10) == time
    assert tick % 10 == 0


@given(st.datetimes(datetime(1582, 10, 15), datetime(5236, 3, 31), timezones=st.just(UTC)))
def test_a_text_is_read_back_by_python(time: datetime) -> None:
    """RFC 3339 with a Z is what fromisoformat reads."""
    tick = tick_of(time, V1)
    assert datetime.fromisoformat(text(tick, 10)) == time
    assert day(tick) == time.date().isoformat()


@pytest.mark.parametrize(
    ("field", "time", "tick"),
    [
        (V1, RFC_TICK, RFC_TICK),
        (versions.V7_TIME, 1_645_557_742_000, RFC_TICK),
        (snowflake.time_field(), 1_645_557_742_000, RFC_TICK),
        (snowflake.time_field(1_600_000_000_000), 1_645_557_742_000, RFC_TICK),
        (ksuid.TIME, 1_645_557_742, RFC_TICK),
    ],
)
def test_an_int_is_in_the_unit_of_the_kind(field: TimeField, time: int, tick: int) -> None:
    """Ticks since 1582 for v1, Unix seconds for KSUIDs, else Unix milliseconds, epoch or not."""
    assert tick_of(time, field) == tick


@pytest.mark.parametrize(
    ("field", "first", "last"),
    [
        (V1, 0, (1 << 60) - 1),
        (versions.V7_TIME, 0, (1 << 48) - 1),
        (ulid.TIME, 0, (1 << 48) - 1),
        (flake.TIME, 0, (1 << 64) - 1),
        (ksuid.TIME, 1_400_000_000, 1_400_000_000 + (1 << 32) - 1),
        (
            snowflake.time_field(),
            snowflake.TWITTER_EPOCH,
            snowflake.TWITTER_EPOCH + (1 << 41) - 1,
        ),
    ],
)
def test_a_field_tells_its_first_to_its_last_unit(field: TimeField, first: int, last: int) -> None:
    """Both ends are taken, and one past each is refused by name, value and range."""
    assert tick_of(first, field) == field.epoch
    assert tick_of(last, field) == field.end - field.unit
    for time in (first - 1, last + 1):
        with pytest.raises(
            ValueError, match=rf"time is {time}; the time of a {field.kind} is .* to "
        ):
            tick_of(time, field)


@pytest.mark.parametrize("time", [datetime.min, datetime(2022, 2, 22, 19, 22, 22)])
def test_a_naive_datetime_is_refused(time: datetime) -> None:
    """It is no instant: the zone is the reader's guess."""
    with pytest.raises(ValueError, match=r"time is .*; it must be an aware datetime"):
        tick_of(time, V1)


@pytest.mark.parametrize(
    "time",
    [
        datetime.min.replace(tzinfo=UTC),
        datetime(1582, 10, 14, 23, 59, 59, 999999, tzinfo=UTC),
        datetime(5236, 3, 31, 21, 21, 0, 684698, tzinfo=UTC),
        datetime.max.replace(tzinfo=timezone(timedelta(hours=-23))),
    ],
)
def test_a_datetime_outside_the_field_is_refused(time: datetime) -> None:
    """So is one that is past Python's own range in UTC."""
    with pytest.raises(
        ValueError, match=r"the time of a v1 is from 1582-10-15T00:00:00.0000000Z to 5236-03-31T"
    ):
        tick_of(time, V1)


@pytest.mark.parametrize("time", [1.5, 1645557742.0, True, None, "2022-02-22T19:22:22Z"])
def test_what_is_no_time_is_refused(time: Any) -> None:
    """A float holds no exact tick, and a bool is no number here."""
    with pytest.raises(TypeError, match=r"time is .*; it must be an aware datetime or an int"):
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
    """No more, which would be made up, and no fewer."""
    assert text(RFC_TICK + 3, unit) == expected


@pytest.mark.parametrize(
    ("tick", "unit", "expected"),
    [
        (0, 1, "1582-10-15T00:00:00.0000000Z"),
        (UNIX_EPOCH, 10_000_000, "1970-01-01T00:00:00Z"),
        ((1 << 60) - 1, 1, "5236-03-31T21:21:00.6846975Z"),
        (versions.V7_TIME.end - 1, 10_000, "+10889-08-02T05:31:50.655Z"),
        (flake.TIME.end - 1, 10_000, "+584556019-04-03T14:25:51.615Z"),
    ],
)
def test_a_text_tells_each_year_that_an_id_can(tick: int, unit: int, expected: str) -> None:
    """Past 9999, where Python's calendar ends, it goes on with a plus sign."""
    assert text(tick, unit) == expected


def test_a_leap_day_is_in_each_leap_year_past_9999() -> None:
    """The calendar repeats after 400 years, 146,097 days."""
    leap = datetime(2000, 2, 29, tzinfo=UTC)
    tick = tick_of(leap, V1) + 20 * 146_097 * 864_000_000_000
    assert day(tick) == "+10000-02-29"
