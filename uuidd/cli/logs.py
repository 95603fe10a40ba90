"""Where the daemon's log goes: standard error, with systemd's levels to the journal, or syslog."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from pathlib import Path

from uuidd.systemd import logs_to_journal

SYSLOG = Path("/dev/log")

BURST = 20
"""Lines about one event in ``SPAN`` seconds; those after it are counted, not shown, so that neither
a caller nor a clock that jumps to and fro can fill the disk."""

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
    """Log to standard error from *level* on, an event a line."""
    form = _ForJournal() if logs_to_journal() else logging.Formatter(PLAIN)
    _use(logging.StreamHandler(), form, level)


def prepare_syslog() -> None:
    """Import what ``to_syslog`` needs: after ``--user`` the process may not be able to read it."""
    # Not at the head of this file: a service, which logs to the journal, would wait for it.
    import logging.handlers  # noqa: F401  (to_syslog uses it)


def to_syslog(level: int) -> None:
    """Log to syslog from *level* on, where there is one; a background has nowhere else."""
    import logging.handlers

    try:
        handler: logging.Handler = logging.handlers.SysLogHandler(
            str(SYSLOG), logging.handlers.SysLogHandler.LOG_DAEMON
        )
    except OSError:
        handler = logging.NullHandler()
    _use(handler, logging.Formatter("uuidd[%(process)d]: %(message)s"), level)


def complaint(line: str) -> str:
    """Give the line with which the program ends, as an error of the journal's if it goes there."""
    return f"<{_PRIORITIES[logging.ERROR]}>{line}" if logs_to_journal() else f"uuidd: {line}"


PLAIN = "uuidd: %(levelname)s: %(message)s"


class _ForJournal(logging.Formatter):
    """Gives lines as the journal reads them: it knows who writes, and when."""

    def format(self, record: logging.LogRecord) -> str:
        """Give the line of an event, all of it at the event's level."""
        prefix = f"<{_PRIORITIES.get(record.levelno, 5)}>"
        return prefix + super().format(record).replace("\n", f"\n{prefix}")


class RateLimit(logging.Filter):
    """Lets ``BURST`` lines about one event through in ``SPAN`` seconds.

    The first after those says how many were not shown. An event is known by its text before the
    numbers are put in; *clock* gives seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._seen: dict[str, tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Give whether to show an event."""
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
