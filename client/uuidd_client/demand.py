"""How many ticks to ask for: as many as will be used while they are current."""

from __future__ import annotations

from uuidd.core.ids.ticks import TICKS_PER_SECOND
from uuidd.core.wire.methods import MAX_TAKE

LEAST_BLOCK = 64
"""Ticks of the smallest block: 6.4 us of the host's time, less than the round trip they save."""

SPARE = 1.5
"""How much more than the last burst is asked for, for no two bursts are equal."""

AT_ONCE = 0.9
"""The share of max_age that a block may span which is used up at once; the rest is for doing so."""

LEAST_SECONDS = 0.0001
"""What a block lasted at the least, for all that can be told from a few ids drawn at once."""


class Demand:
    """Sizes blocks by the use that was made of the last ones.

    In steady use a block lasts about *max_age* seconds. After a rest it holds a burst like the last
    one: all that was used from one rest to the next, or a *max_age*'s worth of that. No block is
    smaller than 64 ticks, or than *least*, unless *max_age* allows no more than that.
    """

    def __init__(self, max_age: float, *, least: int = 1) -> None:
        self._max_age = max_age
        # A block is as old as its first tick, so half of max_age is the most worth asking for.
        self._most = max(least, min(MAX_TAKE, int(max_age * TICKS_PER_SECOND / 2)))
        self._least = min(max(least, LEAST_BLOCK), self._most)
        self._most_needed = max(
            self._most, min(MAX_TAKE, int(AT_ONCE * max_age * TICKS_PER_SECOND))
        )
        self._came_at: float | None = None
        # Of the current burst: when its first block came, and what was used of all its blocks but
        # the last. *_next* is the same two as they will be once the next block has come.
        self._begun_at: float | None = None
        self._burst = 0
        self._next: tuple[float | None, int] = None, 0

    def size(self, needed: int, used: int, now: float) -> int:
        """Give how many ticks to ask for at *now*, when *used* were since the last block ``came``.

        *needed* are wanted at once; what is beyond the bounds has to be asked for again.
        """
        expected = 0.0
        if self._came_at is not None and self._begun_at is not None:
            burst, since = self._burst + used, now - self._came_at
            if since < self._max_age:
                expected = used * self._max_age / max(since, LEAST_SECONDS)
                self._next = self._begun_at, burst
            else:
                lasted = max(self._came_at - self._begun_at, self._max_age, LEAST_SECONDS)
                expected = SPARE * burst * self._max_age / lasted
                self._next = None, 0
        return max(self._least, min(needed, self._most_needed), min(int(expected), self._most))

    def came(self, now: float) -> None:
        """Note that a block is there. To wait for it, however long, is not to want fewer."""
        begun_at, self._burst = self._next
        self._begun_at = now if begun_at is None else begun_at
        self._came_at = now
