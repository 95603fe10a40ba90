"""Turns of users: of each one connection's requests are being answered, however many it has."""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable

import trio

from uuidd.server.requests import TURN_SECONDS


class Turns:
    """Lets the tasks that answer one user's requests do so one after the other.

    Otherwise all of them would run between two turns of another user. *unread* counts each user's
    connections whose replies wait to be read. *monotonic* is the clock that ends a turn.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.monotonic = monotonic
        self._locks: dict[int, trio.Lock] = {}
        self.unread: Counter[int] = Counter()

    @contextlib.asynccontextmanager
    async def turn(self, uid: int) -> AsyncIterator[float]:
        """Wait for a turn of *uid*, and enter the time when it ends; then others have theirs."""
        lock = self._locks.setdefault(uid, trio.Lock())
        try:
            # To await a lock that is free would be another turn of the others.
            try:
                lock.acquire_nowait()
            except trio.WouldBlock:
                await lock.acquire()
            try:
                yield self.monotonic() + TURN_SECONDS
                await trio.lowlevel.checkpoint()
            finally:
                lock.release()
        finally:
            told = lock.statistics()
            if not told.locked and not told.tasks_waiting:
                self._locks.pop(uid, None)
