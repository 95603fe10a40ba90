"""How many ticks to ask for: as many as will be used while they are young enough."""

from __future__ import annotations

from uuidd.core.ids.ticks import TICKS_PER_SECOND
from uuidd.core.timeline import MAX_BLOCK

MIN_BLOCK = 64
"""Ticks of the smallest block: 6.4 us of the host's time, less than the round trip they save."""

SPARE = 1.5
"""How many times the last burst is asked for, because no two bursts are equal."""

AT_ONCE = 0.9
"""The share of max_age that a block may span if it is used at once; using it takes the rest."""

MIN_SECONDS = 0.0001
"""The shortest time that a block is taken to have lasted: a few ids drawn at once say little."""


class Demand:
    """The sizes of blocks, by how the last blocks were used.

    In steady use a block lasts about *max_age* seconds. After a pause it holds a burst like the
    last one: all that was used between two pauses, or as much of it as falls into *max_age*. No
    block is smaller than 64 ticks, or than *least*, unless *max_age* allows only fewer.
    """

    def __init__(self, max_age: float, *, least: int = 1) -> None:
        self._max_age = max_age
        # A block is as old as its first tick, so more than half of max_age is not worth asking for.
        self._most = max(least, min(MAX_BLOCK, int(max_age * TICKS_PER_SECOND / 2)))
        self._least = min(max(least, MIN_BLOCK), self._most)
        self._most_needed = max(
            self._most, min(MAX_BLOCK, int(AT_ONCE * max_age * TICKS_PER_SECOND))
        )
        self._came_at: float | None = None
        # Of the current burst: when its first block came, and how many ticks were used of all its
        # blocks except the last. *_next* holds the same two, for when the next block has come.
        self._begun_at: float | None = None
        self._burst = 0
        self._next: tuple[float | None, int] = None, 0

    def size(self, needed: int, used: int, now: float) -> int:
        """Return how many ticks to ask for at *now*, if *used* were used since the last ``came``.

        *needed* are wanted at once. The size may be less; then the rest takes another block.
        """
        expected = 0.0
        if self._came_at is not None and self._begun_at is not None:
            burst, since = self._burst + used, now - self._came_at
            if since < self._max_age:
                expected = used * self._max_age / max(since, MIN_SECONDS)
                self._next = self._begun_at, burst
            else:
                lasted = max(self._came_at - self._begun_at, self._max_age, MIN_SECONDS)
                expected = SPARE * burst * self._max_age / lasted
                self._next = None, 0
        return max(self._least, min(needed, self._most_needed), min(int(expected), self._most))

    def came(self, now: float) -> None:
        """Note that a block has come. The time that it took does not count as a pause."""
        begun_at, self._burst = self._next
        self._begun_at = now if begun_at is None else begun_at
        self._came_at = now
