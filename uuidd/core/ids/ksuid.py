"""KSUIDs: 160 bits that sort by second, as bytes and as text, first made at Segment.

::

    | seconds since 2014-05-13T16:53:20Z 32 | payload 128 |

In ours the payload begins with the tick within the second, 24 bits; 8 bits for the lane and 96
random ones follow.
"""

from __future__ import annotations

from uuidd.core.ids.bases import BASE62, check_width, decode, encode
from uuidd.core.ids.checks import check_bits, shown
from uuidd.core.ids.ticks import TICKS_PER_SECOND, TIMES, UNIX_EPOCH
from uuidd.core.typed import NamedTuple

EPOCH = 1_400_000_000
"""2014-05-13T16:53:20Z, in Unix seconds."""

TIME = TIMES["ksuid"]

BYTES, WIDTH = 20, 27
"""Bytes and characters of a KSUID."""

TICK_BITS, RANDOM_BITS = 24, 104
"""Bits of the tick in a KSUID of ours, and those after it: the lane, and 96 random ones."""


class KsuidFields(NamedTuple):
    """The fields of a KSUID: seconds since its epoch, and 128 bits."""

    timestamp: int
    payload: int

    @property
    def seconds(self) -> int:
        """The time in Unix seconds."""
        return EPOCH + self.timestamp


def ksuid(seconds: int, payload: int) -> int:
    """Return the 160 bits of the KSUID of Unix seconds and a payload of 128 bits.

    Raises ValueError, naming field, value and range, if one does not fit.
    """
    check_bits("payload", payload, 128)
    if type(seconds) is not int:
        raise TypeError(f"seconds is {shown(seconds)}; it must be an int")
    if not 0 <= seconds - EPOCH < 1 << 32:
        last = EPOCH + (1 << 32) - 1
        raise ValueError(f"seconds is {shown(seconds)}; it must be {EPOCH} to {last}")
    return seconds - EPOCH << 128 | payload


def of_tick(tick: int, random: int) -> int:
    """Return the KSUID of a tick and 104 random bits; a later tick gives a higher one."""
    TIME.raw(tick)
    check_bits("random", random, RANDOM_BITS)
    seconds, rest = divmod(tick - UNIX_EPOCH, TICKS_PER_SECOND)
    return ksuid(seconds, rest << RANDOM_BITS | random)


def fields(value: int) -> KsuidFields:
    """Return the fields of a KSUID. Raises ValueError if it has more than 160 bits."""
    check_bits("a KSUID", value, 160)
    return KsuidFields(value >> 128, value & (1 << 128) - 1)


def to_text(value: int) -> str:
    """Return the 27 characters of a KSUID."""
    return encode(check_bits("a KSUID", value, 160), BASE62, WIDTH)


def from_text(text: str) -> int:
    """Return the 160 bits of a KSUID's 27 characters.

    Raises ValueError, naming the text, for another length, another character, or one above the
    highest KSUID, aWgEPTl1tmebfsQzFP4bxwgy80V.
    """
    check_width(text, WIDTH, "KSUID")
    return decode(text, BASE62, "KSUID", 160)
