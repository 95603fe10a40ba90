"""What the log tells of refusals: one line, with counts, for all those of some seconds."""

from __future__ import annotations

import logging
from collections import Counter

import trio

from uuidd.server.service import Tally

SPAN = 10.0
"""Seconds from a first refusal to the line that tells of it and of those that came meanwhile: so
many lines at most, whatever callers do, and no timer while nobody is refused."""

log = logging.getLogger("uuidd")


class Refusals:
    """Logs what *tallies* count as refused, by reason and over all dialects."""

    def __init__(self, *tallies: Tally) -> None:
        self._tallies = tallies
        self._logged = self._count()
        self._first = trio.Event()
        self._since = 0.0
        for tally in tallies:
            tally.tell = self._note

    async def run(self) -> None:
        """Log the refusals of each ``SPAN`` that has any, for ever."""
        while True:
            await self._first.wait()
            await trio.sleep_until(self._since + SPAN)
            self.log()

    def log(self) -> None:
        """Log at once what has not been, if there is anything."""
        count = self._count()
        new = count - self._logged
        if new:
            reasons = " ".join(f"{reason}={number}" for reason, number in sorted(new.items()))
            seconds = max(1, round(trio.current_time() - self._since))
            log.warning("refused: in_seconds=%d %s", seconds, reasons)
        self._logged = count
        self._first = trio.Event()

    def _note(self) -> None:
        if not self._first.is_set():
            self._since = trio.current_time()
            self._first.set()

    def _count(self) -> Counter[str]:
        return sum((tally.refused for tally in self._tallies), Counter())
