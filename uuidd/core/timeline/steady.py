"""The steady timeline: ticks for kinds with no clock sequence to save them.

It never goes back, not across restarts either: see the package's theory of operation.
"""

from __future__ import annotations

from typing import Literal

from uuidd.core.ids.ticks import TICKS_PER_SECOND
from uuidd.core.timeline.horizon import Horizon
from uuidd.core.timeline.lane import Lane
from uuidd.core.timeline.outcomes import Ahead, Closed, NeedsSave, NoneFree
from uuidd.core.timeline.slew import Slew
from uuidd.core.timeline.volatile import TOLERANCE

Rollback = Literal["slew", "wait", "refuse"]
"""After a step back of UTC: go on at half speed, wait until UTC is back, or refuse until then."""

LOST_SECONDS = 20
"""After a lost state nothing is given before UTC is so much past the start: the longest reach of a
save, so what the lost state's run gave out lies before."""

MAX_LEAD_SECONDS = 3600
"""The lead over UTC past which nothing is given, unless another is chosen."""


class Steady:
    """The timeline of v7, Snowflake, Flake, ULID, KSUID and Push ID: one lane that never goes back.

    *mark* is the one stored, None if there is none: then nothing before *now* is given out or, if
    the state was *lost*, nothing before 20 s past it. *rollback* says what a step back of UTC does,
    *max_lead* by how many ticks it may lead UTC.

    Nothing is given out before the first save completes: call ``begin_save``, keep the mark that it
    gives, call ``end_save``.
    """

    def __init__(
        self,
        mark: int | None,
        *,
        now: int,
        elapsed: int,
        lost: bool = False,
        rollback: Rollback = "slew",
        max_lead: int = MAX_LEAD_SECONDS * TICKS_PER_SECOND,
    ) -> None:
        self.held_until = now + LOST_SECONDS * TICKS_PER_SECOND if mark is None and lost else 0
        begin = mark if mark is not None else max(now, self.held_until)
        self._lane = Lane(begin)
        self._slew = Slew(now if self.held_until else begin, now=now, elapsed=elapsed)
        self.rollback: Rollback = rollback
        self.max_lead = max_lead
        self._closed = False
        self._horizon = Horizon(mark or 0)
        self._next_at_save = begin

    def take(self, count: int, *, now: int, elapsed: int, whole: bool = False) -> tuple[int, int]:
        """Give out the latest free ticks, at most *count*, or exactly *count* if *whole*.

        The result is the first tick and how many. None lies past S, nor at or past the horizon.

        Raises NoneFree (wait for that many ticks of S, which after a step back takes twice as
        long), NeedsSave (wait for ``end_save``), Ahead or Closed; the lane does not move then.
        """
        if self._closed:
            raise Closed
        steady = self.read(now=now, elapsed=elapsed)
        lead = self._lead(steady, now)
        if lead > self.max_lead:
            raise Ahead(lead, self.max_lead)
        if self.rollback == "refuse" and lead > TOLERANCE:
            raise Ahead(lead, 0)
        if steady >= self._horizon.limit and self.next <= steady:
            raise NeedsSave
        if whole and self.next > steady - count + 1:
            raise NoneFree(self.next - (steady - count + 1))
        first, given = self._lane.take(count, now=steady)
        self.held_until = 0
        return first, given

    def read(self, *, now: int, elapsed: int) -> int:
        """Give S, up to which ticks are given out: UTC itself unless a step back is slewed.

        Where nothing was given out past UTC there is nothing to stay ahead of, whatever UTC was.
        """
        if self.next <= now:
            self._slew.begin(now, elapsed=elapsed)
            return now
        steady = self._slew.read(now=now, elapsed=elapsed)
        return steady if self.rollback == "slew" else now

    def lead(self, *, now: int, elapsed: int) -> int:
        """Give by how many ticks it leads UTC; what a lost state holds back is no lead."""
        return self._lead(self.read(now=now, elapsed=elapsed), now)

    def _lead(self, steady: int, now: int) -> int:
        reached = 0 if self.held_until else self.next - 1
        return max(reached, steady, now) - now

    def begin_save(self, *, now: int, elapsed: int, reach: int) -> int:
        """Give the mark to save: *reach* ticks past S, or ``next`` itself once closed.

        The mark counts for the horizon from here on. One save at a time: ``end_save`` comes before
        the next.
        """
        ahead = self.read(now=now, elapsed=elapsed) + reach
        mark = self.next if self._closed else max(self.next, ahead)
        self._next_at_save = self.next
        self._horizon.begin_save(mark)
        return mark

    def end_save(self, mark: int, *, completed: bool) -> None:
        """Take note of how the save of *mark* ended."""
        self._horizon.end_save(mark, completed=completed)

    def void_saves(self) -> None:
        """Give out nothing before a save that is yet to complete."""
        self._horizon.void()

    def close(self) -> None:
        """Give out nothing more, so that the next save can hold the exact mark."""
        self._closed = True

    @property
    def next(self) -> int:
        """The first tick that was not given out."""
        return self._lane.next

    @property
    def used(self) -> bool:
        """Whether anything was given out since the last ``begin_save``."""
        return self.next != self._next_at_save

    @property
    def horizon(self) -> int:
        """The tick at which it stops until the next save."""
        return self._horizon.limit
