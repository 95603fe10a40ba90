"""Fair shares: of the ticks, while users want more than there are, and of the daemon's time.

Theory of operation

1. As long as every user gets what it asks for, or only one user asks, nothing is counted.
2. Once a user gets less than it asked for, and another user took the last block, the ticks are
   *contended* for a while. Then each user has an account. The user's share of the new ticks flows
   into it, and the ticks that the user takes are drawn from it. A user whose account is overdrawn
   waits.
3. A share is the new ticks divided by the number of users who want more than their share. So a user
   who wants little gets it, however much others want.
4. A block from a single lane uses up the free ticks before it as well. So it costs the time since
   the last block, however few ticks it has, but not the time in which nobody took any.
5. The daemon serves all users in one thread, so whatever it does at once delays all others. Its
   time is shared by turns of TURN_SECONDS, round robin: while one connection's requests are
   answered, no other connection of the same user is served. The poller does that for silent
   connections, a lock for each user does it for tasks (acceptor.py).
6. An answer that has to wait yields a Pause. What it waits for takes no turn, and neither does the
   rest of the answer, which is short. None is yielded by an answer that takes long: between two
   pieces of it others have their turns, and it goes on in one of its user's own. So of all that a
   user asks for, only one answer at a time is half made and in memory.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Awaitable, Callable, Generator, Iterator
from math import ceil

from uuidd.core.ids.ticks import TICKS_PER_SECOND
from uuidd.core.timeline.outcomes import NoneFree

Pause = Callable[[], Awaitable[object]] | None
"""What to await before an answer goes on. None: others have their turn, but none of the user."""

Answer = Generator[Pause, None, None]
"""The answer to a request. At its end it has put the reply, if there is one, into *unsent* of the
client. To return the reply would raise StopIteration at each request, which takes as long as a
call."""

TURN_SECONDS = 0.0001
"""A user's turn: some five requests. A client that sends one request at a time waits for as long at
each greedy user."""

CONTENDED = TICKS_PER_SECOND // 5
"""For how many ticks a shortage is remembered: longer than a request waits for free ticks."""

MAX_CREDIT = TICKS_PER_SECOND // 100
"""For how many ticks an account gathers the share of a user who takes nothing."""

IDLE_CREDIT = TICKS_PER_SECOND // 10_000
"""How much of the time since the last block a block costs at most: older ticks nobody wanted."""

COUNTED = TICKS_PER_SECOND // 1000
"""After how many ticks the users who have a share are counted again."""


class OverShare(NoneFree):
    """No tick is free for this user, whose share, one of *parts*, is overdrawn."""

    def __init__(self, wait: int, parts: int) -> None:
        super().__init__(wait)
        self.parts = parts


class _Account:
    __slots__ = ("at", "balance", "wants_until")

    def __init__(self, at: int) -> None:
        self.at = at
        self.balance = 0.0
        self.wants_until = at


class Shares:
    """The users' accounts of the ticks of *lanes* lanes.

    *at* is always a reading of CLOCK_BOOTTIME, in ticks. *last* is the user of the last block.
    """

    def __init__(self, lanes: int) -> None:
        self._lanes = lanes
        self._accounts: dict[int, _Account] = {}
        self._until = 0
        self._drawn_at = 0
        self._counted_at = 0
        self._parts = 1
        self._pruned_at = 0
        self.contended = False
        self.last: int | None = None

    def check(self, uid: int, *, at: int) -> None:
        """Raise OverShare if the account of *uid* is overdrawn."""
        if at >= self._until:
            self._accounts.clear()
            self.contended = False
            return
        if at - self._counted_at >= COUNTED:
            self._count(at)
        account = self._account(uid, at)
        share = self._lanes / self._parts
        gathered = account.balance + (at - account.at) * share
        account.balance, account.at = min(gathered, MAX_CREDIT * share), at
        if gathered < 0:
            account.wants_until = at + CONTENDED
            raise OverShare(ceil(-gathered / share), self._parts)

    def draw(self, uid: int, *, asked: int, given: int, at: int) -> None:
        """Note that *uid* asked for *asked* ticks, and was given *given* of them."""
        if given < asked and self.last not in (uid, None):
            if not self.contended:
                self.contended = True
                self._drawn_at = at
            self._until = at + CONTENDED
            for user in (uid, self.last):
                self._account(user, at).wants_until = self._until
            self._count(at)
        if self.contended and given:
            passed = min(at - self._drawn_at, IDLE_CREDIT) if self._lanes == 1 else 0
            self._account(uid, at).balance -= max(given, passed)
            self._drawn_at = at

    def _account(self, uid: int | None, at: int) -> _Account:
        assert uid is not None  # noqa: S101  (draw has seen to it; for the type checker)
        account = self._accounts.get(uid)
        if account is None:
            account = self._accounts[uid] = _Account(at)
        return account

    def _count(self, at: int) -> None:
        self._counted_at = at
        if at - self._pruned_at >= CONTENDED:
            self._pruned_at = at
            self._accounts = {
                uid: account
                for uid, account in self._accounts.items()
                if max(account.at, account.wants_until) > at - CONTENDED
            }
        wanting = sum(account.wants_until > at for account in self._accounts.values())
        self._parts = max(1, wanting)


@contextlib.contextmanager
def counting(counter: Counter[int], uid: int) -> Iterator[None]:
    """Count one more of a user while the context lasts."""
    counter[uid] += 1
    try:
        yield
    finally:
        counter[uid] -= 1
        if not counter[uid]:
            del counter[uid]
