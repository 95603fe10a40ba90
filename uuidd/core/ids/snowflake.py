"""Snowflakes: 63 bits that sort by time as integers, first made at Twitter.

::

    | 0 | milliseconds since an epoch 41 | worker 10 | sequence 12 |

Twitter splits the worker number into two halves of 5 bits, ``datacenter_id`` and ``worker_id``.

We put each sequence number, a *slot*, on one tick of the millisecond: slot s on tick
ceil(s * 10000 / 4096). So any three ticks in a row hold at least one slot, and the Snowflakes of
one per millisecond do not all have sequence 0.
"""

from __future__ import annotations

from uuidd.core.ids.checks import check_bits, shown
from uuidd.core.ids.ticks import TICKS_PER_MS, UNIX_EPOCH, TimeField, unix_field

TWITTER_EPOCH = 1_288_834_974_657
"""2010-11-04T01:42:54.657Z, in Unix milliseconds."""

TIME_BITS, WORKER_BITS, SEQUENCE_BITS = 41, 10, 12
WORKER_ID_BITS = 5
"""Bits of each half of the worker number."""

SLOTS = 1 << SEQUENCE_BITS

EPOCH_BITS = 48
"""Bits of an epoch in Unix milliseconds: as many as the time of a v7 or a ULID has."""


def time_field(epoch: int = TWITTER_EPOCH) -> TimeField:
    """Return the time field of Snowflakes whose epoch is at *epoch*, in Unix milliseconds."""
    return unix_field("snowflake", TICKS_PER_MS, TIME_BITS, epoch_ms=epoch)


def worker_from_halves(datacenter_id: int, worker_id: int) -> int:
    """Return the worker number of its two halves.

    Raises ValueError if one does not fit, under the name that callers use: datacenter or worker.
    """
    high = check_bits("datacenter", datacenter_id, WORKER_ID_BITS)
    return high << WORKER_ID_BITS | check_bits("worker", worker_id, WORKER_ID_BITS)


def place_from(tick: int) -> int:
    """Return the first place at or past *tick*.

    A *place* is a slot counted from the Unix epoch: milliseconds * 4096 + slot.
    """
    ms, rest = divmod(tick - UNIX_EPOCH, TICKS_PER_MS)
    # A slot on tick ceil(s * 10000 / 4096) is at or past rest if s > (rest - 1) * 4096 / 10000.
    return (ms << SEQUENCE_BITS) + (rest - 1) * SLOTS // TICKS_PER_MS + 1


def places(first: int, count: int) -> tuple[int, int]:
    """Return the half-open range of places on ticks ``first .. first + count``; it may be empty."""
    return place_from(first), place_from(first + count)


def ticks_for(count: int) -> int:
    """Return how many ticks in a row always hold at least *count* places."""
    return -(-count * TICKS_PER_MS // SLOTS)


def of_place(place: int, worker: int, *, epoch: int = TWITTER_EPOCH) -> int:
    """Return the Snowflake of a place.

    Raises ValueError, naming field, value and range, if the worker or the milliseconds do not fit;
    TypeError if the worker or the epoch is not an int.
    """
    check_bits("worker", worker, WORKER_BITS)
    ms, slot = place >> SEQUENCE_BITS, place & SLOTS - 1
    if type(epoch) is not int:
        raise TypeError(f"epoch is {shown(epoch)}; it must be an int")
    if not 0 <= ms - epoch < 1 << TIME_BITS:
        last = epoch + (1 << TIME_BITS) - 1
        raise ValueError(f"ms is {shown(ms)}; with epoch {epoch} it must be {epoch} to {last}")
    return (ms - epoch) << 22 | worker << SEQUENCE_BITS | slot


def tick_of_place(place: int) -> int:
    """Return the tick that a place is on."""
    ms, slot = place >> SEQUENCE_BITS, place & SLOTS - 1
    return UNIX_EPOCH + ms * TICKS_PER_MS - (-slot * TICKS_PER_MS // SLOTS)
