"""ULIDs: 128 bits that sort by time, as bytes and as 26 characters in Crockford's base 32.

::

    | Unix milliseconds 48 | random 80 |

In ours the random bits begin with the tick within the millisecond, 14 bits; 8 bits for the lane and
58 that are random follow.
A ULID and a UUID both have 128 bits, so one converts to the other by its text alone.
"""

from __future__ import annotations

from uuidd.core.ids.bases import CROCKFORD, check_width, decode, encode
from uuidd.core.ids.checks import check_bits
from uuidd.core.ids.ticks import TIMES, milliseconds
from uuidd.core.typed import NamedTuple

TIME = TIMES["ulid"]

WIDTH = 26
"""Characters of a ULID. They have 130 bits, so the first is 7 at most."""

RANDOM_BITS = 66
"""Bits after the tick in a ULID of ours: the lane, and 58 random ones."""


class UlidFields(NamedTuple):
    """The fields of a ULID."""

    ms: int
    random: int


def ulid(ms: int, random: int) -> int:
    """Return the 128 bits of the ULID of Unix milliseconds and 80 bits.

    Raises ValueError, naming field, value and range, if one does not fit.
    """
    return check_bits("ms", ms, 48) << 80 | check_bits("random", random, 80)


def of_tick(tick: int, random: int) -> int:
    """Return the ULID of a tick and 66 random bits; a later tick gives a higher one."""
    TIME.raw(tick)
    check_bits("random", random, RANDOM_BITS)
    ms, rest = milliseconds(tick)
    return ulid(ms, rest << RANDOM_BITS | random)


def fields(value: int) -> UlidFields:
    """Return the fields of a ULID. Raises ValueError if it has more than 128 bits."""
    check_bits("a ULID", value, 128)
    return UlidFields(value >> 80, value & (1 << 80) - 1)


def to_text(value: int) -> str:
    """Return the 26 characters of a ULID."""
    return encode(check_bits("a ULID", value, 128), CROCKFORD, WIDTH)


def from_text(text: str) -> int:
    """Return the 128 bits of a ULID's 26 characters, in upper or lower case.

    Raises ValueError, naming the text, for another length, another character, or one above the
    highest ULID, 7ZZZZZZZZZZZZZZZZZZZZZZZZZ.
    """
    check_width(text, WIDTH, "ULID")
    # Only ASCII, because upper() turns a long s into S, and a sharp s into SS.
    return decode(text.upper() if text.isascii() else text, CROCKFORD, "ULID", 128)
