"""Who may connect: bounds in all and for each user, and whom they spare."""

from __future__ import annotations

from collections import Counter

from uuidd.server.limits import TURNED_AWAY, Limits


class Admission:
    """Counts connections, by user, against *limits*. Root and *own_uid* have no share of theirs.

    *outsiders* is the uid of all users outside of the daemon's user namespace. It is never spared.
    """

    def __init__(self, limits: Limits, *, own_uid: int, outsiders: int | None = None) -> None:
        self.limits = limits
        self._spared = {0, own_uid} - {outsiders}
        self._by_uid: Counter[int] = Counter()
        self.open = 0
        self.highest = 0
        self.turned_away = 0
        self._being_told = 0

    def refusal(self, uid: int) -> str:
        """Give the reason why there is no room for a connection of *uid*; "" if there is."""
        if self.open >= self.limits.connections:
            return f"{self.open} connections are open, the most there may be; try again later"
        if uid not in self._spared and self._by_uid[uid] >= self.limits.connections_per_uid:
            return (
                f"uid {uid} has {self._by_uid[uid]} connections open, the most one user may have;"
                " share one, or close some"
            )
        return ""

    def greediest(self, uid: int) -> tuple[int, int]:
        """Give the user with the most connections, and how many he could lose to *uid*.

        None unless all connections are taken; and no more than leave him as many as *uid* then has,
        or the two would end each other's for ever.
        """
        if self.open < self.limits.connections:
            return uid, 0
        greediest = max(self._by_uid, key=self._by_uid.__getitem__)
        return greediest, max(0, self._by_uid[greediest] - self._by_uid[uid] - 1)

    def enter(self, uid: int) -> str:
        """Count a connection of *uid* in and give ""; or give the reason why there is no room."""
        refusal = self.refusal(uid)
        if not refusal:
            self.open += 1
            self._by_uid[uid] += 1
            self.highest = max(self.highest, self.open)
        return refusal

    def leave(self, uid: int) -> None:
        """Count a connection of *uid* out."""
        self.open -= 1
        self._by_uid[uid] -= 1
        if not self._by_uid[uid]:
            del self._by_uid[uid]

    def begin_telling(self) -> bool:
        """Note one turned away; the answer is whether it may wait to be told why."""
        self.turned_away += 1
        if self._being_told >= TURNED_AWAY:
            return False
        self._being_told += 1
        return True

    def end_telling(self) -> None:
        """Note that one turned away has gone."""
        self._being_told -= 1
