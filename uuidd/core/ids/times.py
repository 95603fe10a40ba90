"""Times as users pass and read them: aware datetimes, integers, and text in RFC 3339."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from functools import lru_cache

from uuidd.core.ids.checks import shown
from uuidd.core.ids.ticks import TICKS_PER_SECOND, UNIX_EPOCH, TimeField

Time = int | datetime
"""A time: an aware datetime, or an int in the unit of the kind of id.

The unit is ticks since 1582-10-15 for v1 and v6, Unix seconds for KSUIDs, and Unix milliseconds for
the others, also for Snowflakes of any epoch.
"""

_EPOCH_DAY = date(1582, 10, 15).toordinal()
_TICKS_PER_DAY = 86_400 * TICKS_PER_SECOND
_CYCLE = 400
_CYCLE_DAYS = 146_097
"""Days of 400 Gregorian years, after which the calendar repeats."""


def tick_of(time: Time, field: TimeField) -> int:
    """Return the tick of *time*; an int is in the unit of *field*.

    Raises TypeError for a float or anything else that is not a time, ValueError for a naive
    datetime and for a time outside the field's range.
    """
    if isinstance(time, datetime):
        tick = tick_at(time)
    elif type(time) is int:
        tick = time if field.unit == 1 else UNIX_EPOCH + time * field.unit
    else:
        raise TypeError(
            f"time is {shown(time)}; it must be an aware datetime or an int (a float is not exact)"
        )
    if not field.epoch <= tick < field.end:
        last = text(field.end - field.unit, field.unit)
        raise ValueError(
            f"time is {shown(time) if type(time) is int else text(tick, 10)}; the time of a"
            f" {field.kind} is from {text(field.epoch, field.unit)} to {last}"
        )
    return tick


def tick_at(time: datetime) -> int:
    """Return the tick of an aware datetime. Raises ValueError for a naive one."""
    offset = time.utcoffset()
    if offset is None:
        raise ValueError(
            f"time is {time.isoformat()}; it must be an aware datetime (tzinfo is missing)"
        )
    # Field by field: a subclass, such as that of pandas or pendulum, may subtract in its own way.
    minutes = ((time.toordinal() - _EPOCH_DAY) * 24 + time.hour) * 60 + time.minute
    microseconds = (minutes * 60 + time.second) * 1_000_000 + time.microsecond
    return (microseconds - offset // timedelta(microseconds=1)) * 10


def text(tick: int, unit: int = 1) -> str:
    """Return the UTC time of a tick in RFC 3339, with the digits of a field of *unit* ticks.

    A year after 9999, which RFC 3339 does not allow, has a plus sign before it (ISO 8601).
    """
    day, rest = divmod(tick, _TICKS_PER_DAY)
    seconds, ticks = divmod(rest, TICKS_PER_SECOND)
    hours, minutes = divmod(seconds // 60, 60)
    digits = _digits(unit)
    fraction = f".{ticks:07d}"[: digits + 1] if digits else ""
    return f"{_day(day)}T{hours:02d}:{minutes:02d}:{seconds % 60:02d}{fraction}Z"


def day(tick: int) -> str:
    """Return the UTC day of a tick, as YYYY-MM-DD."""
    return _day(tick // _TICKS_PER_DAY)


@lru_cache(maxsize=64)
def _digits(unit: int) -> int:
    """Return the number of decimal digits of a second that units of *unit* ticks need."""
    return next(some for some in range(8) if not unit * 10**some % TICKS_PER_SECOND)


@lru_cache(maxsize=1024)
def _day(days: int) -> str:
    cycles, within = divmod(days, _CYCLE_DAYS)
    found = date.fromordinal(_EPOCH_DAY + within)
    year = found.year + cycles * _CYCLE
    sign = "+" if year > 9999 else ""
    return f"{sign}{year:04d}-{found.month:02d}-{found.day:02d}"
