"""Turns of users: of each one connection's requests are being answered, however many he has."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import AsyncIterator

import trio


class Turns:
    """Lets tasks that answer one user's requests do so one after the other.

    They would all run between two turns of another user's else. *unread* counts the connections
    of each whose replies wait to be read.
    """

    def __init__(self) -> None:
        self._locks: dict[int, trio.Lock] = {}
        self.unread: Counter[int] = Counter()

    @contextlib.asynccontextmanager
    async def turn(self, uid: int) -> AsyncIterator[None]:
        """Enter when it is the turn of this task of *uid*; after it, others have theirs."""
        lock = self._locks.setdefault(uid, trio.Lock())
        try:
            async with lock:
                yield
                await trio.lowlevel.checkpoint()
        finally:
            told = lock.statistics()
            if not told.locked and not told.tasks_waiting:
                self._locks.pop(uid, None)
