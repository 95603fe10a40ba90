"""Flakes: 128 bits that sort by time as bytes, first made at Boundary.

::

    | Unix milliseconds 64 | worker, a MAC address 48 | sequence 16 |

Ours carry the node as the worker, and the tick within the millisecond as the sequence.
"""

from __future__ import annotations

from uuidd.core.ids.bases import BASE62, decode, encode
from uuidd.core.ids.checks import check_bits
from uuidd.core.ids.ticks import TIMES, milliseconds
from uuidd.core.typed import NamedTuple

TIME = TIMES["flake"]


class FlakeFields(NamedTuple):
    """The fields of a Flake."""

    ms: int
    node: int
    sequence: int


def flake(ms: int, node: int, sequence: int) -> int:
    """Return the 128 bits of the Flake of Unix milliseconds, a worker's node and a sequence number.

    Raises ValueError, naming field, value and range, if one does not fit.
    """
    check_bits("ms", ms, 64)
    check_bits("node", node, 48)
    return ms << 64 | node << 16 | check_bits("sequence", sequence, 16)


def of_tick(tick: int, node: int) -> int:
    """Return the Flake of a tick and a node."""
    TIME.raw(tick)
    ms, rest = milliseconds(tick)
    return flake(ms, node, rest)


def fields(value: int) -> FlakeFields:
    """Return the fields of a Flake. Raises ValueError if it has more than 128 bits."""
    check_bits("a Flake", value, 128)
    return FlakeFields(value >> 64, value >> 16 & (1 << 48) - 1, value & 0xFFFF)


def to_text(value: int) -> str:
    """Return a Flake in base 62, as its own server does: texts of equal length sort as numbers."""
    return encode(check_bits("a Flake", value, 128), BASE62)


def from_text(text: str) -> int:
    """Return the 128 bits of a Flake's text in base 62. Raises ValueError, naming other texts."""
    return decode(text, BASE62, "Flake", 128)
