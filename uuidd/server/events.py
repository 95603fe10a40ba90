"""What the log tells of the clock, of the timelines, and of refusals."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

import trio

from uuidd.core.ids.ticks import TICKS_PER_SECOND
from uuidd.core.timeline.generation import LANE_BITS
from uuidd.core.timeline.steady import Steady
from uuidd.core.timeline.timelines import FAR, Reading
from uuidd.core.timeline.utc import Opening
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


def step(nanoseconds: int) -> None:
    """Log a step of UTC, by so many nanoseconds."""
    direction = "back" if nanoseconds < 0 else "forward"
    log.warning("UTC was set %s by %.3f s", direction, abs(nanoseconds) / 1e9)


def steady_at_start(timeline: Steady, at: Reading) -> None:
    """Say at the start what the steady timeline will not do for a while, and why."""
    if timeline.held_until:
        log.warning(
            "the state was lost, so v7, Snowflakes and all others that never go back begin in %d s",
            (timeline.held_until - at.now) / TICKS_PER_SECOND,
        )
    lead = timeline.lead(now=at.now, elapsed=at.elapsed)
    if lead > FAR:
        log.warning(
            "v7, Snowflakes and all others that never go back are %.3f s ahead of UTC"
            " (--max-lead %g, --rollback %s)",
            lead / TICKS_PER_SECOND,
            timeline.max_lead / TICKS_PER_SECOND,
            timeline.rollback,
        )


class Openings:
    """Logs openings; those of a start not before it has succeeded, for one that fails has none."""

    def __init__(self) -> None:
        self._held: list[Callable[[], None]] | None = []

    def tell(self, opening: Opening) -> None:
        """Log an opening, now or once the daemon has started."""
        self._say(partial(_opening, opening))

    def mark_found(self, path: Path, ahead: int, *, heeded: bool) -> None:
        """Log, likewise, that libuuid has used ticks up to *ahead* ticks past now."""
        self._say(partial(_mark_found, path, ahead, heeded))

    def publish(self) -> None:
        """Log what was held back, and from here on at once."""
        held, self._held = self._held or [], None
        for say in held:
            say()

    def _say(self, say: Callable[[], None]) -> None:
        if self._held is None:
            say()
        else:
            self._held.append(say)


def _opening(opening: Opening) -> None:
    level, words = _OPENINGS.get(opening.reason, _VOLATILE)
    log.log(
        level,
        words + ": clock_seq=%(clock_seq)d node=0x%(node)012x",
        {
            "reason": opening.reason,
            "seconds": opening.back / TICKS_PER_SECOND,
            "clock_seq": opening.generation << LANE_BITS,
            "node": opening.node,
        },
    )


def _mark_found(path: Path, ahead: int, heeded: bool) -> None:
    seconds = ahead / TICKS_PER_SECOND
    if heeded:
        log.info("beginning past what libuuid has used: file=%s, %+.3f s from now", path, seconds)
    else:
        log.warning(
            "libuuid's clock file is of a time too far ahead, and is not heeded: file=%s, %+.3f s"
            " from now",
            path,
            seconds,
        )


_OPENINGS = {
    "no state": (logging.INFO, "there was no state, so a new one was begun"),
    "node changed": (logging.WARNING, "the node was changed, and so was the clock sequence"),
    "the saved mark lies past now": (
        logging.WARNING,
        "the clock sequence was changed, for the last run was not ended in order, or UTC was set"
        " back since; up to %(seconds).3f s from now may have been used",
    ),
    "UTC stepped back": (
        logging.WARNING,
        "the clock sequence was changed, for UTC is %(seconds).3f s behind the last id",
    ),
    "saved again": (
        logging.INFO,
        "the state can be saved again, so v1 and v6 come from the stored node again",
    ),
    "a generation is free again": (
        logging.INFO,
        "UTC has caught up, so v1 and v6 come from the stored node again",
    ),
}
"""What a newcomer understands of each reason for an opening, and how much it matters."""

_VOLATILE = (logging.WARNING, "v1 and v6 come from a volatile node (%(reason)s)")


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
