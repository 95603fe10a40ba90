"""What every UUID has: 128 bits, a version, a variant, and its text (RFC 9562, 4)."""

from __future__ import annotations

import re

from uuidd.core.ids.checks import check_bits, shown

RFC_VARIANT = 0b10
"""The variant of every UUID that RFC 9562 lays out (4.1); Python's ``uuid`` calls it RFC 4122."""

NIL = 0
MAX = (1 << 128) - 1
"""The UUIDs of all zeros and of all ones (5.9, 5.10)."""

_TEXT = r"[0-9a-f]{8}(-?)[0-9a-f]{4}\1[0-9a-f]{4}\1[0-9a-f]{4}\1[0-9a-f]{12}"
"""The digits of a UUID, with all hyphens or with none. It is compiled when the first is read."""


def stamp(value: int, version: int) -> int:
    """Return *value*, 128 bits, with the version in bits 48-51 and the RFC's variant in 64-65.

    These bits of *value* must be zero.
    """
    return value | version << 76 | RFC_VARIANT << 62


def version(value: int) -> int | None:
    """Return the version of a UUID, or None if its variant is not the RFC's (4.1, 4.2)."""
    check_bits("a UUID", value, 128)
    if value >> 62 & 0b11 != RFC_VARIANT:
        return None
    return value >> 76 & 0xF


def to_text(value: int) -> str:
    """Return the 36 characters of a UUID: 8-4-4-4-12 lower-case hex digits (RFC 9562, 4)."""
    digits = f"{check_bits('a UUID', value, 128):032x}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def from_text(text: str) -> int:
    """Return the 128 bits of a UUID's text.

    The text is 8-4-4-4-12 or 32 hex digits, also in braces or after ``urn:uuid:``, in upper or
    lower case. Raises ValueError, naming the text, for anything else.
    """
    bare = text.strip().lower().removeprefix("urn:uuid:")
    if bare.startswith("{") and bare.endswith("}"):
        bare = bare[1:-1]
    if not re.fullmatch(_TEXT, bare):
        raise ValueError(
            f"{shown(text)} is not a UUID: it takes 32 hex digits, plain or as 8-4-4-4-12"
            " (braces and urn:uuid: are fine)"
        )
    return int(bare.replace("-", ""), 16)


def texts(packed: bytes | bytearray) -> list[str]:
    """Return the texts of the UUIDs in *packed*, 16 bytes each.

    It takes an eighth of the time of ``to_text`` for each.
    """
    digits = packed.hex().encode()
    laid_out = bytearray(b"-" * 36 + b"\n") * (len(packed) // 16)
    for place, position in enumerate(_DIGIT_POSITIONS):
        laid_out[position::37] = digits[place::32]
    return lines(laid_out)


_DIGIT_POSITIONS = [position for position in range(36) if position not in (8, 13, 18, 23)]
"""Where in the text of a UUID its 32 digits are."""


def lines(laid_out: bytearray) -> list[str]:
    """Split ASCII text into its lines; each ends with a newline.

    One split is the fastest way to make many strings.
    """
    found = laid_out.decode("ascii").split("\n")
    found.pop()
    return found


def guid_swapped(value: int) -> int:
    """Return a UUID's bits in the order of bytes in which Microsoft stores it as a GUID, or back.

    The bytes of each of the first three groups are reversed, in memory and in files; the text stays
    the same (RFC 9562, 4). *value* is 128 bits read with the first byte highest.
    """
    raw = check_bits("a GUID", value, 128).to_bytes(16, "big")
    return int.from_bytes(raw[3::-1] + raw[5:3:-1] + raw[7:5:-1] + raw[8:], "big")
