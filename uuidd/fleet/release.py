"""Lets a worker number go at a clean stop, so that another host can have it at once."""

from __future__ import annotations

import logging

import trio

from uuidd.core.ids import times
from uuidd.core.timeline.fence import Fence
from uuidd.fleet import claiming
from uuidd.fleet.coordinator import Changed, Coordinator, Found, reason
from uuidd.fleet.record import Record

ASK_SECONDS = 1.0
"""How long a stop waits to learn whether the engine answers."""

WRITE_SECONDS = 2.0
"""How long it waits for the release."""

log = logging.getLogger("uuidd")


class Release:
    """The release of the number of *fence*: first ``prepare``, then a save, then ``write``."""

    def __init__(self, engine: Coordinator, fence: Fence) -> None:
        self._engine = engine
        self._fence = fence
        self._claim = fence.claim
        self._found: Found | None = None

    async def prepare(self, *, fenced: bool) -> None:
        """Give up the claim, unless the engine is silent: the next start goes on with it then.

        A number that another host has, because this one was *fenced*, is given up in any case.
        """
        if self._claim is None:
            return
        if not fenced:
            found: Found | None = None
            answered = False
            with trio.move_on_after(ASK_SECONDS):
                try:
                    found = await self._engine.read(self._claim.number)
                    answered = True
                except Exception as error:
                    log.debug("no answer at the stop: %s", reason(error))
            if not answered:
                return
            if found is not None and claiming.is_ours(found.record, self._claim):
                self._found = found
        self._fence.close()

    async def write(self, *, reached: int, now: int, saved: bool) -> None:
        """Write that nothing was made with the number at or past *reached*; *now* is UTC.

        Nothing is written if the state was not *saved*: the one that still stands has the claim,
        and the next start may go on with it.
        """
        if self._claim is None or self._found is None:
            return
        number = self._claim.number
        if not saved:
            log.warning("not released: worker=%d (the state could not be saved)", number)
            return
        record = claiming.released(self._found.record, self._claim, reached=reached, now=now)
        why = await self._written(number, record, self._found)
        if why:
            log.warning("not released: worker=%d (%s)", number, why)
        else:
            log.info("released: worker=%d until=%s", number, times.text(record.until))

    async def _written(self, number: int, record: Record, found: Found) -> str:
        """Write, and return why it was not written, "" if it was."""
        with trio.move_on_after(WRITE_SECONDS):
            try:
                await self._engine.write(number, record, found.version)
            except Changed:
                return "its register has changed"
            except Exception as error:
                return reason(error)
            return ""
        return f"no answer within {WRITE_SECONDS:g} s"
