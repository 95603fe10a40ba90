"""Where blocks come from: the daemon, or this process itself while there is none."""

from __future__ import annotations

import os
import time
import warnings
from typing import TYPE_CHECKING, Any

from uuidd.core.ids.timebased import TICKS_PER_SECOND
from uuidd_client.clocks import elapsed, utc_tick
from uuidd_client.connection import Connection, DaemonUnavailable

if TYPE_CHECKING:
    from uuidd.core.timeline import Block
    from uuidd.core.timeline.volatile import Volatile

RETRY = 1.0
"""Seconds after which a daemon that was not there is tried again."""

MAX_RETRY = 60.0
"""The most seconds until a daemon that let us wait in vain is tried again."""


class Source:
    """Gives blocks from *connection* and, if *fallback*, from this process when that fails."""

    def __init__(self, connection: Connection, *, fallback: bool) -> None:
        self.connection = connection
        self._fallback = fallback
        self._retry = 0.0
        self._retry_at = 0.0
        self._volatile: Volatile | None = None

    def take(self, count: int) -> tuple[Block, bool]:
        """Give up to *count* ticks, and whether they came from the daemon.

        Raises DaemonUnavailable when they cannot, and there is no fallback.
        """
        if not self._fallback:
            return self.connection.take(count), True
        if elapsed() >= self._retry_at:
            try:
                block = self.connection.take(count)
            except DaemonUnavailable as unavailable:
                self._put_off(unavailable)
            else:
                self._retry = 0.0
                return block, True
        return self._take_here(count), False

    def _put_off(self, unavailable: DaemonUnavailable) -> None:
        self._retry = min(2 * self._retry, MAX_RETRY) if unavailable.late and self._retry else RETRY
        self._retry_at = elapsed() + self._retry
        _warn(unavailable)

    def _take_here(self, count: int) -> Block:
        from uuidd.core.timeline import NoneFree
        from uuidd.core.timeline.volatile import Volatile

        if self._volatile is None:
            self._volatile = Volatile(_random_bits)
        while True:
            try:
                return self._volatile.take(count, now=utc_tick())
            except NoneFree as none:
                # UTC stepped back a little: 10 ms at most, or the node would be another.
                time.sleep(none.wait / TICKS_PER_SECOND)


def may_fall_back(wanted: Any) -> bool:
    """Give whether to fall back: if it is *wanted*, and $UUIDD_FALLBACK is not 0."""
    return bool(wanted) and os.environ.get("UUIDD_FALLBACK") != "0"


def _random_bits(count: int) -> int:
    return int.from_bytes(os.urandom((count + 7) // 8), "big") >> -count % 8


_warned_in = 0


def _warn(unavailable: DaemonUnavailable) -> None:
    """Warn once a process, whatever number of clients it has."""
    global _warned_in
    if _warned_in != os.getpid():
        _warned_in = os.getpid()
        warnings.warn(
            f"{unavailable}; ids are made in this process, and are not marked safe,"
            " until it answers",
            RuntimeWarning,
            stacklevel=2,
        )
