"""Saves the state: one save at a time, ahead of need, every 10 s while in use.

Theory of operation

1. A save writes horizons: the ticks up to which both timelines may give out. A horizon counts when
   its save has completed. If it counted sooner, a crash before that would have the next start give
   the same ticks out again.
2. The next save begins when half of the last one's reach has passed. So programs that ask all the
   time never wait for the disk, unless a save takes longer than the other half.
3. The reach is half the uptime, from FIRST_REACH to REACH. With a fixed one, a daemon that crashes
   again and again would run its marks further ahead than it lives.
4. A daemon that was not used since the last save waits for ``want`` and saves nothing, so an idle
   host's disk sleeps. The first request past the horizon then waits for one save.
5. After a save that failed, the last horizon stands, and the next try follows after a pause that
   grows. Requests do not shorten the pause, for each of them would start another try.
6. If the folder was moved away, another daemon may start without this state. Then what was saved
   counts no longer, from the next ``check`` on.
7. At a stop the timelines are closed, then the save under way ends, and then the exact marks are
   saved. In another order a tick could be given out past its mark.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Awaitable, Callable
from math import inf
from typing import Any

import trio

from uuidd.core.ids.ticks import TICKS_PER_SECOND
from uuidd.core.timeline.state import State
from uuidd.core.timeline.timelines import Reading, Timelines
from uuidd.server import events
from uuidd.server.events import counted

REACH = 20.0
"""Seconds from a save to its horizon. The next save is due when half of them have passed."""

FIRST_REACH = 0.1
"""The reach right after a start."""

CHECK_SECONDS = 0.01
"""How long a check of the state folder counts: nothing is given out later than that after the
folder was moved away. A start waits that long too, because the folder may have been moved just
before, from a daemon that still serves."""

RETRY = (0.1, 5.0)
"""Seconds between a failed save and the next try: the first time, and the most."""

log = logging.getLogger("uuidd")


def reaches_after(uptime: float) -> tuple[float, float]:
    """Return the reach of a save made *uptime* after the start, and a bare one; all in seconds.

    The bare one has no minimum. It is for a steady timeline that is far ahead of UTC already.
    """
    bare = min(REACH, uptime / 2)
    return max(FIRST_REACH, bare), bare


class Saver:
    """Keeps the horizons of *timelines* ahead of use, by *save*, which raises OSError if it fails.

    *read* reads the clock; spans of time are measured on trio's clock, which is monotonic.
    *unsaved_since* is when the first of the saves began that have failed or are under way since the
    last success; None when there is none.

    *unusable* says why what was saved may not be used any more, "" while it may. ``check`` calls
    it. Callers call ``check`` before anything is given out at or past *check_at*, in ticks of
    CLOCK_BOOTTIME.
    """

    def __init__(
        self,
        timelines: Timelines,
        save: Callable[[State], Awaitable[None]],
        read: Callable[[], Reading],
        unusable: Callable[[], str],
    ) -> None:
        self._timelines = timelines
        self._unusable = unusable
        self.check_at = 0
        self._save = save
        self._read = read
        self._started = trio.current_time()
        self._wanted, self._finishing, self._finished = trio.Event(), trio.Event(), trio.Event()
        self._settled = trio.lowlevel.ParkingLot()
        self._saving_since: float | None = None
        self.unsaved_since: float | None = None
        self.idle = False
        self.saves = int(timelines.saved)
        self.failed_saves = self.failed_since_last = 0
        self.last_at = self._started
        self.last_seconds = 0.0
        self.trouble = ""

    async def run(self) -> None:
        """Save whenever a save is due or wanted, until ``finish``.

        The start has made the first save, with FIRST_REACH, unless the disk was full.
        """
        begun, reach, retry = self._started, FIRST_REACH, RETRY[0]
        if not self._timelines.saved:
            self.want()
        while True:
            if self.failed_since_last:
                # Whatever waiting requests ask for meanwhile.
                with trio.move_on_after(retry):
                    await self._finishing.wait()
                retry = min(2 * retry, RETRY[1])
            else:
                retry = RETRY[0]
                with trio.move_on_at(begun + reach / 2):
                    await self._wanted.wait()
                if not self._wanted.is_set() and not self._timelines.used:
                    # Nothing was given out since the last save.
                    self.idle = True
                    await self._wanted.wait()
                    self.idle = False
            if self._finishing.is_set():
                break
            self._wanted = trio.Event()
            begun = trio.current_time()
            reaches = reaches_after(begun - self._started)
            reach = reaches[self._timelines.far(self._read())]
            await self._save_once(*reaches)
        await self._save_once(0, 0)
        self._finished.set()

    def begin_again(self) -> None:
        """Save at once, and reach no further ahead from here on than soon after a start.

        So a machine that is cloned again and again does not run its marks further ahead either.
        """
        self._started = trio.current_time() - 2 * FIRST_REACH
        self.want()

    def want(self) -> None:
        """Ask for a save: the horizon is reached, or the first use after idling has come."""
        self._wanted.set()

    def check(self, elapsed: int) -> None:
        """Check whether what was saved may still be used; if not, void it and save again."""
        if reason := self._unusable():
            self.check_at = 0
            self.trouble = reason
            self._timelines.void_saves()
            self.want()
        else:
            self.check_at = elapsed + int(CHECK_SECONDS * TICKS_PER_SECOND)

    async def settled_by(self, deadline: float = inf) -> None:
        """Wait until the save under way, or the next one if there is none, has ended or failed.

        It does not wait past *deadline*.
        """
        if self._saving_since is None:
            self.want()
        with trio.move_on_at(deadline):
            await self._settled.park()

    async def settled_anew(self) -> None:
        """Wait until a save that begins from now on has ended or failed."""
        if self._saving_since is not None:
            await self._settled.park()
        await self.settled_by()

    async def finish(self, patience: float) -> bool:
        """Close the timelines, let the save under way end, and save the exact marks.

        Return whether they were saved within *patience* seconds. If not, the last horizon stands,
        and the next start opens another generation.
        """
        self._timelines.close()
        self._finishing.set()
        self.want()
        with trio.move_on_after(patience):
            await self._finished.wait()
        return self._finished.is_set() and not self.failed_since_last

    @property
    def under_way_seconds(self) -> float:
        """How many seconds the save under way has taken so far; 0 when there is none."""
        since = self._saving_since
        return 0.0 if since is None else trio.current_time() - since

    def status(self) -> dict[str, Any]:
        """Return what ``status`` shows of saves, after a check of the folder. Spans are seconds."""
        self.check(self._read().elapsed)
        now = trio.current_time()
        return {
            "done": self.saves,
            "failed": self.failed_saves,
            "failing": bool(self.trouble),
            "trouble": self.trouble,
            "last_age": round(now - self.last_at, 3) if self.saves else None,
            "last_seconds": round(self.last_seconds, 6),
            "reach_seconds": round(reaches_after(now - self._started)[0], 3),
            "under_way_seconds": round(self.under_way_seconds, 3),
        }

    async def _save_once(self, reach: float, bare_reach: float) -> None:
        state = self._timelines.begin_save(
            at=self._read(),
            reach=int(reach * TICKS_PER_SECOND),
            bare_reach=int(bare_reach * TICKS_PER_SECOND),
        )
        begun = self._saving_since = trio.current_time()
        if self.unsaved_since is None:
            self.unsaved_since = begun
        try:
            await self._save(state)
        except OSError as error:
            self.failed_saves += 1
            self.failed_since_last += 1
            self.trouble = os.strerror(error.errno) if error.errno else str(error)
            if self.failed_since_last == 1:
                log.error("the state cannot be saved; uuidd keeps trying: %s", self.trouble)
        else:
            self.saves += 1
            self.last_at = trio.current_time()
            self.last_seconds = self.last_at - begun
            if self.failed_since_last:
                failed = counted(self.failed_since_last, "failed save")
                log.warning("the state is saved again, after %s", failed)
            self.failed_since_last = 0
            self.trouble = ""
            self.unsaved_since = None
        self._saving_since = None
        self._timelines.end_save(state, completed=not self.failed_since_last)
        if self.failed_since_last:
            # The holders of leases send no request that would look for the folder.
            self.check(self._read().elapsed)
        # Not left to the next request: an idle daemon would report a trouble that is over.
        self._timelines.utc.leave_volatile(now=self._read().now)
        events.openings(self._timelines.utc)
        self._settled.unpark_all()
