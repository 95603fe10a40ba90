"""The horizon: the tick up to which ids may be given out, given what the disk may hold.

Theory of operation

1. A mark in the saved state says: everything given out lies below it. The next start gives out
   nothing below the mark that it finds, so an id below it cannot come twice.
2. A crash can happen at any moment, and the next start finds either the last save that completed or
   one that was in flight. So nothing is given out at or past the lower of their marks.
3. A save that failed may have reached the disk all the same: its rename may have been done before
   the error. It counts as in flight until a later save completes, which replaces it on the disk.
4. A save that has only begun can therefore lower the horizon, but only a completed save raises it.
5. Saves can become void: the folder that holds them was moved away, and a start would not find
   them. Then nothing is given out until a later save completes.
"""

from __future__ import annotations


class Horizon:
    """The horizon of one supply of ticks.

    *saved* is its mark in the last completed save, *in_flight* the lowest of those that may have
    reached the disk since, None if there is none. *limit* is the first tick that may not be given
    out; 0 lets none be given out.
    """

    __slots__ = ("in_flight", "limit", "saved")

    def __init__(self, saved: int = 0, in_flight: int | None = None) -> None:
        self.saved = saved
        self.in_flight = in_flight
        self.limit = saved if in_flight is None else min(saved, in_flight)

    def begin_save(self, mark: int) -> None:
        """Count *mark* as possibly on the disk from now on.

        One save at a time: ``end_save`` comes before the next ``begin_save``.
        """
        lowest = mark if self.in_flight is None else min(self.in_flight, mark)
        self.in_flight = lowest
        self.limit = min(self.saved, lowest)

    def end_save(self, mark: int, *, completed: bool) -> None:
        """Take note of how the save of *mark* ended; a failed one still counts as in flight."""
        if completed:
            self.saved = self.limit = mark
            self.in_flight = None

    @property
    def highest(self) -> int:
        """The tick before which all lies that a copy of this process may have given out.

        That is so as long as the copy has begun no other save.
        """
        return max(self.saved, self.in_flight or 0)

    def void(self) -> None:
        """Let nothing be given out before a later save completes."""
        self.saved = self.limit = 0
