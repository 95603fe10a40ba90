"""Which connections are let in: limits in all and for each user, and which ones make room.

Theory of operation

1. Admission counts open connections, in all and for each user, against two limits. Root and the
   daemon's own user are exempt from the limit for each user, and the last connection in all is kept
   for them: an administrator can ask a full daemon what is wrong.
2. A connection over a limit is *rejected*: a task reads its request, answers `busy`, and closes it.
   Only so many wait for that at the same time; others are closed at once.
3. Before that, the Evictor tries to make room. It closes connections that have sent nothing for as
   long as a request may take, wherever they or their user are at a limit.
4. If there are none, and all connections are taken, it closes some of the user who has the most, so
   that a few users together cannot shut out all others for good. Root and the daemon's own user
   make room for themselves too, so that they can always ask.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from itertools import islice
from math import ceil

import trio

from uuidd.server.client import Client
from uuidd.server.settings import Limits

PAUSE = 1.0
"""Seconds between two searches for silent connections: a search takes long."""

EVICTED_PART = 64
"""Of this many connections that a user has too many, one is closed at once, but at least one in
all: to find many takes as long as to find one."""


class Admission:
    """Counts connections, by user, against *limits*.

    *rejected* counts those over a limit. *trusted* are the uids of root and of the daemon's own
    user, *own_uid*. They have no limit of theirs. *outsiders*, the uid of all users outside of the
    daemon's user namespace, is never trusted.
    """

    def __init__(self, limits: Limits, *, own_uid: int, outsiders: int | None = None) -> None:
        self._limits = limits
        self.trusted = frozenset({0, own_uid} - {outsiders})
        self._by_uid: dict[int, int] = {}
        self.open = 0
        self.highest = 0
        self.rejected = 0

    def refusal(self, uid: int) -> str:
        """Return the reason why there is no room for a connection of *uid*; "" if there is."""
        limits = self._limits
        # Nearly always there is room, which is cheaper to see than what is kept for whom.
        if self.open + 1 >= limits.connections and self.lack(uid):
            most = "the most there may be"
            if self.open < limits.connections:
                most = "and the last one is kept for root and uuidd's own user"
            return f"{self.open} connections are open, {most}; try again later"
        most_of_uid = limits.connections_per_uid
        if self._by_uid.get(uid, 0) >= most_of_uid and uid not in self.trusted:
            return (
                f"uid {uid} has {most_of_uid} connections open, the most one user may have;"
                " share one, or close some"
            )
        return ""

    def lack(self, uid: int) -> int:
        """Return how many connections have to end before *uid* may open one; 0 if none has to."""
        kept = uid not in self.trusted and self._limits.connections > 1
        return max(0, self.open + 1 + kept - self._limits.connections)

    def largest(self, uid: int) -> tuple[int, int]:
        """Return the user with the most connections, and how many of them may make room for *uid*.

        None unless there is a ``lack`` of connections for *uid*. The user keeps as many as *uid*
        then has; otherwise the two would close each other's connections for ever. A trusted user
        for whom there is no such user gives up one of its own, but not its only one.
        """
        if not self.lack(uid):
            return uid, 0
        own = self._by_uid.get(uid, 0)
        largest = max(self._by_uid, key=self._by_uid.__getitem__)
        surplus = self._by_uid[largest] - own - 1
        if surplus > 0:
            return largest, surplus
        # Or a health check would take a daemon for dead when its user has all connections.
        return uid, int(own > 1 and uid in self.trusted)

    def enter(self, uid: int) -> None:
        """Count a new connection of *uid*, for which there is room."""
        self.open += 1
        self._by_uid[uid] = self._by_uid.get(uid, 0) + 1
        if self.open > self.highest:
            self.highest = self.open

    def leave(self, uid: int) -> None:
        """Note that a connection of *uid* has ended."""
        self.open -= 1
        self._by_uid[uid] -= 1
        if not self._by_uid[uid]:
            del self._by_uid[uid]


class Evictor:
    """Closes some of *clients* so that *admission* has room, and counts them by *refuse*.

    *drop* closes a client at once if it is between two requests; it returns whether it was.
    """

    def __init__(
        self,
        clients: Collection[Client],
        admission: Admission,
        drop: Callable[[Client], bool],
        refuse: Callable[[str], None],
    ) -> None:
        self._clients = clients
        self._admission = admission
        self._drop = drop
        self._refuse = refuse
        self._looked_at = -PAUSE

    def make_room(self, uid: int, seconds: float) -> bool:
        """Make room for a connection of *uid*; return whether there is any now.

        *seconds* is how long a connection may have sent nothing.
        """
        return self._evict_silent(seconds) or self._evict_of_largest(uid)

    def _evict_silent(self, seconds: float) -> bool:
        now = trio.current_time()
        if now < self._looked_at + PAUSE:
            return False
        self._looked_at = now
        silent = [
            client
            for client in self._clients
            if client.silent_since is not None
            and client.silent_since <= now - seconds
            and self._admission.refusal(client.uid)
        ]
        for client in silent:
            self._refuse("silent")
            self._drop(client)
        return bool(silent)

    def _evict_of_largest(self, uid: int) -> bool:
        largest, surplus = self._admission.largest(uid)
        if not surplus:
            return False
        theirs = [client for client in self._clients if client.uid == largest]
        # Those that have sent nothing yet come first: nobody misses them.
        theirs.sort(key=lambda client: client.silent_since is None)
        number = max(ceil(surplus / EVICTED_PART), min(surplus, self._admission.lack(uid)))
        evicted = list(islice(filter(self._drop, theirs), number))
        for client in evicted or theirs[:number]:
            self._refuse("made_room")
            if not evicted:
                # In the middle of a request, which ends a moment later; then there is room.
                client.end_reading()
        return bool(evicted)
