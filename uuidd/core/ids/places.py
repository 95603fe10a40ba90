"""The places on which ids sit, and what an id says beside its place.

For nearly all kinds a *place* is a tick; for Snowflakes, of which a millisecond holds 4,096, it is
a slot. A *run* is a stretch of places of which only the low part changes in an id, so that the ids
of a run can be made at once ("layouts.py").
"""

from __future__ import annotations

from collections.abc import Callable

from uuidd.core.ids import snowflake
from uuidd.core.ids.snowflake import TWITTER_EPOCH
from uuidd.core.typed import NamedTuple

RUN = 1 << 12
"""Ticks of a run of v1 or v6. Within one only the last part of v1's ``time_low`` changes, which is
v6's ``time_low``."""


class Origin(NamedTuple):
    """What an id says beside its time and its random bits: where it was made.

    v1 and v6 have *clock_seq* and *node*, Flakes *node*. Snowflakes have *worker*, which is None if
    the daemon has no worker number, and count from *epoch*, in Unix milliseconds. The kinds that
    end in random bits, except v4, have *lane*, 0 to 255; None stands for 8 more random bits.
    """

    node: int
    clock_seq: int = 0
    worker: int | None = None
    epoch: int = TWITTER_EPOCH
    lane: int | None = 0


class Places(NamedTuple):
    """The places of a kind.

    *room* returns the number of places from one to the end of its run, *places* the half-open range
    of places on some ticks, and *ticks* the number of ticks that hold at least that many places.
    *random*: an id has random bits, so a place gives another id each time.
    """

    room: Callable[[int], int]
    places: Callable[[int, int], tuple[int, int]]
    ticks: Callable[[int], int]
    random: bool


def in_runs(length: int, *, random: bool) -> Places:
    """Return the places of a kind each of whose places is a tick, in runs of *length* ticks."""
    return Places(
        # A run begins at tick 0; so do seconds and milliseconds, also those of Unix time.
        lambda first: length - first % length,
        lambda first, count: (first, first + count),
        lambda count: count,
        random,
    )


SLOTS = Places(
    lambda place: snowflake.SLOTS - place % snowflake.SLOTS,
    snowflake.places,
    snowflake.ticks_for,
    random=False,
)
"""The places of Snowflakes."""
