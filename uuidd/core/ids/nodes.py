"""Nodes as people write them: MAC addresses."""

from __future__ import annotations

import re

from uuidd.core.ids.fields import check
from uuidd.core.ids.shown import shown
from uuidd.core.ids.timebased import NODE_BITS

_TEXT = re.compile(r"[0-9a-f]{2}([:-])[0-9a-f]{2}(?:\1[0-9a-f]{2}){4}\Z")
_HEX = re.compile(r"(?:0x)?[0-9a-f]{12}\Z")


def node(given: int | str) -> int:
    """Give the 48 bits of a node: an int, or text as 44:88:99:36:57:32, 44-88-... or 12 hex digits.

    Raises ValueError, naming the value and what it may be, for anything else.
    """
    if not isinstance(given, str):
        return check("node", given, NODE_BITS)
    text = given.strip().lower()
    if not (_TEXT.match(text) or _HEX.match(text)):
        raise ValueError(
            f"node is {shown(given)}; it must be six octets in hex, as 44:88:99:36:57:32, or an int"
        )
    return int(text.removeprefix("0x").replace(":", "").replace("-", ""), 16)


def to_text(value: int) -> str:
    """Give a node as a MAC address, with colons."""
    return ":".join(f"{octet:02x}" for octet in check("node", value, NODE_BITS).to_bytes(6, "big"))
