"""What an id of any origin is made of, and the time in it.

Some texts show their kind by their shape: 8-4-4-4-12 is a UUID, also in braces and after
``urn:uuid:``; 26 characters are a ULID, 27 a KSUID, 20 a Push ID. The others are bits: 32 or 40 hex
digits are 16 or 20 bytes, and digits, or ``0x`` and hex digits, an integer. Any other letters are
digits of a Flake.

A UUID of a version in use is marked by its version and variant. The other kinds have no such mark:
any bits can be read as one of them, so only those are plausible that then have a plausible time.
"""

from __future__ import annotations

import contextlib
import re
from datetime import datetime
from uuid import UUID

from uuidd.core.ids import nodes, snowflake, times, uuids
from uuidd.core.ids.checks import check_bits, check_name, shown
from uuidd.core.ids.kinds import FORMATS, KINDS, Kind
from uuidd.core.ids.ticks import TICKS_PER_MS, TICKS_PER_SECOND, UNIX_EPOCH, TimeField
from uuidd.core.ids.versions import LANE_BITS
from uuidd.core.typed import NamedTuple

FROM = UNIX_EPOCH + 946_684_800 * TICKS_PER_SECOND
UNTIL = UNIX_EPOCH + 4_102_444_800 * TICKS_PER_SECOND
"""2000-01-01 and 2100-01-01, as ticks: a time between them is plausible.

No kind without a mark is older than 2000, and 2100 leaves room for a clock or an epoch that is far
off. A century is one in ninety of the times in 48 bits of milliseconds, so few bits are plausible
by chance.
"""

LONGEST_BITS = 160
"""Bits of the longest id, a KSUID."""

LONGEST = 100
"""Characters of the longest text that is read; the longest id, a UUID as a URN, has 47."""

UUID_KINDS = (*(kind for kind, form in FORMATS.items() if form.version), "nil", "max", "guid")

ALIASES = {"cassandra": "v1"}
"""Kinds by another name: Cassandra's TimeUUID is a v1."""

INSPECTED_KINDS = (*UUID_KINDS, *(kind for kind in FORMATS if kind not in UUID_KINDS), *ALIASES)
"""All kinds that a caller can name."""

Values = dict[str, int | str]
"""The fields of an id, by name."""

_NUMBERS = ("clock_seq", "sequence", "local_id")
"""The fields that count something; the others that have no text of their own are bits."""

_DOMAINS = {0: "person", 1: "group", 2: "org"}
"""What the local id of a v2 is: the number of a user, a group or an organization."""

_ACCEPTED = (
    "it must be a UUID, a ULID (26 characters), a KSUID (27), a Push ID (20), a Flake,"
    " a Snowflake, 16 or 20 bytes in hex, or an integer that is one of these, with a"
    " time from 2000 to 2099"
)

_UUID_MARKS = re.compile(r"[-{:]")
_OCTETS = re.compile(r"(?:0[xX])?([0-9a-fA-F]{32}|[0-9a-fA-F]{40})\Z")
_HEX = re.compile(r"0[xX][0-9a-fA-F]+\Z")


class Reading(NamedTuple):
    """An id read as one kind. Its text and fields are computed at each access.

    *kind* is a key of ``FORMATS``, or ``nil``, ``max``, ``guid``, or ``unknown`` for a UUID whose
    version or variant is not in use. *epoch*, in Unix milliseconds, is that of a Snowflake, by
    default Twitter's.
    """

    kind: str
    value: int
    epoch: int | None = None

    @property
    def text(self) -> str:
        """The id as its kind writes it."""
        value = uuids.guid_swapped(self.value) if self.kind == "guid" else self.value
        return _form(self.kind).to_text(value)

    @property
    def fields(self) -> Values:
        """The fields that the kind has, in the order in which they are shown."""
        kind, value = self.kind, self.value
        if kind == "guid":
            value = uuids.guid_swapped(value)
            kind = kind_of_uuid(value)
        if kind not in FORMATS:
            return _marks(value) if kind == "unknown" else {}
        form, time = FORMATS[kind], _time_field(kind, self.epoch)
        found = _marks(value) if form.version else {}
        held = form.unpack(value)
        if time is not None:
            found["time"] = times.text(time.tick(held["timestamp"]), time.unit)
            found["timestamp"] = held.pop("timestamp")
        for name, bits in held.items():
            # A hash is as good as random, and the id has no room for all of it.
            if name not in ("md5", "sha1"):
                found |= _field(form, name, bits)
        if kind == "ulid":
            # The text that a database shows if it stores ULIDs in its type for UUIDs.
            found["uuid"] = uuids.to_text(value)
        if time is not None:
            found["full_on"] = times.day(time.end)
        return found


def _form(kind: str) -> Kind:
    """Return how ids of a kind are written: those without a description as any UUID."""
    return FORMATS[kind if kind in FORMATS else "v4"]


def _time_field(kind: str, epoch: int | None) -> TimeField | None:
    """Return the time field of a kind; *epoch* is that of a Snowflake, by default Twitter's."""
    return FORMATS[kind].time if epoch is None else snowflake.time_field(epoch)


def _marks(value: int) -> Values:
    version = uuids.version(value)
    if version is not None:
        return {"version": version, "variant": "RFC 9562"}
    if not value >> 63 & 1:
        return {"variant": "NCS"}
    return {"variant": "future" if value >> 61 & 1 else "Microsoft"}


def _field(form: Kind, name: str, bits: int) -> Values:
    """Return a field as it is shown, and what its bits tell."""
    if name == "node":
        of = "random" if bits & nodes.MULTICAST else "a network address"
        return {"node": nodes.to_text(bits), "node_is": of}
    if name == "worker":
        datacenter, worker = divmod(bits, 1 << snowflake.WORKER_ID_BITS)
        return {"worker": bits, "datacenter_id": datacenter, "worker_id": worker}
    if name == "domain":
        return {"domain": _DOMAINS.get(bits, str(bits))}
    digits = -(-form.sizes[name] // 4)
    text = f"{bits:0{digits}X}" if name == "payload" else f"0x{bits:0{digits}x}"
    found: Values = {name: bits if name in _NUMBERS else text}
    if name == form.tail:
        # After the tick in the millisecond come the lane and random bits, or nothing.
        after = form.sizes[name] - form.rest
        tick = bits >> after
        if form.slots == TICKS_PER_MS and tick < TICKS_PER_MS:
            found["tick"] = tick
            if after:
                found["lane"] = bits >> after - LANE_BITS & (1 << LANE_BITS) - 1
    return found


def kind_of_uuid(value: int) -> str:
    """Return the kind of a UUID by its version and variant; ``unknown`` if they are not in use."""
    version = uuids.version(value)
    if version is None:
        return {uuids.NIL: "nil", uuids.MAX: "max"}.get(value, "unknown")
    return f"v{version}" if 1 <= version <= 8 else "unknown"


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
        if kind not in ("snowflake", None):
            raise ValueError(f"epoch is {shown(epoch)}; the epoch of a {kind} is fixed")
    if isinstance(id, UUID):
        id, raw = str(id), True
    if type(id) is int:
        named = str(check_bits("id", id, LONGEST_BITS))
        found = [_as_kind(named, id, kind, epoch)] if kind else _of_integer(id, epoch)
    elif isinstance(id, str):
        bare = id.strip()
        named = repr(bare)
        if len(bare) > LONGEST:
            raise ValueError(f"{shown(bare)} is not an id: it has more than {LONGEST} characters")
        if not bare.isascii():
            found = []
        else:
            found = [_written(bare, kind, epoch, raw)] if kind else _likely(bare, epoch)
    else:
        raise TypeError(f"id is {shown(id)}; it must be a str, a UUID or an int")
    if not found:
        raise ValueError(f"{named} is not an id: {_ACCEPTED}")
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
    if isinstance(id, bytes) and kind == "push_id":
        # They are those of its text.
        id = id.decode(errors="replace")
    found = inspect(
        int.from_bytes(id, "big") if isinstance(id, bytes) else id, kind=kind, epoch=epoch
    )
    if isinstance(id, bytes) and len(id) != (size := _form(found[0].kind).size):
        raise ValueError(f"id is {shown(id)}; a {found[0].kind} has {size} bytes, not {len(id)}")
    told = {str(reading.fields.get("time", "")): reading for reading in found}
    # Other generators' integers, with another epoch or other bits, look the same.
    number = kind is None and any(each.kind == "snowflake" for each in found)
    if number or len(told) > 1:
        ways = ", ".join(f"a {each.kind} of {time or 'no time'}" for time, each in told.items())
        raise ValueError(
            f"id is {shown(id)}, which may be {ways}: pass the kind, such as"
            f" kind={found[-1].kind!r}"
        )
    [(time, reading)] = told.items()
    if not time:
        raise ValueError(f"id is {shown(id)}; it is a {reading.kind}, which contains no time")
    if time.startswith("+"):
        raise ValueError(f"id is {shown(id)}; its time is {time}, and a datetime ends with 9999")
    return datetime.fromisoformat(time)


def _likely(bare: str, epoch: int | None) -> list[Reading]:
    """Return the plausible readings of a text, most likely first; ValueError if it breaks a shape.

    Digits that have the shape of a kind may be an integer too.
    """
    found = []
    for kind, form in KINDS.items():
        if len(bare) == form.width > 0:
            found = [Reading(kind, form.from_text(bare))]
    if found and not bare.isdecimal():
        return found
    if _UUID_MARKS.search(bare):
        value = uuids.from_text(bare)
        kind = kind_of_uuid(value)
        return [Reading(kind, value), *(_of_octets(value) if kind == "unknown" else ())]
    number, octets = _number(bare), _OCTETS.match(bare)
    if octets is None and number is not None:
        return found + _of_integer(number, epoch)
    if octets is None:
        with contextlib.suppress(ValueError):
            found = _plausible("flake", FORMATS["flake"].from_text(bare))
        return found
    value = int(octets[1], 16)
    if len(octets[1]) == 40:
        return [Reading("ksuid", value)]
    if bare.isdecimal() and bare[0] != "0":
        # 16 bytes in hex have 32 digits without a letter only by chance.
        found = _of_integer(int(bare), epoch)
    return [*found, *_of_octets(value)] or [Reading(kind_of_uuid(value), value)]


def _number(bare: str) -> int | None:
    """Return the integer that a text writes, if it is one."""
    if bare.isdecimal():
        return int(bare)
    return int(bare, 16) if _HEX.match(bare) else None


def _of_integer(value: int, epoch: int | None) -> list[Reading]:
    """Return the plausible readings of an integer, most likely first; *epoch* is for Snowflakes."""
    if value >> 128:
        return _plausible("ksuid", value)
    if value >> 96:
        # 128 bits begin with 32 zeros once in four thousand million cases.
        return _of_octets(value)
    nil = [] if value else [Reading("nil", value)]
    return [*nil, *_plausible("snowflake", value, epoch)]


def _of_octets(value: int) -> list[Reading]:
    """Return the plausible readings of 128 bits, most likely first.

    A Flake comes before a UUID, because its 64 bits of time are hardly ever plausible by chance. A
    marked UUID comes before a ULID, because it is more common. A ULID comes before a GUID, because
    one in sixteen values has a GUID's mark by chance.
    """
    kind = kind_of_uuid(value)
    marked = [] if kind == "unknown" else [Reading(kind, value)]
    found = [*_plausible("flake", value), *marked, *_plausible("ulid", value)]
    if not marked and kind_of_uuid(uuids.guid_swapped(value)).startswith("v"):
        found.append(Reading("guid", value))
    return found


def _plausible(kind: str, value: int, epoch: int | None = None) -> list[Reading]:
    """Return the reading of bits as a kind with a time, if that time is plausible."""
    form, field = FORMATS[kind], _time_field(kind, epoch)
    assert field is not None  # noqa: S101  (only kinds with a time are asked for)
    if value >> form.bits or not FROM <= field.tick(form.unpack(value)["timestamp"]) < UNTIL:
        return []
    return [Reading(kind, value, epoch)]


def _written(bare: str, kind: str, epoch: int | None, raw: bool) -> Reading:
    """Return the reading of a text as one kind. Raises ValueError, saying why, if there is none."""
    form = _form(kind)
    try:
        if kind == "flake" and len(bare) > form.longest:
            raise ValueError(f"{bare!r} is not a Flake: it has more than {form.longest} characters")
        value = form.from_text(bare)
    except ValueError:
        bits = _bits(bare, form)
        if bits is None:
            raise
        value = bits
    else:
        raw = True
    found = _as_kind(repr(bare), value, kind, epoch)
    if not raw:
        raise ValueError(
            f"{bare!r} is not written as a {kind} is; raw=True (--raw) also accepts an"
            " integer, or bytes in hex"
        )
    return found


def _bits(bare: str, form: Kind) -> int | None:
    """Return the bits of an id of *form* that a text writes, if it writes any.

    They are an integer, bytes in hex, or a ULID or UUID in place of another kind of 128 bits.
    """
    octets = _OCTETS.match(bare)
    # The digits of a Flake are an integer, and never bytes in hex.
    if octets and not (form.kind == "flake" and bare.isdecimal()):
        return int(octets[1], 16)
    ulid = FORMATS["ulid"]
    if form.bits == ulid.bits and _number(bare) is None:
        other = ulid if len(bare) == ulid.width else FORMATS["v4"]
        with contextlib.suppress(ValueError):
            return other.from_text(bare)
    return _number(bare)


def _as_kind(named: str, value: int, kind: str, epoch: int | None) -> Reading:
    """Return the reading of bits as one kind.

    Raises ValueError, which calls the id *named*, if they cannot be of that kind.
    """
    bits = _form(kind).bits
    if value >> bits:
        raise ValueError(f"{named} is not of kind {kind}: it has more than {bits} bits")
    if kind in UUID_KINDS and kind != "guid" and kind != (of := kind_of_uuid(value)):
        said = f"of kind {of}"
        if of == "unknown":
            said = ", ".join(f"{name} {told}" for name, told in _marks(value).items())
        raise ValueError(f"{named} is not of kind {kind}: it is {said}")
    return Reading(kind, value, epoch)
