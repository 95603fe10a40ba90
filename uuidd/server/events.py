"""Log lines on the clock, on the timelines, and on refused requests and connections."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import trio

from uuidd.core.ids.ticks import TICKS_PER_SECOND
from uuidd.core.timeline.generation import LANE_BITS
from uuidd.core.timeline.steady import Steady
from uuidd.core.timeline.timelines import FAR, Reading
from uuidd.core.timeline.utc import Opening, Utc

SPAN = 10.0
"""Seconds from a first refusal to the line that counts it and those after it. So the log grows by a
line each so often at most, whatever callers do, and no timer runs while nobody is refused."""

MEANINGS = {
    "bad_params": ("request", "with wrong parameters"),
    "busy": ("request", "for more ticks than were free, or than the user's share"),
    "connections": ("connection", "over a limit"),
    "descriptors": ("connection", "that passed a descriptor"),
    "made_room": ("connection", "of the user with the most, closed to make room for another user"),
    "malformed": ("connection", "that sent bytes of neither protocol"),
    "no_watch": (
        "connection",
        "that the kernel has no room to watch (fs.epoll.max_user_watches)",
    ),
    "not_permitted": ("request", "of a user that may not make it"),
    "no_worker_id": ("request", "for Snowflakes while there was no worker number"),
    "silent": ("connection", "without a request for long, closed to make room"),
    "too_late": ("connection", "whose request was not complete in time"),
    "unavailable": ("request", "for ids that cannot be given out now"),
    "unknown_method": ("request", "for an unknown method"),
    "unread": ("connection", "closed because of unread replies"),
}
"""What was refused for each reason, in words. ``status`` counts by the reasons themselves."""

ROUTINE = ("must_wait", "no_lease")
"""Not logged: the client asked for an error instead of a wait, and it uses blocks without a lease.
"""

MOST_FALLBACK_UIDS = 64
"""The uids whose ids of the fallback are counted each; those of all others are counted together."""

OTHER_UIDS = "others"

MOST_FALLBACK_IDS = (1 << 53) - 1
"""Where the count of a uid ends: every reader of the status has room for it."""

log = logging.getLogger("uuidd")


def step(nanoseconds: int, leases_ended: int = 0) -> None:
    """Log a step of UTC by *nanoseconds*, negative for back, and how many leases it ended."""
    direction = "back" if nanoseconds < 0 else "forward"
    log.warning("UTC was set %s by %.3f s", direction, abs(nanoseconds) / 1e9)
    if leases_ended:
        log.info("%s ended, because UTC was set back", counted(leases_ended, "lease"))


def unpassed(error: OSError) -> None:
    """Log that the kernel passes no descriptors."""
    log.warning("the page could not be passed, so clients get no leases: %s", error.strerror)


def steady_at_start(timeline: Steady, at: Reading) -> None:
    """Log at the start what the steady timeline will not do for a while, and why."""
    if timeline.held_until:
        log.warning(
            "the state was lost, so v7, Snowflakes and the other steady kinds begin in %d s",
            (timeline.held_until - at.now) / TICKS_PER_SECOND,
        )
    lead = timeline.lead(now=at.now, elapsed=at.elapsed)
    if lead > FAR:
        log.warning(
            "v7, Snowflakes and the other steady kinds are %.3f s ahead of UTC"
            " (--max-lead %g, --rollback %s)",
            lead / TICKS_PER_SECOND,
            timeline.max_lead / TICKS_PER_SECOND,
            timeline.rollback,
        )


def withheld(why: str) -> None:
    """Log at the start that the steady timeline waits for the clock."""
    log.warning("v7, Snowflakes and the other steady kinds are refused: %s", why)


def released(timeline: Steady, at: Reading) -> None:
    """Log that the steady timeline need not wait for the clock any longer."""
    log.info("the clock is good enough, so v7, Snowflakes and the other steady kinds begin")
    steady_at_start(timeline, at)


def openings(timeline: Utc) -> None:
    """Log the openings of *timeline* since the last call."""
    for new in timeline.new_openings():
        opening(new)


def opening(opening: Opening) -> None:
    """Log an opening."""
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


def libuuid_mark(path: Path, ahead: int, *, used: bool) -> None:
    """Log a mark of libuuid, *ahead* ticks past now, and whether it is *used*."""
    seconds = ahead / TICKS_PER_SECOND
    if used:
        log.info("beginning after what libuuid has used: file=%s, %+.3f s from now", path, seconds)
    else:
        log.warning(
            "libuuid's clock file is of a time too far ahead, and is ignored: file=%s, %+.3f s"
            " from now",
            path,
            seconds,
        )


_OPENINGS = {
    "no state": (logging.INFO, "a new state was made"),
    "node changed": (logging.WARNING, "the node and the clock sequence were changed"),
    "the machine was cloned": (
        logging.INFO,
        "the clock sequence was changed, and so was the node unless it is fixed",
    ),
    "the state was copied": (
        logging.WARNING,
        "another machine saved the state: the machine-id is the same, and the product UUID differs;"
        " the clock sequence was changed, and so was the node unless it is fixed",
    ),
    "the saved mark lies past now": (
        logging.WARNING,
        "the clock sequence was changed, because the last run did not stop cleanly, or left leases,"
        " or UTC was set back since; ticks up to %(seconds).3f s from now may have been used",
    ),
    "UTC stepped back": (
        logging.WARNING,
        "the clock sequence was changed, because UTC is %(seconds).3f s behind the last id",
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
"""The level and the words of each reason for an opening."""

_VOLATILE = (logging.WARNING, "v1 and v6 come from a volatile node (%(reason)s)")


def meaning(reason: str, count: int) -> str:
    """Return how many requests or connections were refused for a reason, in words."""
    noun, rest = MEANINGS[reason]
    return f"{counted(count, noun)} {rest} ({reason})"


def counted(count: int, noun: str) -> str:
    """Return a number of things in words: ``1 request``, ``2 requests``."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


class Tally:
    """What came in one dialect: requests, ids or ticks given out, and refusals by reason.

    *on_refusal* is called with the reason of each refusal.
    """

    def __init__(self, on_refusal: Callable[[str], None]) -> None:
        self._on_refusal = on_refusal
        self.requests = self.ids = 0
        self.refused: Counter[str] = Counter()

    def refuse(self, reason: str) -> None:
        """Count a refusal."""
        self.refused[reason] += 1
        self._on_refusal(reason)

    def status(self) -> dict[str, Any]:
        """Return what ``status`` shows of it."""
        return {"requests": self.requests, "ids": self.ids, "refused": dict(self.refused)}


class FallbackTally:
    """How many ids programs have made without the daemon, by the uids of those that told it.

    Any user may tell any number, so both the sum of a uid and the number of uids have a limit.
    """

    def __init__(self) -> None:
        self._ids: Counter[str] = Counter()
        self._last_at = 0.0

    def add(self, uid: int, count: int) -> None:
        """Count ids of a user; none if *count* is 0."""
        if not count:
            return
        name = str(uid)
        if name not in self._ids and len(self._ids) >= MOST_FALLBACK_UIDS:
            name = OTHER_UIDS
        self._ids[name] = min(self._ids[name] + count, MOST_FALLBACK_IDS)
        self._last_at = trio.current_time()

    def status(self) -> dict[str, Any]:
        """Return what ``status`` shows of it."""
        age = round(trio.current_time() - self._last_at, 3) if self._ids else None
        return {"ids": dict(self._ids), "last_age": age}


class Refusals:
    """Logs what was refused, by reason and over both dialects."""

    def __init__(self) -> None:
        self._new: Counter[str] = Counter()
        self._first = trio.Event()
        self._since = 0.0

    async def run(self) -> None:
        """Log the refusals of each ``SPAN`` that has any, until it is cancelled."""
        while True:
            await self._first.wait()
            await trio.sleep_until(self._since + SPAN)
            self.log()

    def log(self) -> None:
        """Log at once the refusals that were not logged yet, if there are any."""
        new, self._new = self._new, Counter()
        if new:
            seconds = max(1, round(trio.current_time() - self._since))
            refused = ", ".join(meaning(reason, number) for reason, number in sorted(new.items()))
            log.warning("refused within %d s: %s", seconds, refused)
        self._first = trio.Event()

    def note(self, reason: str) -> None:
        """Take note of a refusal."""
        if reason in ROUTINE:
            return
        self._new[reason] += 1
        if not self._first.is_set():
            self._since = trio.current_time()
            self._first.set()
