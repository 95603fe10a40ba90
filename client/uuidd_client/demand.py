"""How many ticks to ask for: as many as will be used while they are current."""

from __future__ import annotations

from uuidd.core.ids.timebased import TICKS_PER_SECOND

MAX_BLOCK = 1_000_000
"""The most that a daemon gives at once."""


AT_ONCE = 0.9
"""The share of max_age that a block may span which is used up at once; the rest is for doing so."""

LEAST_SECONDS = 0.0001
"""What a block lasted at the least, for all that can be told from a few ids drawn at once."""


class Demand:
    """Sizes blocks by the rate at which the last one was used, to last about *max_age* seconds.

    The first block is of *least* ticks, mostly one: many programs make one id, and end.
    """

    def __init__(self, max_age: float, *, least: int = 1) -> None:
        self._max_age = max_age
        self._least = least
        # A block is as old as its first tick, so half of max_age is the most worth asking for.
        self._most = max(least, min(MAX_BLOCK, int(max_age * TICKS_PER_SECOND / 2)))
        self._most_needed = max(
            self._most, min(MAX_BLOCK, int(AT_ONCE * max_age * TICKS_PER_SECOND))
        )
        self._came_at: float | None = None

    def size(self, needed: int, used: int, now: float) -> int:
        """Give how many ticks to ask for at *now*, when *used* were since the last block ``came``.

        *needed* are wanted at once; what is beyond the bounds has to be asked for again.
        """
        expected = 0.0
        if self._came_at is not None:
            expected = used * self._max_age / max(now - self._came_at, LEAST_SECONDS)
        return max(self._least, min(needed, self._most_needed), min(int(expected), self._most))

    def came(self, now: float) -> None:
        """Note that a block is there. To wait for it, however long, is not to want fewer."""
        self._came_at = now
