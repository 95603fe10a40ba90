"""v1 and v6: a tick, a clock sequence and a node (RFC 9562, 5.1 and 5.6).

Both carry the same 60 + 14 + 48 bits; v6 puts the tick's highest bits first, so that ids sort
by time as bytes.

::

    v1  |  time_low 32  | time_mid 16 | ver 4 | time_high 12 | var 2 | clock_seq 14 | node 48 |
    v6  | time_high 32  | time_mid 16 | ver 4 | time_low 12  | var 2 | clock_seq 14 | node 48 |
"""

from __future__ import annotations

from typing import NamedTuple

from uuidd.core.ids import uuids
from uuidd.core.ids.fields import check

TICK_BITS = 60
CLOCK_SEQ_BITS = 14
NODE_BITS = 48

TICKS_PER_SECOND = 10_000_000
"""A tick is 100 ns (RFC 9562, 5.1)."""

UNIX_EPOCH = 0x01B21DD213814000
"""The tick of 1970-01-01T00:00:00Z; ticks count from 1582-10-15T00:00:00Z (RFC 9562, 5.1)."""

MULTICAST = 1 << 40
"""The bit that no network card's address has set: it marks a node as random (RFC 9562, 6.10)."""


class TimeFields(NamedTuple):
    """What a time-based UUID is made of: a tick, a clock sequence and a node, each an int."""

    tick: int
    clock_seq: int
    node: int


def v1(tick: int, clock_seq: int, node: int) -> int:
    """Give the 128 bits of the v1 UUID of these fields.

    Raises ValueError, naming field, value and range, when a field does not fit.
    """
    check("tick", tick, TICK_BITS)
    time_low, time_mid, time_high = tick & 0xFFFF_FFFF, tick >> 32 & 0xFFFF, tick >> 48
    return uuids.stamp(
        time_low << 96 | time_mid << 80 | time_high << 64 | _tail(clock_seq, node), 1
    )


def v6(tick: int, clock_seq: int, node: int) -> int:
    """Give the 128 bits of the v6 UUID of these fields.

    Raises ValueError, naming field, value and range, when a field does not fit.
    """
    check("tick", tick, TICK_BITS)
    return uuids.stamp(tick >> 12 << 80 | (tick & 0xFFF) << 64 | _tail(clock_seq, node), 6)


def fields(value: int) -> TimeFields:
    """Give the tick, clock sequence and node of a v1 or v6 UUID.

    Raises ValueError, naming the UUID and what it is instead, for any other.
    """
    version = uuids.version(value)
    high = value >> 64
    if version == 1:
        tick = (high & 0xFFF) << 48 | (high >> 16 & 0xFFFF) << 32 | high >> 32
    elif version == 6:
        tick = high >> 16 << 12 | high & 0xFFF
    else:
        found = "of another variant" if version is None else f"a v{version}"
        raise ValueError(
            f"{uuids.to_text(value)} is {found}; only v1 and v6 carry tick, clock_seq and node"
        )
    return TimeFields(tick, value >> NODE_BITS & 0x3FFF, value & 0xFFFF_FFFF_FFFF)


def v1_to_v6(value: int) -> int:
    """Give the v6 UUID of the same tick, clock sequence and node. ValueError if it is no v1."""
    _require(value, 1)
    return v6(*fields(value))


def v6_to_v1(value: int) -> int:
    """Give the v1 UUID of the same tick, clock sequence and node. ValueError if it is no v6."""
    _require(value, 6)
    return v1(*fields(value))


def _tail(clock_seq: int, node: int) -> int:
    check("clock_seq", clock_seq, CLOCK_SEQ_BITS)
    check("node", node, NODE_BITS)
    return clock_seq << NODE_BITS | node


def _require(value: int, version: int) -> None:
    if uuids.version(value) != version:
        raise ValueError(f"{uuids.to_text(value)} is no v{version}")
