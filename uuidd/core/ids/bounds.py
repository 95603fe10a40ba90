"""The lowest and the highest id of a time, for queries of a database, and keys that sort by time.

They are computed from the time alone, which may be past or future.

Cassandra sorts its TimeUUIDs, which have v1's bits, by the tick and then by the low 8 bytes. It
compares each of these bytes as signed: 0x80 is the lowest and 0x7f the highest.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from uuidd.core.ids import flake, ksuid, push_id, snowflake, ulid, versions
from uuidd.core.ids.at_time import field_of
from uuidd.core.ids.checks import look_up
from uuidd.core.ids.ticks import TICKS_PER_MS, TICKS_PER_SECOND, TimeField
from uuidd.core.ids.times import Time, tick_of

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
    order = _order(kind)
    return order.low(units.first, epoch), order.high(units.end - 1, epoch)


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
    order = _order(kind)
    if kind == "v6":
        versions.v6_to_v1(value)
    else:
        order.fields(value)
    return value.to_bytes(order.width, "big")


def bounded_field_of(kind: str, epoch: int = snowflake.TWITTER_EPOCH) -> TimeField:
    """Return the time field of a kind that has bounds.

    Raises ValueError, listing the kinds, for another; for v1 the error says what to use instead.
    """
    if kind == "v1":
        raise ValueError(
            "kind is 'v1'; its ids do not sort by time as bytes, so it has no bounds: use"
            " cassandra for Cassandra's order, or v6 for ids converted by v1_to_v6"
        )
    _order(kind)
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


class _Order(NamedTuple):
    """The order of a kind's ids, in which the time comes first.

    *low* and *high* return the first and last id of a tick's unit under an epoch. *fields* raises
    ValueError for a value that is not of the kind. *width* is the bytes of an id.
    """

    low: Callable[[int, int], int]
    high: Callable[[int, int], int]
    fields: Callable[[int], object]
    width: int


def _over(
    lowest: Callable[[int], int], rest: int, fields: Callable[[int], object], width: int
) -> _Order:
    """Return the order of a kind in which the bits of the mask *rest*, after the time, are free."""
    return _Order(
        lambda tick, _epoch: lowest(tick),
        lambda tick, _epoch: lowest(tick) | rest,
        fields,
        width,
    )


def _cassandra(tick: int, tail: int) -> int:
    return versions.v1(tick, 0, 0) >> 64 << 64 | tail


_ORDERS = {
    "v6": _over(lambda tick: versions.v6(tick, 0, 0), (1 << 62) - 1, versions.gregorian_fields, 16),
    "v7": _over(
        lambda tick: versions.v7(versions.V7_TIME.raw(tick), 0, 0),
        0xFFF << 64 | (1 << 62) - 1,
        versions.v7_fields,
        16,
    ),
    "ulid": _over(lambda tick: ulid.ulid(ulid.TIME.raw(tick), 0), (1 << 80) - 1, ulid.fields, 16),
    "ksuid": _over(
        lambda tick: ksuid.TIME.raw(tick) << 128, (1 << 128) - 1, ksuid.fields, ksuid.BYTES
    ),
    "snowflake": _Order(
        lambda tick, epoch: snowflake.time_field(epoch).raw(tick) << 22,
        lambda tick, epoch: snowflake.time_field(epoch).raw(tick) << 22 | (1 << 22) - 1,
        snowflake.fields,
        8,
    ),
    "flake": _over(
        lambda tick: flake.flake(flake.TIME.raw(tick), 0, 0), (1 << 64) - 1, flake.fields, 16
    ),
    "push_id": _over(
        lambda tick: push_id.push_id(push_id.TIME.raw(tick), 0), (1 << 72) - 1, push_id.fields, 15
    ),
    "cassandra": _Order(
        lambda tick, _epoch: _cassandra(tick, _CASSANDRA_LOW),
        lambda tick, _epoch: _cassandra(tick, _CASSANDRA_HIGH),
        versions.gregorian_fields,
        16,
    ),
}

BOUNDED_KINDS = tuple(_ORDERS)
"""The kinds that have bounds."""


def _order(kind: str) -> _Order:
    return look_up("kind", kind, _ORDERS)
