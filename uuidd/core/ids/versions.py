"""UUIDs of a version: those that are made of fields, or of a name (RFC 9562, 5).

``kinds.py`` says which bits are which field.

A function that builds a UUID raises ValueError, naming field, value and range, if a field does not
fit. A function that reads one raises ValueError, naming the UUID, if it is of another version.
"""

from __future__ import annotations

from functools import lru_cache

from uuidd.core.ids import uuids
from uuidd.core.ids.checks import check_bits
from uuidd.core.ids.nodes import NODE_BITS
from uuidd.core.ids.ticks import TICK_BITS
from uuidd.core.typed import NamedTuple

CLOCK_SEQ_BITS = 14

LANE_BITS = 8
"""Bits of a lane, of which no two make ids of the same tick. It is in the low bits of our clock
sequences; in ids without one that end in random bits it comes right after the tick."""

NAMESPACES = {
    "dns": 0x6BA7B810_9DAD_11D1_80B4_00C04FD430C8,
    "url": 0x6BA7B811_9DAD_11D1_80B4_00C04FD430C8,
    "oid": 0x6BA7B812_9DAD_11D1_80B4_00C04FD430C8,
    "x500": 0x6BA7B814_9DAD_11D1_80B4_00C04FD430C8,
}
"""The namespaces of v3 and v5 that have names (RFC 9562, 6.6)."""


class GregorianFields(NamedTuple):
    """The fields of a v1 or v6. The tick counts from 1582-10-15, as the Gregorian calendar does."""

    tick: int
    clock_seq: int
    node: int


def v1(tick: int, clock_seq: int, node: int) -> int:
    """Return the 128 bits of the v1 UUID of these fields (RFC 9562, 5.1)."""
    check_bits("tick", tick, TICK_BITS)
    time_low, time_mid, time_high = tick & 0xFFFF_FFFF, tick >> 32 & 0xFFFF, tick >> 48
    return uuids.stamp(
        time_low << 96 | time_mid << 80 | time_high << 64 | _gregorian_tail(clock_seq, node), 1
    )


def v6(tick: int, clock_seq: int, node: int) -> int:
    """Return the 128 bits of the v6 UUID of these fields (RFC 9562, 5.6).

    The highest bits of the tick come first, so v6 UUIDs sort by time as bytes.
    """
    check_bits("tick", tick, TICK_BITS)
    return uuids.stamp(
        tick >> 12 << 80 | (tick & 0xFFF) << 64 | _gregorian_tail(clock_seq, node), 6
    )


# Kept, because nearly all ids of a daemon have one clock sequence and node. By type, because True
# equals 1.
@lru_cache(maxsize=64, typed=True)
def _gregorian_tail(clock_seq: int, node: int) -> int:
    check_bits("clock_seq", clock_seq, CLOCK_SEQ_BITS)
    check_bits("node", node, NODE_BITS)
    return clock_seq << NODE_BITS | node


def gregorian_fields(value: int) -> GregorianFields:
    """Return the tick, clock sequence and node of a v1 or v6 UUID."""
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
    return GregorianFields(tick, value >> NODE_BITS & 0x3FFF, value & 0xFFFF_FFFF_FFFF)


def v1_to_v6(value: int) -> int:
    """Return the v6 UUID of the fields of a v1."""
    if uuids.version(value) != 1:
        raise ValueError(f"{uuids.to_text(value)} is not a v1")
    return v6(*gregorian_fields(value))


def v3(namespace: int, name: str | bytes) -> int:
    """Return the v3 UUID, by MD5, of a name (text in UTF-8) in a namespace, itself a UUID."""
    return _digest("md5", namespace, name, 3)


def v5(namespace: int, name: str | bytes) -> int:
    """Return the v5 UUID, by SHA-1, of a name (text in UTF-8) in a namespace, itself a UUID."""
    return _digest("sha1", namespace, name, 5)


def _digest(algorithm: str, namespace: int, name: str | bytes, version: int) -> int:
    # Only here, because the client imports this module before its first id.
    import hashlib

    head = check_bits("namespace", namespace, 128).to_bytes(16, "big")
    data = head + (name.encode() if isinstance(name, str) else name)
    digest = hashlib.new(algorithm, data, usedforsecurity=False).digest()
    value = int.from_bytes(digest[:16], "big")
    return uuids.stamp(value & ~(0xF << 76 | 0b11 << 62), version)


def namespace(text: str) -> int:
    """Return the namespace that *text* names (dns, url, oid, x500, in any case) or is the UUID of.

    Raises ValueError, naming the text, for anything else.
    """
    known = NAMESPACES.get(text.lower())
    if known is not None:
        return known
    try:
        return uuids.from_text(text)
    except ValueError:
        raise ValueError(
            f"namespace is {text!r}; it must be a UUID or one of {', '.join(NAMESPACES)}"
        ) from None
