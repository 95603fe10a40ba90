"""UUIDs of a version: those that are made of fields, or of a name (RFC 9562, 5).

``kinds.py`` says which bits are which field. A function raises ValueError, naming field, value and
range, if a field does not fit; and naming the UUID, if that is of another version.
"""

from __future__ import annotations

from functools import lru_cache

from uuidd.core.ids import uuids
from uuidd.core.ids.checks import check_bits
from uuidd.core.ids.kinds import KINDS
from uuidd.core.ids.nodes import NODE_BITS
from uuidd.core.ids.ticks import TICK_BITS

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


def gregorian(kind: str, tick: int, clock_seq: int, node: int) -> int:
    """Return the 128 bits of the v1 or v6 UUID of these fields (RFC 9562, 5.1 and 5.6)."""
    timestamp = KINDS[kind].put("timestamp", check_bits("tick", tick, TICK_BITS))
    return timestamp | _gregorian_rest(kind, clock_seq, node)


# Kept, because nearly all ids of a daemon have one clock sequence and node. By type, because True
# equals 1.
@lru_cache(maxsize=64, typed=True)
def _gregorian_rest(kind: str, clock_seq: int, node: int) -> int:
    return KINDS[kind].pack(0, clock_seq, node)


def v1_to_v6(value: int) -> int:
    """Return the v6 UUID of the fields of a v1."""
    if uuids.version(value) != 1:
        raise ValueError(f"{uuids.to_text(value)} is not a v1")
    # Piece by piece, because callers sort long lists by it.
    high = value >> 64
    tick = (high & 0xFFF) << 48 | (high >> 16 & 0xFFFF) << 32 | high >> 32
    rest = value & (1 << CLOCK_SEQ_BITS + NODE_BITS) - 1
    return uuids.stamp(tick >> 12 << 80 | (tick & 0xFFF) << 64 | rest, 6)


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
