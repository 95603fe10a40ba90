"""Nodes: the 48 bits that say where an id was made, and their text as a MAC address."""

from __future__ import annotations

from collections.abc import Callable

from uuidd.core.ids.checks import check_bits, shown

RandomBits = Callable[[int], int]
"""Returns an int of as many random bits as asked for."""

NODE_BITS = 48

MULTICAST = 1 << 40
"""The bit that is 0 in every network card's address and 1 in a random node (RFC 9562, 6.10)."""

_HEX = frozenset("0123456789abcdef")


def node(given: int | str) -> int:
    """Return the 48 bits of a node.

    *given* is an int, or text: 44:88:99:36:57:32, 44-88-99-36-57-32, or 12 hex digits, plain or
    after ``0x``. Raises ValueError, naming the value and the forms, for anything else.
    """
    if not isinstance(given, str):
        return check_bits("node", given, NODE_BITS)
    text = given.strip().lower()
    if text[2::3] in (":::::", "-----"):
        digits = text.replace(text[2], "")
    else:
        digits = text.removeprefix("0x")
    if len(digits) != 12 or not _HEX.issuperset(digits):
        raise ValueError(
            f"node is {shown(given)}; it must be six octets in hex, as 44:88:99:36:57:32, or an int"
        )
    return int(digits, 16)


def random_node(random: RandomBits) -> int:
    """Return a node of 47 random bits and the multicast bit (RFC 9562, 6.10)."""
    return random(NODE_BITS) | MULTICAST


def to_text(value: int) -> str:
    """Return a node as a MAC address, with colons."""
    octets = check_bits("node", value, NODE_BITS).to_bytes(6, "big")
    return octets.hex(":")
