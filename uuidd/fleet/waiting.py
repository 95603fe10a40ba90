"""How a host waits for a number of a fleet in which all are taken.

Theory of operation

1. Two things make a number free: its holder lets it go, or is silent for too long. The engine tells
   of the first (``Coordinator.freed``). Of the second, a look at all registers tells the earliest
   time, for a register's end moves on only.
2. Many hosts may wait. So a host that has heard of a number does not look at all registers, but at
   that one, and at a random time within SHARE_SECONDS: the host that comes first gets it, and the
   others read one register each.
3. What a host has not heard, because several numbers were let go at once or the engine was silent,
   it finds when it looks at all registers again.
"""

from __future__ import annotations

import logging
from math import inf
from random import Random

import trio

from uuidd.core.ids.ticks import TICKS_PER_SECOND
from uuidd.fleet.coordinator import Coordinator, Freed, reason
from uuidd.fleet.questions import Questions
from uuidd.fleet.seeking import Due

SHARE_SECONDS = 0.3
"""Within so many seconds the hosts that wait look for a number of which all have heard."""

LOOK_SECONDS = 60.0
"""From a look at all registers to the next: so much, or up to twice as much."""

UNTOLD_SECONDS = 5.0
"""The same if numbers may have been let go of which this host has not heard."""

log = logging.getLogger("uuidd")


class Waiting:
    """Waits for a number; *random* spreads the hosts that wait for the same one."""

    def __init__(self, questions: Questions, random: Random) -> None:
        self._questions = questions
        self._random = random
        self._heard: Freed | None = None
        self._due: Due | None = None
        self._look_at = inf

    def looked(self, due: Due | None) -> None:
        """Note that all numbers are taken, and that *due* may be free next."""
        self._due = due
        self._look_at = trio.current_time() + self._random.uniform(1, 2) * LOOK_SECONDS

    async def wait(self, engine: Coordinator) -> tuple[int | None, float]:
        """Wait until a number may be free; return it, and how many seconds later to look for it.

        The number is None if all have to be looked at.
        """
        if self._heard is None and await self._begin_to_hear(engine):
            # From here on nothing is missed; since the look, something may have been.
            return None, 0.0
        due_at = self._due_at()
        with trio.move_on_at(min(due_at, self._look_at)) as waited:
            if not await self._hear(engine):
                waited.deadline = min(due_at, self._look_at)
                await trio.sleep_forever()
        share = self._random.uniform(0, SHARE_SECONDS)
        if not waited.cancelled_caught:
            assert self._heard is not None  # noqa: S101 - it was heard just now
            return self._heard.number, share
        if self._due is not None and trio.current_time() >= due_at:
            # If it was renewed in time, all registers tell what is due next.
            number, self._due = self._due.number, None
            self._look_soon(0)
            return number, share
        return None, share

    def _due_at(self) -> float:
        if self._due is None:
            return inf
        left = self._due.tick - self._questions.steady()
        return trio.current_time() + max(0, left) / TICKS_PER_SECOND

    async def _begin_to_hear(self, engine: Coordinator) -> bool:
        self._heard = await self._told(engine, None)
        return self._heard is not None

    async def _hear(self, engine: Coordinator) -> bool:
        """Wait until the engine tells of a number; return whether it did."""
        before = self._heard
        if before is not None:
            self._heard = await self._told(engine, before.count)
            if self._heard is not None and self._heard.count != before.count + 1:
                self._look_soon(0)
        return self._heard is not None

    async def _told(self, engine: Coordinator, after: int | None) -> Freed | None:
        try:
            return await engine.freed(after)
        except Exception as error:
            log.debug("not told of numbers that are let go: %s", reason(error))
            self._look_soon(1)
            return None

    def _look_soon(self, least: float) -> None:
        soon = trio.current_time() + (least + self._random.random()) * UNTOLD_SECONDS
        self._look_at = min(self._look_at, soon)
