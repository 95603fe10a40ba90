"""What an id of any origin is made of, and the time in it."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from uuidd.core.ids.checks import check_bits, shown
from uuidd.core.ids.formats import FORMATS
from uuidd.core.ids.inspect import Reading, readings
from uuidd.core.ids.inspect.plausible import of_integer

LONGEST_BITS = 160
"""Bits of the longest id, a KSUID."""


def inspect(
    id: str | UUID | int, *, kind: str | None = None, epoch: int | None = None, raw: bool = False
) -> list[Reading]:
    """Return what an id may mean: at least one reading, the most likely first.

    With *kind*, return the reading as that kind, likely or not; a text must be written as that kind
    is. With *raw* also, a text may be the id's bits: an integer, bytes in hex, or the text of
    another kind with as many bits. A UUID and an int always may. *epoch*, in Unix milliseconds, is
    that of Snowflakes, or that of *kind*. Space around a text is ignored.

    Raises ValueError, naming the id, if it is not an id, or not one of *kind*, and for an unknown
    *kind* and an *epoch* out of range; TypeError for anything but a str, a UUID and an int.
    """
    if isinstance(id, UUID):
        return readings(str(id), kind=kind, epoch=epoch, raw=True)
    if type(id) is not int:
        if not isinstance(id, str):
            raise TypeError(f"id is {shown(id)}; it must be a str, a UUID or an int")
        return readings(id, kind=kind, epoch=epoch, raw=raw)
    check_bits("id", id, LONGEST_BITS)
    if kind is not None:
        # With as many digits as no text of another kind has.
        return readings(
            f"0x{id:0{40 if kind == 'ksuid' else 32}x}", kind=kind, epoch=epoch, raw=True
        )
    found = list(of_integer(id, epoch))
    if not found:
        raise ValueError(f"{id} is not an id: as no kind of id it has a plausible time")
    return found


def time_of(
    id: str | UUID | int | bytes, *, kind: str | None = None, epoch: int | None = None
) -> datetime:
    """Return the time in an id, in UTC, to the microsecond, or as exact as the id's kind has it.

    A UUID, and nearly every text, shows its kind. An int, its digits, and bytes do not: they need
    *kind*, such as ``snowflake``. *epoch*, in Unix milliseconds, is that of Snowflakes.

    Raises ValueError, naming the id, if it contains no time, as a v4, or one after the year 9999,
    if its kind has to be told, and if it is not of *kind*; TypeError for anything but an id.
    """
    if kind is None and (isinstance(id, bytes) or type(id) is int):
        raise ValueError(
            f"id is {shown(id)}; an int, or bytes, may be an id of several kinds: pass the kind,"
            " such as kind='snowflake'"
        )
    found = inspect(
        int.from_bytes(id, "big") if isinstance(id, bytes) else id, kind=kind, epoch=epoch
    )
    if isinstance(id, bytes) and len(id) != (size := _size(found[0].kind)):
        raise ValueError(f"id is {shown(id)}; a {found[0].kind} has {size} bytes, not {len(id)}")
    told = {str(reading.fields.get("time", "")): reading for reading in found}
    # Other generators' integers, with another epoch or other bits, look the same.
    number = kind is None and any(each.kind == "snowflake" and each.base is None for each in found)
    if number or len(told) > 1:
        ways = ", ".join(f"a {each.kind} of {time or 'no time'}" for time, each in told.items())
        raise ValueError(f"id is {shown(id)}, which may be {ways}: pass the kind, or the id as int")
    [(time, reading)] = told.items()
    if not time:
        raise ValueError(f"id is {shown(id)}; it is a {reading.kind}, which contains no time")
    if time.startswith("+"):
        raise ValueError(f"id is {shown(id)}; its time is {time}, and a datetime ends with 9999")
    return datetime.fromisoformat(time)


def _size(kind: str) -> int:
    """Return how many bytes an id has."""
    return FORMATS[kind].size if kind in FORMATS else 16
