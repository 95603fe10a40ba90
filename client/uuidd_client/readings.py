"""The readings of an id that a program has as a text, a UUID or an integer, and the time in it."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from uuidd.core.ids import inspect
from uuidd.core.ids.checks import check_bits, shown
from uuidd.core.ids.inspect.plausible import of_integer

LONGEST_BITS = 160
"""Bits of the longest id, a KSUID."""

_BYTES = {"ksuid": 20, "apollo": 8, "snowflake": 8}
"""How many bytes an id has, for the kinds that do not have 16."""


def readings(
    id: str | UUID | int, *, kind: str | None = None, epoch: int | None = None, raw: bool = False
) -> list[inspect.Reading]:
    """Return the plausible readings of an id, as the core's ``readings`` does for a text.

    A UUID with a *kind* may be the bits of that kind, and so may an integer. Raises TypeError for
    anything else.
    """
    if isinstance(id, UUID):
        return inspect.readings(str(id), kind=kind, epoch=epoch, raw=True)
    if type(id) is not int:
        if not isinstance(id, str):
            raise TypeError(f"id is {shown(id)}; it must be a str, a UUID or an int")
        return inspect.readings(id, kind=kind, epoch=epoch, raw=raw)
    check_bits("id", id, LONGEST_BITS)
    if kind is not None:
        # With as many digits as no text of another kind has.
        return inspect.readings(
            f"0x{id:0{40 if kind == 'ksuid' else 32}x}", kind=kind, epoch=epoch, raw=True
        )
    found = list(of_integer(id, epoch))
    if not found:
        raise ValueError(f"{id} is not an id: as no kind of id it has a plausible time")
    return found


def time_of(
    id: str | UUID | int | bytes, *, kind: str | None = None, epoch: int | None = None
) -> datetime:
    """Return the time in an id, in UTC, to the microsecond.

    Raises ValueError if the id contains no time, if it can be of several kinds and *kind* is None,
    if it is not of *kind*, and for a time after the year 9999; TypeError for anything else than an
    id. *kind* and *epoch* are as for ``readings``. An int, its digits, or bytes can always be of
    several.
    """
    if kind is None and (isinstance(id, bytes) or type(id) is int):
        raise ValueError(
            f"id is {shown(id)}; an int, or bytes, may be an id of several kinds: pass the kind,"
            " such as kind='snowflake'"
        )
    found = readings(
        int.from_bytes(id, "big") if isinstance(id, bytes) else id, kind=kind, epoch=epoch
    )
    if isinstance(id, bytes) and len(id) != (size := _BYTES.get(found[0].kind, 16)):
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
