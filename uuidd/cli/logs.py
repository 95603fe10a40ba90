"""Sends the daemon's log to standard error, with levels if that is the journal, or to syslog."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from pathlib import Path

from uuidd.output import printable
from uuidd.systemd import logs_to_journal

SYSLOG = Path("/dev/log")

BURST = 20
"""Lines about one event in ``SPAN`` seconds. More are counted, not logged, so that neither a caller
nor a clock that steps back and forth can fill the disk."""

SPAN = 10.0

_PRIORITIES = {
    logging.DEBUG: 7,
    logging.INFO: 6,
    logging.WARNING: 4,
    logging.ERROR: 3,
    logging.CRITICAL: 2,
}
"""The prefixes of sd-daemon(3), by level."""


def to_stderr(level: int) -> None:
    """Log to standard error from *level* on, one line for each event."""
    form = _ForJournal() if logs_to_journal() else _Lines(PLAIN)
    _use(logging.StreamHandler(), form, level)


def prepare_syslog() -> None:
    """Import what ``to_syslog`` needs: after ``--user`` the process may not be able to read it."""
    # Not at the head of this file, because a service does not need it and would wait for it.
    import logging.handlers  # noqa: F401  (to_syslog uses it)


def to_syslog(level: int) -> None:
    """Log to syslog from *level* on; if there is none, lines are lost."""
    import logging.handlers

    syslog = logging.handlers.SysLogHandler
    handler = syslog(str(SYSLOG), syslog.LOG_DAEMON)
    _use(handler, _Lines("uuidd[%(process)d]: %(message)s"), level)


def complaint(line: str) -> str:
    """Return the line with which the program ends, with the level of an error for the journal."""
    before = f"<{_PRIORITIES[logging.ERROR]}>" if logs_to_journal() else "uuidd: "
    return before + printable(line)


PLAIN = "uuidd: %(levelname)s: %(message)s"


class _Lines(logging.Formatter):
    """Formats each event as one line."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of an event."""
        return printable(super().format(record))


class _ForJournal(_Lines):
    """Formats lines for the journal, which adds the process and the time itself."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of an event, with its level."""
        return f"<{_PRIORITIES.get(record.levelno, 5)}>{super().format(record)}"


class RateLimit(logging.Filter):
    """Passes ``BURST`` lines about one event in ``SPAN`` seconds.

    The next line about the event says how many were suppressed. Lines are about one event if their
    texts are the same before the values are put in. *clock* returns seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._seen: dict[str, tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether to log an event."""
        event, now = str(record.msg), self._clock()
        since, count = self._seen.get(event, (now, 0))
        if now - since >= SPAN:
            if count > BURST:
                record.msg = f"{record.msg} suppressed={count - BURST}"
            since, count = now, 0
        self._seen[event] = since, count + 1
        return count < BURST


def _use(handler: logging.Handler, formatter: logging.Formatter, level: int) -> None:
    handler.setFormatter(formatter)
    handler.addFilter(RateLimit())
    logging.basicConfig(handlers=[handler], level=level, force=True)
