"""The lowest and the highest id of a time, for queries of a database, and keys that sort by time.

They are computed from the time alone, which may be past or future.

Cassandra sorts its TimeUUIDs, which have v1's bits, by the tick and then by the low 8 bytes. It
compares each of these bytes as signed: 0x80 is the lowest and 0x7f the highest.
"""

from __future__ import annotations

from typing import NamedTuple

from uuidd.core.ids import snowflake, versions
from uuidd.core.ids.at_time import AT_TIME_KINDS, field_of
from uuidd.core.ids.checks import check_name, look_up
from uuidd.core.ids.formats import FORMATS
from uuidd.core.ids.ticks import TICKS_PER_MS, TICKS_PER_SECOND, TimeField
from uuidd.core.ids.times import Time, tick_of

BOUNDED_KINDS = (*(kind for kind in AT_TIME_KINDS if kind != "v1"), "cassandra")
"""The kinds that have bounds."""

UNITS = {"tick": 1, "us": 10, "ms": TICKS_PER_MS, "s": TICKS_PER_SECOND}
"""Units of time by name, in ticks. They begin with those of UTC, whatever a kind's epoch is."""


class Span(NamedTuple):
    """Whole units of time: the ticks from *first* to before *end*.

    The span ends where the kind's time field does, in the middle of a unit if need be.
    """

    first: int
    end: int
    unit: str

    @property
    def last(self) -> int:
        """The first tick of the last unit, or *first* if the span begins later in that unit."""
        return max(self.first, (self.end - 1) // UNITS[self.unit] * UNITS[self.unit])


def bounds(
    kind: str,
    time: Time,
    until: Time | None = None,
    *,
    unit: str | None = None,
    epoch: int = snowflake.TWITTER_EPOCH,
) -> tuple[int, int]:
    """Return the lowest and the highest id, both inclusive, of the unit of *time*.

    The unit is the kind's own (a tick, a millisecond or a second) unless *unit* names a longer one:
    ``tick``, ``us``, ``ms`` or ``s``. With *until* they are those of all units from that of *time*
    to that of *until*, both included. The kinds are v6, v7, ulid, ksuid, snowflake, flake, push_id
    and cassandra (v1's bits in Cassandra's order; an int is ticks since 1582-10-15).

    Raises ValueError for v1, which does not sort by time, for an unknown kind or unit, for a unit
    finer than the kind's own, for an *until* before *time*, and for a time out of the kind's range;
    TypeError for a time that is neither an aware datetime nor an int.
    """
    units = span(kind, time, until, unit=unit, epoch=epoch)
    field = bounded_field_of(kind, epoch)
    form = FORMATS["v1" if kind == "cassandra" else kind]
    low, _ = form.bounds(field.raw(units.first))
    _, high = form.bounds(field.raw(units.end - 1))
    if kind == "cassandra":
        return low >> 64 << 64 | _CASSANDRA_LOW, high >> 64 << 64 | _CASSANDRA_HIGH
    return low, high


def span(
    kind: str,
    time: Time,
    until: Time | None = None,
    *,
    unit: str | None = None,
    epoch: int = snowflake.TWITTER_EPOCH,
) -> Span:
    """Return the time that ``bounds`` of the same arguments cover. Raises as it does."""
    field = bounded_field_of(kind, epoch)
    first = last = tick_of(time, field)
    if until is not None:
        last = tick_of(until, field)
        if last < first:
            raise ValueError(f"until is {until}, which is before time, {time}")
    name = own_unit(field) if unit is None else unit
    ticks = ticks_of(name, field)
    begin, _ = whole(first, ticks, field)
    _, end = whole(last, ticks, field)
    return Span(begin, end, name)


def sort_key(kind: str, value: int) -> bytes:
    """Return a key of the id *value*: bytes that sort by time.

    They are the id's own bytes, except for v1, whose key is the v6 of the same fields, and for
    cassandra, whose key has Cassandra's own order. These two orders differ only within one tick.

    Raises ValueError for an unknown kind and for a *value* that is not of that kind.
    """
    if kind == "v1":
        return versions.v1_to_v6(value).to_bytes(16, "big")
    if kind == "cassandra":
        return (versions.v1_to_v6(value) ^ _SIGNS).to_bytes(16, "big")
    check_name("kind", kind, BOUNDED_KINDS)
    form = FORMATS[kind]
    form.unpack(value)
    return value.to_bytes(form.size, "big")


def bounded_field_of(kind: str, epoch: int = snowflake.TWITTER_EPOCH) -> TimeField:
    """Return the time field of a kind that has bounds.

    Raises ValueError, listing the kinds, for another; for v1 the error says what to use instead.
    """
    if kind == "v1":
        raise ValueError(
            "kind is 'v1'; its ids do not sort by time as bytes, so it has no bounds: use"
            " cassandra for Cassandra's order, or v6 for ids converted by v1_to_v6"
        )
    check_name("kind", kind, BOUNDED_KINDS)
    if kind == "cassandra":
        # It has v1's time, and no epoch either.
        return field_of("v1", epoch)._replace(kind=kind)
    return field_of(kind, epoch)


def own_unit(field: TimeField) -> str:
    """Return the name of the unit that a kind's time field counts."""
    return next(name for name, ticks in UNITS.items() if ticks == field.unit)


def ticks_of(unit: str, field: TimeField) -> int:
    """Return the ticks of a unit. Raises ValueError if it is unknown, or finer than the field's."""
    ticks = look_up("unit", unit, UNITS)
    if ticks < field.unit:
        coarse = [name for name, ticks in UNITS.items() if ticks >= field.unit]
        raise ValueError(
            f"unit is {unit!r}, which is finer than the time of a {field.kind}; it must be"
            f" {' or '.join(coarse)}"
        )
    return ticks


def whole(tick: int, ticks: int, field: TimeField) -> tuple[int, int]:
    """Return the half-open unit of *ticks* ticks around *tick*, cut at the ends of the field."""
    begin = tick - tick % ticks
    return max(begin, field.epoch), min(begin + ticks, field.end)


_SIGNS = 0x80808080_80808080
"""XORed with the low half of a UUID, it makes unsigned bytes of signed ones in the same order."""

_CASSANDRA_LOW, _CASSANDRA_HIGH = 0x80808080_80808080, 0xBF7F7F7F_7F7F7F7F
"""The low 8 bytes of the first and last id of a tick; their highest byte holds the variant."""
