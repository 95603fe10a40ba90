"""What every UUID has: 128 bits, a version, a variant, and its text (RFC 9562, 4)."""

from __future__ import annotations

import re

from uuidd.core.ids.fields import check
from uuidd.core.ids.shown import shown

RFC_VARIANT = 0b10
"""The variant of every UUID that RFC 9562 lays out (4.1); Python's ``uuid`` calls it RFC 4122."""

NIL = 0
MAX = (1 << 128) - 1
"""The UUIDs of all zeros and of all ones (5.9, 5.10)."""

_HEX = re.compile(r"[0-9a-f]{32}\Z")
_HYPHENATED = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z")


def stamp(value: int, version: int) -> int:
    """Give *value*, 128 bits, with the version and the RFC's variant put over bits 48-51 and 64-65.

    The fields must have left those bits zero.
    """
    return value | version << 76 | RFC_VARIANT << 62


def version(value: int) -> int | None:
    """Give the version of a 128-bit UUID, None when its variant is not the RFC's (4.1, 4.2)."""
    check("a UUID", value, 128)
    if value >> 62 & 0b11 != RFC_VARIANT:
        return None
    return value >> 76 & 0xF


def to_text(value: int) -> str:
    """Give the 36 characters of a UUID: 8-4-4-4-12 lower-case hex digits (RFC 9562, 4)."""
    digits = f"{check('a UUID', value, 128):032x}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def texts(packed: bytes | bytearray) -> list[str]:
    """Give the texts of as many UUIDs as *packed* has 16 bytes for, at an eighth of the time."""
    digits = packed.hex().encode()
    laid_out = bytearray(b"-" * 36 + b"\n") * (len(packed) // 16)
    for place, column in enumerate(_COLUMNS):
        laid_out[column::37] = digits[place::32]
    return lines(laid_out)


def lines(laid_out: bytearray) -> list[str]:
    """Give the lines of ASCII text, each of which has an end: the fastest way to many texts."""
    found = laid_out.decode("ascii").split("\n")
    found.pop()
    return found


_COLUMNS = [column for column in range(36) if column not in (8, 13, 18, 23)]
"""Where in the text of a UUID its 32 digits stand."""


def from_text(text: str) -> int:
    """Give the 128 bits of a UUID's text.

    Taken are 8-4-4-4-12 and 32 hex digits, either in braces or after ``urn:uuid:``, in upper or
    lower case. Raises ValueError, naming the text, for anything else.
    """
    bare = text.strip().lower().removeprefix("urn:uuid:")
    if bare.startswith("{") and bare.endswith("}"):
        bare = bare[1:-1]
    if not (_HYPHENATED.match(bare) or _HEX.match(bare)):
        raise ValueError(
            f"{shown(text)} is no UUID: it takes 32 hex digits, plain or as 8-4-4-4-12"
            " (braces and urn:uuid: are fine)"
        )
    return int(bare.replace("-", ""), 16)
