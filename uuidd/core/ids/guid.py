"""GUIDs as Microsoft keeps them: the bytes of the first three groups are turned round.

The same id has the same text; only its 16 bytes differ, in memory and in files (RFC 9562, 4).
"""

from __future__ import annotations

from uuidd.core.ids.fields import check


def swapped(value: int) -> int:
    """Give the UUID whose GUID bytes these are, or the GUID bytes of this UUID: it is the same.

    *value* is 128 bits read with the first byte highest.
    """
    raw = check("a GUID", value, 128).to_bytes(16, "big")
    return int.from_bytes(raw[3::-1] + raw[5:3:-1] + raw[7:5:-1] + raw[8:], "big")
