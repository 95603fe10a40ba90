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


def v4_texts(random: bytes) -> list[str]:
    """Give the texts of as many v4 UUIDs as *random* has 16 bytes for, in a third of the time.

    Six bits of each 16 bytes are given up for version and variant.
    """
    digits = random.hex()
    return [
        f"{digits[at : at + 8]}-{digits[at + 8 : at + 12]}-4{digits[at + 13 : at + 16]}"
        f"-{_VARIANT[digits[at + 16]]}{digits[at + 17 : at + 20]}-{digits[at + 20 : at + 32]}"
        for at in range(0, len(digits) - 31, 32)
    ]


_VARIANT = {f"{digit:x}": f"{0b1000 | digit & 0b11:x}" for digit in range(16)}
"""The digit that holds the variant and two random bits, by the digit that had four."""
