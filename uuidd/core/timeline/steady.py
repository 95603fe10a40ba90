"""The steady timeline: ticks for the kinds that have no clock sequence.

It never goes back, not across restarts either: see the package's theory of operation.
"""

from __future__ import annotations

from typing import Literal

from uuidd.core.ids.ticks import TICKS_PER_SECOND
from uuidd.core.timeline.generation import Lane
from uuidd.core.timeline.outcomes import Closed, NeedsSave, NoneFree, TooFarAhead, Withheld
from uuidd.core.timeline.slew import MAX_LEAD_SECONDS, TOLERANCE, Slew
from uuidd.core.timeline.state import Horizon

Rollback = Literal["slew", "wait", "refuse"]
"""After UTC stepped back: go on at half speed, wait until UTC is back, or refuse until then."""

LOST_SECONDS = 20
"""After the state was lost nothing is given out before UTC is this far past the start. No save
reaches further, so what was given out under the lost state lies before."""

LOST_MARK = 1
"""The mark of a timeline that is withheld after the state was lost: no tick lies before it, and the
next start knows by it that the state was lost."""


class Steady:
    """The timeline of v7, Snowflake, Flake, ULID, KSUID and Push ID: one lane that never goes back.

    *mark* is the stored one, None if there is none. Without one nothing before *now* is given out
    or, if the state was *lost*, nothing before *held_until*, 20 s past *now*. *rollback* says what
    happens after UTC stepped back, *max_lead* by how many ticks the timeline may lead UTC.

    Nothing is given out before the first save completes: call ``begin_save``, keep the mark that it
    returns, call ``end_save`` of the *horizon*.

    While *withheld* says why, because the clock is not trusted yet, nothing is given out either.
    No mark depends on the clock then, so a wrong clock leaves nothing behind; ``release`` ends it.
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
        withheld: str = "",
    ) -> None:
        self.lost = (mark is None and lost) or mark == LOST_MARK
        self._stateless = mark is None
        self.held_until = 0
        self.lane = Lane(LOST_MARK if self.lost else mark or 0)
        self.slew = Slew(self.next, now=now, elapsed=elapsed)
        self._next_at_save = self.next
        self.withheld = withheld
        if not withheld:
            self.release(now=now, elapsed=elapsed)
        self.rollback: Rollback = rollback
        self.max_lead = max_lead
        self._closed = False
        self.horizon = Horizon(mark or 0)

    def take(self, count: int, *, now: int, elapsed: int, whole: bool = False) -> tuple[int, int]:
        """Hand out the latest free ticks, at most *count*, or exactly *count* if *whole*.

        The result is the first tick and the number of ticks. None lies past S, nor at or past the
        horizon.

        Raises NoneFree (wait for that many ticks of S, which after a step back takes twice as
        long), NeedsSave (wait for ``end_save``), Withheld, TooFarAhead or Closed; the lane does not
        move then.
        """
        if self._closed:
            raise Closed
        if self.withheld:
            raise Withheld(self.withheld)
        steady = self.read(now=now, elapsed=elapsed)
        lead = self._lead(steady, now)
        most = 0 if self.rollback == "refuse" else self.max_lead
        # The process may have been paused between the two clocks of its reading.
        if lead > most + TOLERANCE:
            raise TooFarAhead(lead, most)
        if steady >= self.horizon.limit and self.next <= steady:
            raise NeedsSave
        if whole and self.next > steady - count + 1:
            raise NoneFree(self.next - (steady - count + 1))
        first, given = self.lane.take(count, now=steady)
        self.held_until = 0
        return first, given

    def release(self, *, now: int, elapsed: int) -> None:
        """End what withholds the timeline: it begins now, as if it were made now."""
        self.withheld = ""
        begin = self.next
        if self.lost:
            self.held_until = now + LOST_SECONDS * TICKS_PER_SECOND
            begin = max(begin, self.held_until)
        elif self._stateless:
            begin = max(begin, now)
        self.lane.next = self._next_at_save = begin
        self.slew = Slew(now if self.held_until else begin, now=now, elapsed=elapsed)

    def pass_over(self, tick: int, *, now: int, elapsed: int) -> None:
        """Give out nothing before *tick*, as if all before it had been given out.

        It does nothing if that is the case already, or if the timeline would lead UTC by too much.
        """
        if self.next < tick <= now + self.max_lead:
            self.lane.next = tick
            self.slew.lift(tick, now=now, elapsed=elapsed)
            self.held_until = 0

    def renew(self, *, now: int, elapsed: int) -> None:
        """Go on past all that a copy of this machine may have given out: from the mark on.

        It does not do so where the timeline would lead UTC by too much. Nothing is given out before
        a save completes that has not begun yet.
        """
        mark = self.horizon.highest
        if self.held_until:
            self.held_until = self.lane.next = max(self.next, mark)
        else:
            self.pass_over(mark, now=now, elapsed=elapsed)
        self.horizon.void()

    def read(self, *, now: int, elapsed: int) -> int:
        """Return S, up to which ticks are given out: UTC, unless UTC stepped back.

        Where nothing was given out past UTC there is nothing to stay ahead of, so S is UTC then,
        whatever UTC was before.
        """
        if self.next <= now:
            self.slew.begin(now, elapsed=elapsed)
            return now
        steady = self.slew.read(now=now, elapsed=elapsed)
        return steady if self.rollback == "slew" else now

    def lead(self, *, now: int, elapsed: int) -> int:
        """The number of ticks by which it leads UTC.

        The wait after a lost state is no lead, and neither is one against a clock that is not
        trusted.
        """
        return 0 if self.withheld else self._lead(self.read(now=now, elapsed=elapsed), now)

    def _lead(self, steady: int, now: int) -> int:
        reached = 0 if self.held_until else self.next - 1
        return max(reached, steady) - now

    def begin_save(self, *, now: int, elapsed: int, reach: int) -> int:
        """Return the mark to save: *reach* ticks past S, or ``next`` itself if closed or withheld.

        The mark counts for the horizon from here on. One save at a time: the horizon's ``end_save``
        comes before the next.
        """
        ahead = self.read(now=now, elapsed=elapsed) + reach
        mark = self.next if self._closed or self.withheld else max(self.next, ahead)
        self._next_at_save = self.next
        self.horizon.begin_save(mark)
        return mark

    def close(self) -> None:
        """Stop for good, so that the next save can hold the exact mark."""
        self._closed = True

    @property
    def next(self) -> int:
        """The first tick that was not given out."""
        return self.lane.next

    @property
    def used(self) -> bool:
        """Whether anything was given out since the last ``begin_save``."""
        return self.next != self._next_at_save
