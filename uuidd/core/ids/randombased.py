"""v4: 122 random bits (RFC 9562, 5.4)."""

from __future__ import annotations

from uuidd.core.ids import uuids
from uuidd.core.ids.fields import check

RANDOM_BITS = 122


def v4(random: int) -> int:
    """Give the 128 bits of the v4 UUID with these 122 random bits, highest first.

    Raises ValueError when there are more than 122.
    """
    check("random", random, RANDOM_BITS)
    return uuids.stamp(
        random >> 74 << 80 | (random >> 62 & 0xFFF) << 64 | random & (1 << 62) - 1, 4
    )


def v4_bits(value: int) -> int:
    """Give the 122 random bits of a v4 UUID, highest first. ValueError if it is no v4."""
    if uuids.version(value) != 4:
        raise ValueError(f"{uuids.to_text(value)} is no v4")
    return value >> 80 << 74 | (value >> 64 & 0xFFF) << 62 | value & (1 << 62) - 1
