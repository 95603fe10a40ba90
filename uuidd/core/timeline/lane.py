"""A lane: a strictly growing supply of ticks."""

from __future__ import annotations

from uuidd.core.timeline.outcomes import NoneFree


class Lane:
    """A supply of ticks that gives none twice.

    *next* is the first tick that it has not given out.
    """

    __slots__ = ("next",)

    def __init__(self, begin: int) -> None:
        self.next = begin

    def take(self, count: int, *, now: int, not_before: int = 0) -> tuple[int, int]:
        """Give out the latest free ticks, at most *count* of them and none past *now*.

        None lies before *not_before* either. The result is the first tick and how many: fewer than
        asked when fewer are free, so that no caller can run the clock ahead (RFC 9562, 6.1). When
        the clock stands still or went back there may be none.

        Raises NoneFree, and changes nothing; it says how many ticks to wait for one.
        """
        # Compared by hand, for this runs at each request, and max() takes three times as long.
        end = now + 1
        first = end - count
        if first < self.next:
            first = self.next
        if first < not_before:
            first = not_before
        if first > now:
            raise NoneFree(first - now)
        self.next = end
        return first, end - first
