"""v7: Unix milliseconds first, so that ids sort by time as bytes (RFC 9562, 5.7).

::

    v7  | unix_ts_ms 48 | ver 4 | rand_a 12 | var 2 | rand_b 62 |

Ours carry the tick within the millisecond, 14 bits, in ``rand_a`` and the top 2 bits of ``rand_b``
(RFC 9562, 6.2, method 3, unscaled), and 60 random bits after it.
"""

from __future__ import annotations

from typing import NamedTuple

from uuidd.core.ids import uuids
from uuidd.core.ids.fields import check
from uuidd.core.ids.timefield import TICKS_PER_MS, milliseconds, unix

TIME = unix("v7", TICKS_PER_MS, 48)

RANDOM_BITS = 60


class V7Fields(NamedTuple):
    """What a v7 is made of: Unix milliseconds, and the two fields that its maker may fill."""

    ms: int
    rand_a: int
    rand_b: int


def v7(ms: int, rand_a: int, rand_b: int) -> int:
    """Give the 128 bits of the v7 UUID of Unix milliseconds, 12 bits and 62 bits.

    Raises ValueError, naming field, value and range, when one does not fit.
    """
    check("ms", ms, 48)
    check("rand_a", rand_a, 12)
    check("rand_b", rand_b, 62)
    return uuids.stamp(ms << 80 | rand_a << 64 | rand_b, 7)


def of_tick(tick: int, random: int) -> int:
    """Give the v7 UUID of a tick and 60 random bits; of two ticks the later gives the higher."""
    TIME.raw(tick)
    check("random", random, RANDOM_BITS)
    ms, rest = milliseconds(tick)
    return v7(ms, rest >> 2, (rest & 0b11) << RANDOM_BITS | random)


def fields(value: int) -> V7Fields:
    """Give the fields of a v7 UUID. ValueError, naming the UUID, if it is none."""
    if uuids.version(value) != 7:
        raise ValueError(f"{uuids.to_text(value)} is no v7")
    return V7Fields(value >> 80, value >> 64 & 0xFFF, value & (1 << 62) - 1)


def tick_of(value: int) -> int:
    """Give the tick of a v7 UUID that ``of_tick`` made; of another's, one in its millisecond.

    Raises ValueError when the 14 bits hold no tick of a millisecond: it is not ours then.
    """
    found = fields(value)
    rest = found.rand_a << 2 | found.rand_b >> RANDOM_BITS
    if rest >= TICKS_PER_MS:
        raise ValueError(f"{uuids.to_text(value)} carries no tick: {rest} is not 0 to 9999")
    return TIME.tick(found.ms) + rest
