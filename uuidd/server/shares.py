"""How ticks are shared out among users while there are fewer than they want.

Theory of operation

1. As long as everybody gets what he asks for, nothing is counted.
2. A user who was given less than he asked for, or nothing, is *wanting* for a while. While two or
   more are, each has an account, into which his share flows: the ticks that there are, divided by
   their number. What he is given is drawn from it; as long as it is overdrawn he waits.
3. So who wants little gets it, however much others want; and a user who is alone gets all.
"""

from __future__ import annotations

from math import ceil

from uuidd.core.ids.timebased import TICKS_PER_SECOND

WANTING = TICKS_PER_SECOND // 5
"""Ticks for which a user counts as wanting. Longer than a request waits for room."""

SAVED = TICKS_PER_SECOND // 100
"""Ticks for which an account gathers what is not drawn."""


class OverShare(Exception):
    """A user has overdrawn his share, one of *parts*; after *wait* ticks he no longer has."""

    def __init__(self, wait: int, parts: int) -> None:
        super().__init__(f"one share of {parts} is overdrawn for {wait} ticks")
        self.wait = wait
        self.parts = parts


class _Account:
    __slots__ = ("at", "balance", "until")

    def __init__(self, at: int) -> None:
        self.at = at
        self.balance = 0.0
        self.until = at


class Shares:
    """Shares of *rate* ticks a tick. *at* is always a reading of CLOCK_BOOTTIME, in ticks."""

    def __init__(self, rate: int) -> None:
        self._rate = rate
        self._accounts: dict[int, _Account] = {}
        self._swept_at = 0
        self.contended = False

    def check(self, uid: int, *, at: int) -> None:
        """Raise OverShare if *uid* has overdrawn his share."""
        if at - self._swept_at > SAVED:
            self._sweep(at)
        account = self._accounts.get(uid)
        if account is None or not self.contended:
            return
        parts = len(self._accounts)
        share = self._rate / parts
        gathered = account.balance + (at - account.at) * share
        account.balance, account.at = min(gathered, SAVED * share), at
        if gathered < 0:
            raise OverShare(ceil(-gathered / share), parts)

    def draw(self, uid: int, *, asked: int, given: int, at: int) -> None:
        """Note that *uid* was given so many ticks of those that he asked for."""
        account = self._accounts.get(uid)
        if given < asked:
            if account is None:
                account = self._accounts[uid] = _Account(at)
                self.contended = len(self._accounts) > 1
            account.until = at + WANTING
        if account is not None and self.contended:
            account.balance -= given

    def _sweep(self, at: int) -> None:
        self._swept_at = at
        self._accounts = {
            uid: account for uid, account in self._accounts.items() if account.until > at
        }
        self.contended = len(self._accounts) > 1
