"""What a channel tells of its daemon: in the log, in the one warning, and in ``stats``.

It is told when no lock is held: a handler of the log may wait for a lock of its own, whose holder
may just be waiting for an id.
"""

from __future__ import annotations

import os
import sys

# What warnings.warn is. A program that is never warned need not import the rest of warnings.
from _warnings import warn
from collections import deque

from uuidd.core.typed import NamedTuple
from uuidd_client.errors import DaemonUnavailable
from uuidd_client.system import ClientClock

LOGGER = "uuidd_client"

DEBUG, INFO, WARNING = 10, 20, 30
"""The levels of ``logging``, which only a program that uses it has to import."""

LINES, MINUTE = 4, 60.0

_lines_at = deque([-MINUTE] * LINES, maxlen=LINES)
"""When the last lines of this process were logged, by the time elapsed."""

_PACKAGE = os.path.dirname(__file__) + os.sep

_warned_in = 0
"""The process that has warned."""


class Stats(NamedTuple):
    """What a client has done since its process began there: a fork's child begins at 0.

    *leases* and *blocks* count what the daemon has granted, *fallback_blocks* what took its place.
    *leased* is whether there is a lease now. *last_error* says why a request had no usable answer,
    "" if all had, and *last_error_at* when that was, in Unix seconds.
    """

    leases: int = 0
    blocks: int = 0
    fallback_blocks: int = 0
    leased: bool = False
    last_error: str = ""
    last_error_at: float | None = None


class Notices:
    """Notes each change for *ids*, and tells it with ``tell``. *error* is the last error.

    The log of a process has LINES in a minute at most, besides those of the level DEBUG. A change
    that finds no room there is told at a later request, if it still lasts.

    *error_at* is in Unix seconds. A race between threads costs a line.
    """

    def __init__(self, ids: str, clock: ClientClock) -> None:
        self._ids = ids
        self._clock = clock
        self.error = ""
        self.error_at: float | None = None
        self.pending: list[tuple[int, str] | DaemonUnavailable] = []
        # The reason for the trouble that there is, and the one that the log tells of.
        self._trouble = self._told = ""
        self._since = self._lasted = 0.0

    def failed(self, error: DaemonUnavailable, *, fallback: bool) -> None:
        """Note a request without a usable answer; with *fallback*, ids are made all the same."""
        self.error, self.error_at = str(error), self._clock.utc_ns() / 1e9
        if error.reason == "no_worker_id":
            # That is no trouble of the daemon's, which has answered.
            self.answered(error.path)
            return
        if fallback:
            self.pending.append(error)
        if not self._trouble:
            self._since = self._clock.elapsed()
        # Not the text: that of the daemon may say how long a cause lasts.
        self._trouble = error.reason
        if self._trouble != self._told and _has_room(self._clock.elapsed()):
            self._told = self._trouble
            what = "are made in this process" if fallback else "cannot be made"
            self.pending.append((WARNING, f"{error}; {self._ids} {what} until it answers"))

    def answered(self, path: str) -> None:
        """Note that the daemon at *path* has given a block or a lease."""
        if self._trouble:
            self._lasted = self._clock.elapsed() - self._since
            self._trouble = ""
        if self._told and _has_room(self._clock.elapsed()):
            self._told = ""
            line = f"uuidd at {path} answers again for {self._ids}, after {self._lasted:.1f} s"
            self.pending.append((INFO, line))

    def of_lease(self, line: str) -> None:
        """Note a line about a lease."""
        self.pending.append((DEBUG, line))

    def tell(self) -> None:
        """Log, and warn of the first error of a process with a fallback. Hold no lock."""
        while self.pending:
            try:
                what = self.pending.pop(0)
            except IndexError:
                # Another thread was faster.
                return
            if isinstance(what, DaemonUnavailable):
                _warn(what)
            else:
                _log(*what)


def _has_room(now: float) -> bool:
    """Whether the log has room for a line at *now*, which then counts as logged."""
    if now - _lines_at[0] < MINUTE:
        return False
    _lines_at.append(now)
    return True


def _log(level: int, line: str) -> None:
    # Whoever wants to see the log has imported it.
    logging = sys.modules.get("logging")
    if logging is None:
        return
    try:
        logger = logging.getLogger(LOGGER)
        if not logger.handlers:
            # Without one, the line would be on standard error, where the warning is already.
            logger.addHandler(logging.NullHandler())
        logger.log(level, line)
    except Exception:  # noqa: S110 - a filter of the program's must not fail a call
        pass


def _warn(unavailable: DaemonUnavailable) -> None:
    """Warn once in each process, however many clients it has."""
    global _warned_in
    if _warned_in == os.getpid():
        return
    _warned_in = os.getpid()
    text = f"{unavailable}; ids are made in this process, and are not marked safe, until it answers"
    if sys.version_info >= (3, 12):
        warn(text, RuntimeWarning, skip_file_prefixes=(_PACKAGE,))
    else:
        # It cannot name the line of the program, which is above a varying number of our own.
        warn(text, RuntimeWarning, stacklevel=2)
