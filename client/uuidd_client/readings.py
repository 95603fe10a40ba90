"""What an id of any origin is made of, and the time in it.

Some texts show their kind by their shape: 8-4-4-4-12 is a UUID, also in braces and after
``urn:uuid:``; 26 characters are a ULID, 27 a KSUID, 20 a Push ID. The others are bits: 32 or 40 hex
digits are 16 or 20 bytes, and digits, or ``0x`` and hex digits, an integer. Any other letters are
digits of a Flake.

A UUID of a version in use is marked by its version and variant. The other kinds have no such mark:
any bits can be read as one of them, so only those are plausible that then have a plausible time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from uuid import UUID

from uuidd.core.ids import snowflake, uuids
from uuidd.core.ids.checks import check_bits, check_name, shown
from uuidd.core.ids.kinds import FORMATS, KINDS, Kind
from uuidd.core.ids.ticks import TICKS_PER_SECOND, UNIX_EPOCH
from uuidd_client.fields import (
    ALIASES,
    INSPECTED_KINDS,
    UUID_KINDS,
    Reading,
    kind_of_uuid,
    time_field,
)

FROM = UNIX_EPOCH + 946_684_800 * TICKS_PER_SECOND
UNTIL = UNIX_EPOCH + 4_102_444_800 * TICKS_PER_SECOND
"""2000-01-01 and 2100-01-01, as ticks: a time between them is plausible.

No kind without a mark is older than 2000, and 2100 leaves room for a clock or an epoch that is far
off. A century is one in ninety of the times in 48 bits of milliseconds, so few bits are plausible
by chance.
"""

UUID_BITS = 128

LONGEST_BITS = 160
"""Bits of the longest id, a KSUID."""

LONGEST = 100
"""Characters of the longest text that is read; the longest id, a UUID as a URN, has 47."""

_ACCEPTED = (
    "it must be a UUID, a ULID (26 characters), a KSUID (27), a Push ID (20), a Flake,"
    " a Snowflake, 16 or 20 bytes in hex, or an integer that is one of these, with a"
    " time from 2000 to 2099"
)

_WRITTEN = [form for form in FORMATS.values() if form.digits and form.kind != "snowflake"]
"""The kinds with a text of their own; that of a Snowflake is any number's."""

_UUID_MARKS = re.compile(r"[-{:]")
_OCTETS = re.compile(r"(?:0[xX])?([0-9a-fA-F]{32}|[0-9a-fA-F]{40})\Z")
_HEX = re.compile(r"0[xX][0-9a-fA-F]+\Z")

_PLAIN_UUID = re.compile(r"[0-9a-fA-F]{32}\Z")


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
    if kind is not None:
        check_name("kind", kind, INSPECTED_KINDS)
        kind = ALIASES.get(kind, kind)
    if epoch is not None:
        check_bits("epoch", epoch, snowflake.EPOCH_BITS)
    if isinstance(id, UUID):
        id, raw = str(id), True
    elif type(id) is int:
        check_bits("id", id, LONGEST_BITS)
        if kind is None:
            found = list(_of_integer(id, epoch))
            if not found:
                raise ValueError(f"{id} is not an id: as no kind of id it has a plausible time")
            return found
        # With as many digits as no text of another kind has.
        id, raw = f"0x{id:0{40 if kind == 'ksuid' else 32}x}", True
    elif not isinstance(id, str):
        raise TypeError(f"id is {shown(id)}; it must be a str, a UUID or an int")
    bare = id.strip()
    if len(bare) > LONGEST:
        raise ValueError(f"{shown(bare)} is not an id: it has more than {LONGEST} characters")
    if not bare.isascii():
        raise ValueError(f"{bare!r} is not an id: {_ACCEPTED}")
    if kind is not None:
        return _as_kind(bare, kind, epoch, raw)
    found = _spelled(bare)
    if not found or bare.isdecimal():
        found += _bits(bare, epoch)
    if not found:
        raise ValueError(f"{bare!r} is not an id: {_ACCEPTED}")
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
    if not isinstance(id, str | UUID | bytes) and type(id) is not int:
        raise TypeError(f"id is {shown(id)}; it must be a str, a UUID, an int or bytes")
    if kind is None and not isinstance(id, str | UUID):
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
    number = kind is None and any(each.kind == "snowflake" for each in found)
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


def _spelled(bare: str) -> list[Reading]:
    """Return the readings of a text with a kind's shape; ValueError if it breaks that shape."""
    for form in _WRITTEN:
        if len(bare) == form.width > 0:
            return [Reading(form.kind, form.from_text(bare))]
    if _UUID_MARKS.search(bare):
        value = uuids.from_text(bare)
        kind = kind_of_uuid(value)
        return [Reading(kind, value), *(_beside_uuid(value) if kind == "unknown" else ())]
    return []


def _bits(bare: str, epoch: int | None) -> list[Reading]:
    """Return the plausible readings of a text as an integer, as bytes and as letters."""
    if not bare.isalnum():
        return []
    octets = _OCTETS.match(bare)
    if octets is None:
        if bare.isdecimal():
            return list(_of_integer(int(bare), epoch))
        if _HEX.match(bare):
            return list(_of_integer(int(bare, 16), epoch))
        return list(_letters(bare))
    value = int(octets[1], 16)
    if len(octets[1]) == 40:
        return [Reading("ksuid", value)]
    found = list(_of_octets(value))
    if bare.isdecimal() and bare[0] != "0":
        # 16 bytes in hex have 32 digits without a letter only by chance.
        found = [*_of_integer(int(bare), epoch), *found]
    return found or [Reading(kind_of_uuid(value), value)]


def _letters(bare: str) -> Iterator[Reading]:
    """Yield the reading of a text as a Flake, if it is plausible."""
    form = FORMATS["flake"]
    if len(bare) <= form.longest:
        try:
            value = form.from_text(bare)
        except ValueError:
            return
        yield from _if_plausible(value, "flake")


def _of_integer(value: int, epoch: int | None) -> Iterator[Reading]:
    """Yield the plausible readings of an integer, most likely first; *epoch* is for Snowflakes."""
    if value >> 128:
        yield from _if_plausible(value, "ksuid")
    elif value >> 96:
        # 128 bits begin with 32 zeros once in four thousand million cases.
        yield from _of_octets(value)
    elif not value >> 64:
        if not value:
            yield Reading("nil", value)
        yield from _if_plausible(value, "snowflake", epoch)


def _of_octets(value: int) -> Iterator[Reading]:
    """Yield the plausible readings of 128 bits, most likely first.

    A Flake comes before a UUID, because its 64 bits of time are hardly ever plausible by chance. A
    marked UUID comes before a ULID, because it is more common. A ULID comes before a GUID, because
    one in sixteen values has a GUID's mark by chance.
    """
    kind = kind_of_uuid(value)
    if kind == "unknown":
        yield from _beside_uuid(value)
        return
    yield from _if_plausible(value, "flake")
    yield Reading(kind, value)
    yield from _if_plausible(value, "ulid")


def _beside_uuid(value: int) -> Iterator[Reading]:
    """Yield the plausible readings of an unmarked UUID's bits as other kinds."""
    yield from _if_plausible(value, "flake")
    yield from _if_plausible(value, "ulid")
    if kind_of_uuid(uuids.guid_swapped(value)).startswith("v"):
        yield Reading("guid", value)


def _if_plausible(value: int, kind: str, epoch: int | None = None) -> Iterator[Reading]:
    """Yield the reading of bits as a kind with a time, if that time is plausible."""
    form = FORMATS[kind]
    if value >> form.bits:
        return
    field = time_field(kind, epoch)
    assert field is not None  # noqa: S101  (only kinds with a time are asked for)
    if FROM <= field.tick(form.unpack(value)["timestamp"]) < UNTIL:
        yield Reading(kind, value, epoch)


def _as_kind(bare: str, kind: str, epoch: int | None, raw: bool) -> list[Reading]:
    """Return the readings as one kind. Raises ValueError, saying why, if there are none."""
    if epoch is not None and kind != "snowflake":
        raise ValueError(f"epoch is {shown(epoch)}; the epoch of a {kind} is fixed")
    if kind == "snowflake":
        value = _integer(bare, kind, 63)
        _check_form(bare, kind, raw)
        return [Reading(kind, value, epoch)]
    value = _as_uuid(bare, kind) if kind in UUID_KINDS else _as_text(bare, FORMATS[kind])
    _check_form(bare, kind, raw)
    if kind in UUID_KINDS and kind != "guid" and kind != (of := kind_of_uuid(value)):
        raise ValueError(f"{bare!r} is not of kind {kind}: it is {_said(of, value)}")
    return [Reading(kind, value)]


def _check_form(bare: str, kind: str, raw: bool) -> None:
    """Raise ValueError unless a text is written as the kind's own tools write it, or is *raw*."""
    if kind in UUID_KINDS:
        fits = bool(_UUID_MARKS.search(bare) or _PLAIN_UUID.match(bare))
    elif kind == "snowflake":
        fits = not _HEX.match(bare)
    else:
        fits = _has_width(bare, FORMATS[kind])
    if not (fits or raw):
        raise ValueError(
            f"{bare!r} is not written as a {kind} is; raw=True (--raw) also accepts an"
            " integer, or bytes in hex"
        )


def _said(kind: str, value: int) -> str:
    if kind != "unknown":
        return f"of kind {kind}"
    return ", ".join(f"{name} {told}" for name, told in Reading(kind, value).fields.items())


def _integer(bare: str, kind: str, bits: int) -> int:
    """Return the integer that a text writes, of at most *bits* bits."""
    if bare.isdecimal():
        value = int(bare)
    elif _HEX.match(bare):
        value = int(bare, 16)
    else:
        raise ValueError(
            f"{bare!r} is not of kind {kind}: it is not an integer, nor 0x and hex digits"
        )
    if value >> bits:
        raise ValueError(f"{bare!r} is not of kind {kind}: it has more than {bits} bits")
    return value


def _as_uuid(bare: str, kind: str) -> int:
    """Return the 128 bits that a text writes in any way."""
    ulid = FORMATS["ulid"]
    if len(bare) == ulid.width and not bare.isdecimal():
        return ulid.from_text(bare)
    found = _as_number(bare, kind, UUID_BITS)
    return uuids.from_text(bare) if found is None else found


def _as_text(bare: str, form: Kind) -> int:
    """Return the bits of an id that its own text writes, or an integer, or the text of a UUID."""
    # A kind without bytes, as Push IDs are, has no bits to pass but its text.
    if _has_width(bare, form) or "bytes" not in KINDS[form.kind].forms:
        return form.from_text(bare)
    if bare.isdecimal() and not form.width:
        return _integer(bare, form.kind, form.bits)
    if form.bits == UUID_BITS:
        return _as_uuid(bare, form.kind)
    found = _as_number(bare, form.kind, form.bits)
    return form.from_text(bare) if found is None else found


def _as_number(bare: str, kind: str, bits: int) -> int | None:
    """Return what a text writes as bytes in hex, or as an integer; None if it does neither."""
    if octets := _OCTETS.match(bare):
        return _integer(f"0x{octets[1]}", kind, bits)
    return _integer(bare, kind, bits) if bare.isdecimal() or _HEX.match(bare) else None


def _has_width(bare: str, form: Kind) -> bool:
    """Return whether a text may be the kind's own, by the number of its characters."""
    return len(bare) == form.width or (not form.width and len(bare) <= form.longest)
