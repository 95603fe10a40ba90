"""What the log tells of the clock and of the timelines."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from pathlib import Path

from uuidd.core.ids.timebased import TICKS_PER_SECOND
from uuidd.core.timeline.steady import Steady
from uuidd.core.timeline.timelines import FAR, Reading
from uuidd.core.timeline.utc import Opening

log = logging.getLogger("uuidd")


def step(nanoseconds: int) -> None:
    """Log a step of UTC, by so many nanoseconds."""
    log.warning("UTC stepped: seconds=%+.3f", nanoseconds / 1e9)


def steady_at_start(timeline: Steady, at: Reading) -> None:
    """Say at the start what the steady timeline will not do for a while, and why."""
    if timeline.held_until:
        log.warning(
            "the state was lost, steady ids are held back: seconds=%d",
            (timeline.held_until - at.now) / TICKS_PER_SECOND,
        )
    lead = timeline.lead(now=at.now, elapsed=at.elapsed)
    if lead > FAR:
        log.warning(
            "the steady timeline is ahead of UTC: seconds=%.3f max_lead=%g rollback=%s",
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
    log.log(
        logging.INFO if opening.reason in _ROUTINE else logging.WARNING,
        "clock sequence opened: reason=%r generation=%d node=%012x back=%.3fs",
        opening.reason,
        opening.generation,
        opening.node,
        opening.back / TICKS_PER_SECOND,
    )


def _mark_found(path: Path, ahead: int, heeded: bool) -> None:
    seconds = ahead / TICKS_PER_SECOND
    if heeded:
        log.info("libuuid's mark imported: file=%s ahead=%+.3fs", path, seconds)
    else:
        log.warning("libuuid's mark is absurd, not imported: file=%s ahead=%+.3fs", path, seconds)


_ROUTINE = ("no state", "saved again", "a generation is free again")
