"""What a session tells of its daemon: in the log, in the one warning, and in ``stats``.

It is told when no lock is held: a handler of the log may wait for a lock of its own, whose holder
may just be waiting for an id.
"""

from __future__ import annotations

import os
import sys
import time
import warnings

from uuidd_client.callers import caller
from uuidd_client.errors import DaemonUnavailable
from uuidd_client.system import elapsed

LOGGER = "uuidd_client"

DEBUG, INFO, WARNING = 10, 20, 30
"""The levels of ``logging``, which only a program that uses it has to import."""

_warned_in = 0
"""The process that has warned."""


class Notices:
    """Notes each change, and tells it with ``tell``. *error* is the last error, of *error_at*.

    *error_at* is in Unix seconds. A race between threads costs a line.
    """

    def __init__(self) -> None:
        self.error: DaemonUnavailable | None = None
        self.error_at = 0.0
        self.pending: list[tuple[int, str] | DaemonUnavailable] = []
        self._trouble = ""
        self._since = 0.0

    def failed(self, error: DaemonUnavailable, *, fallback: bool) -> None:
        """Note a request without a usable answer; with *fallback*, ids are made all the same."""
        self.error, self.error_at = error, time.time()
        if fallback:
            self.pending.append(error)
        # Not the text: that of the daemon may say how long a cause lasts.
        trouble = error.reason
        if trouble != self._trouble:
            if not self._trouble:
                self._since = elapsed()
            self._trouble = trouble
            what = "ids are made in this process" if fallback else "calls fail"
            self.pending.append((WARNING, f"{error}; {what} until it answers"))

    def answered(self, path: str) -> None:
        """Note that the daemon at *path* has given a block or a lease."""
        if self._trouble:
            seconds = elapsed() - self._since
            self._trouble = ""
            self.pending.append((INFO, f"uuidd at {path} answers again, after {seconds:.1f} s"))

    def leased(self, lane: int) -> None:
        """Note that a lane was leased."""
        self.pending.append((DEBUG, f"lane {lane} was leased"))

    def lease_ended(self) -> None:
        """Note that the daemon has ended the lease, or has itself ended."""
        self.pending.append((DEBUG, "the lease has ended"))

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
    if _warned_in != os.getpid():
        _warned_in = os.getpid()
        warnings.warn_explicit(
            f"{unavailable}; ids are made in this process, and are not marked safe,"
            " until it answers",
            RuntimeWarning,
            *caller(),
        )
