"""Turns of users: of each one connection's requests are being answered, however many he has."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import AsyncIterator

import trio

TURN_SECONDS = (0.0001, 0.0005)
"""For how long requests of one connection are answered before others have a turn: the least and the
most."""

ROUND_SECONDS = 0.005
"""How long the turns of all users together may take, as long as each has the least. Each user has
one in every round of trio's loop, and so has the save of the state, which takes some rounds."""


class Turns:
    """Lets tasks that answer one user's requests do so one after the other.

    They would all run between two turns of another user's else. *unread* counts the connections
    of each whose replies wait to be read.
    """

    def __init__(self) -> None:
        self._locks: dict[int, trio.Lock] = {}
        self.unread: Counter[int] = Counter()

    @property
    def seconds(self) -> float:
        """How long a turn may take now. It is shorter where many users have one."""
        least, most = TURN_SECONDS
        return max(least, min(most, ROUND_SECONDS / max(1, len(self._locks))))

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
