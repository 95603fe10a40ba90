"""Push IDs: 120 bits as 20 characters that sort by time, first made at Firebase.

::

    | Unix milliseconds 48 (8 characters) | random 72 (12 characters) |

In ours the random bits begin with the tick within the millisecond, 14 bits; 8 bits for the lane and
50 that are random follow.
"""

from __future__ import annotations

from uuidd.core.ids.bases import PUSH, check_width, decode, encode
from uuidd.core.ids.checks import check_bits
from uuidd.core.ids.ticks import TIMES, milliseconds
from uuidd.core.typed import NamedTuple

TIME = TIMES["push_id"]

WIDTH = 20
"""Characters of a Push ID."""

RANDOM_BITS = 58
"""Bits after the tick in a Push ID of ours: the lane, and 50 random ones."""


class PushIdFields(NamedTuple):
    """The fields of a Push ID."""

    ms: int
    random: int


def push_id(ms: int, random: int) -> int:
    """Return the 120 bits of the Push ID of Unix milliseconds and 72 bits.

    Raises ValueError, naming field, value and range, if one does not fit.
    """
    return check_bits("ms", ms, 48) << 72 | check_bits("random", random, 72)


def of_tick(tick: int, random: int) -> int:
    """Return the Push ID of a tick and 58 random bits; a later tick gives a higher one."""
    TIME.raw(tick)
    check_bits("random", random, RANDOM_BITS)
    ms, rest = milliseconds(tick)
    return push_id(ms, rest << RANDOM_BITS | random)


def fields(value: int) -> PushIdFields:
    """Return the fields of a Push ID. Raises ValueError if it has more than 120 bits."""
    check_bits("a Push ID", value, 120)
    return PushIdFields(value >> 72, value & (1 << 72) - 1)


def to_text(value: int) -> str:
    """Return the 20 characters of a Push ID."""
    return encode(check_bits("a Push ID", value, 120), PUSH, WIDTH)


def from_text(text: str) -> int:
    """Return the 120 bits of a Push ID's 20 characters.

    Raises ValueError, naming the text, for another length or another character.
    """
    check_width(text, WIDTH, "Push ID")
    return decode(text, PUSH, "Push ID", 120)
