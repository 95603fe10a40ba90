"""v8: 122 bits that mean what their maker says (RFC 9562, 5.8)."""

from __future__ import annotations

from uuidd.core.ids import uuids
from uuidd.core.ids.fields import check


def v8(custom_a: int, custom_b: int, custom_c: int) -> int:
    """Give the v8 UUID of 48, 12 and 62 bits of the caller's.

    Raises ValueError, naming field, value and range, when one does not fit.
    """
    check("custom_a", custom_a, 48)
    check("custom_b", custom_b, 12)
    check("custom_c", custom_c, 62)
    return uuids.stamp(custom_a << 80 | custom_b << 64 | custom_c, 8)


def fields(value: int) -> tuple[int, int, int]:
    """Give the 48, 12 and 62 bits of a v8 UUID. ValueError if it is no v8."""
    if uuids.version(value) != 8:
        raise ValueError(f"{uuids.to_text(value)} is no v8")
    return value >> 80, value >> 64 & 0xFFF, value & (1 << 62) - 1
