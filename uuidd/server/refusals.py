"""What the log tells of refusals: one line, with counts, for all those of some seconds."""

from __future__ import annotations

import logging
from collections import Counter

import trio

from uuidd.server.service import Tally

SPAN = 10.0
"""Seconds from a first refusal to the line that tells of it and of those that came meanwhile: so
many lines at most, whatever callers do, and no timer while nobody is refused."""

MEANINGS = {
    "bad_params": "requests with wrong parameters",
    "busy": "requests that found no room, or were over a user's share",
    "connections": "connections over a limit",
    "descriptors": "connections that passed a descriptor",
    "made_room": "connections of the user with the most, closed to make room for another user",
    "malformed": "connections that sent bytes of neither protocol",
    "no_watch": "connections that the kernel has no room to watch (fs.epoll.max_user_watches)",
    "no_worker_id": "requests for Snowflakes, which need --worker",
    "silent": "connections that asked nothing for long, closed to make room",
    "too_late": "connections that took too long to send a request or to read a reply",
    "unavailable": "requests for ids that cannot be given out now",
    "unknown_method": "requests for a method that there is not",
    "unread": "connections closed because their user left too many replies unread",
}
"""What each reason means; ``status`` counts by the reasons themselves."""

ROUTINE = "must_wait"
"""The answer to a request that asked to be told rather than to wait is no news."""

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
            reasons = ", ".join(
                f"{number} {MEANINGS.get(reason, 'others')} ({reason})"
                for reason, number in sorted(new.items())
            )
            seconds = max(1, round(trio.current_time() - self._since))
            log.warning("refused within %d s: %s", seconds, reasons)
        self._logged = count
        self._first = trio.Event()

    def _note(self) -> None:
        if not self._first.is_set():
            self._since = trio.current_time()
            self._first.set()

    def _count(self) -> Counter[str]:
        count: Counter[str] = sum((tally.refused for tally in self._tallies), Counter())
        del count[ROUTINE]
        return count
