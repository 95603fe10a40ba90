"""Which connections are let in: limits in all and for each user, and which ones make room.

Theory of operation

1. Admission counts open connections, in all and for each user, against two limits. Root and the
   daemon's own user are exempt from the limit for each user, and the last connection in all is kept
   for them: an administrator can ask a full daemon what is wrong.
2. A connection over a limit is *rejected*: a task reads its request, answers `busy`, and closes it.
   Only so many wait for that at the same time; others are closed at once.
3. Before that, it tries to make room. It closes connections that have sent nothing for as long as a
   request may take, wherever they or their user are at a limit.
4. If there are none, and all connections are taken, it closes some of the user who has the most, so
   that a few users together cannot shut out all others for good. Root and the daemon's own user
   make room for themselves too, so that they can always ask.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from math import ceil

import trio

from uuidd.server.client import Client
from uuidd.server.settings import MAX_REJECTIONS, Limits

PAUSE = 1.0
"""Seconds between two searches for silent connections: a search takes long."""

EVICTED_PART = 64
"""Of this many connections that a user has too many, one is closed at once, but at least one in
all: to find many takes as long as to find one."""


class Admission:
    """The *open* connections, counted by user, against *limits*, and those *rejected* that wait.

    *trusted* are the uids of root and of the daemon's own user, *own_uid*. They have no limit of
    theirs. *outsiders*, the uid of all users outside of the daemon's user namespace, is never
    trusted.
    """

    def __init__(self, limits: Limits, *, own_uid: int, outsiders: int | None = None) -> None:
        self._limits = limits
        self.trusted = frozenset({0, own_uid} - {outsiders})
        self._by_uid: dict[int, int] = {}
        self._looked_at = -PAUSE
        self.open: set[Client] = set()
        self.rejected: set[Client] = set()
        self.highest = 0

    def refusal(self, uid: int) -> str:
        """Return the reason why there is no room for a connection of *uid*; "" if there is."""
        limits, count = self._limits, len(self.open)
        # Nearly always there is room, which is cheaper to see than what is kept for whom.
        if count + 1 >= limits.connections and self.lack(uid):
            most = "the most there may be"
            if count < limits.connections:
                most = "and the last one is kept for root and uuidd's own user"
            return f"{count} connections are open, {most}; try again later"
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
        return max(0, len(self.open) + 1 + kept - self._limits.connections)

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

    def enter(self, client: Client) -> bool:
        """Take in a new connection, also one over a limit; return whether there is room for it."""
        if client.refusal:
            if len(self.rejected) >= MAX_REJECTIONS:
                return False
            self.rejected.add(client)
            return True
        self.open.add(client)
        self._by_uid[client.uid] = self._by_uid.get(client.uid, 0) + 1
        self.highest = max(self.highest, len(self.open))
        return True

    def leave(self, client: Client) -> None:
        """Note that a connection has ended."""
        if client.refusal:
            self.rejected.remove(client)
            return
        self.open.remove(client)
        self._by_uid[client.uid] -= 1
        if not self._by_uid[client.uid]:
            del self._by_uid[client.uid]

    def make_room(self, uid: int, drop: Callable[[Client], bool]) -> bool:
        """Make room for a connection of *uid*; return whether there is any now.

        *drop* closes a client at once if it is between two requests; it returns whether it was.
        """
        silent = self._silent()
        for client in silent:
            client.tally.refuse("silent")
            drop(client)
        if silent:
            return True
        largest, surplus = self.largest(uid)
        if not surplus:
            return False
        theirs = [client for client in self.open if client.uid == largest]
        # Those that have sent nothing yet come first: nobody misses them.
        theirs.sort(key=lambda client: client.silent_since is None)
        number = max(ceil(surplus / EVICTED_PART), min(surplus, self.lack(uid)))
        evicted = list(islice(filter(drop, theirs), number))
        for client in evicted or theirs[:number]:
            client.tally.refuse("made_room")
            if not evicted:
                # In the middle of a request, which ends a moment later; then there is room.
                client.end_reading()
        return bool(evicted)

    def _silent(self) -> list[Client]:
        """Return those that make room by their silence; none if they were looked for just now."""
        now = trio.current_time()
        if now < self._looked_at + PAUSE:
            return []
        self._looked_at = now
        return [
            client
            for client in self.open
            if client.silent_since is not None
            and client.silent_since <= now - self._limits.request_seconds
            and self.refusal(client.uid)
        ]
