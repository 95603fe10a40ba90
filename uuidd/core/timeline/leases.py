"""Leases: lanes whose holders read the clock themselves, up to a horizon that they are shown.

Theory of operation

1. A block is a run of past ticks. A *lease* is a lane of the open generation that one connection
   holds. Its holder uses the ticks of this lane as time passes, without asking for each.
2. The *page* is memory that the daemon writes and all holders read: a horizon, and for each lane a
   token, 0 if nobody holds it. A holder reads UTC, then the horizon, then its token. If the token
   is its own and UTC is before the horizon, it uses ticks up to that UTC, after the last one that
   it used.
3. So what a holder may have used is bounded by the horizon that it could see, and by nothing else.
   The daemon's own readings of UTC prove nothing: UTC may have gone ahead and come back between
   two of them. Each of the rules 4 to 7, left out, lets a tick come twice:
4. The horizon is raised in the page only after the save that allows it has completed.
5. When a lease ends, its token is cleared first. Then the lane rests: its next holder begins at the
   horizon that the page had, not at now.
6. The tokens of all lanes are cleared, and the *floor* is set to *top*, before another generation
   is opened, and when UTC was set back. Top is the highest horizon that a holder of a lane of the
   open generation could see. Nothing is leased before UTC has passed the floor. The steady kinds
   need this: their ids hold the lane, and not the generation.
7. The state keeps a *mark* past every horizon that a holder ever saw. It is the floor of the next
   start.
8. The mark of a generation counts its leased lanes as used up to top. Rule 7 would do, but so v1
   and v6 rest on their own marks too.
9. The page also has an *epoch*, a counter. It moves on when the daemon learns that its machine was
   cloned, because a copy of each holder then has the same lease, the same blocks and the same
   random bits. The tokens are cleared before that: so who has read the new epoch, and then finds
   its token in the page, has a lease that was granted after the clone.

A holder that pauses between two of its steps does no harm: it read the horizon before the token, so
the horizon that bounds it is not later than the one in the page when the token was cleared.

A page lives as long as its daemon. After a restart, holders may go on with the old page up to the
horizon there, because rules 7 and 8 keep the new daemon behind it.

While nobody holds a lease nobody reads the horizon, so then the next grant may lower it.
"""

from __future__ import annotations

from collections.abc import MutableSequence

from uuidd.core.ids.nodes import RandomBits
from uuidd.core.timeline.generation import BLOCK_LANES, LANE_BITS, LANES, Generation
from uuidd.core.timeline.page import (
    DUE_AT,
    EPOCH_AT,
    HORIZON_AT,
    MAGIC_AT,
    PAGE_MAGIC,
    PAGE_WORDS,
    TOKEN_BITS,
    TOKENS_AT,
    Lease,
)
from uuidd.core.typed import NamedTuple

RESERVED = LANES - BLOCK_LANES
"""Lanes that can be leased: all but those for blocks."""

PER_USER = RESERVED // 2
"""Lanes that one user may hold."""


class NoLease(NamedTuple):
    """Why no lane can be leased now. It is returned: clients ask often, and to raise takes longer.

    *reason* is a word for counts. None will be leased within *wait* ticks, unless UTC is set; 0 if
    that is not known.
    """

    reason: str
    wait: int = 0


class Leases:
    """The leased lanes of the open generation, whose holders read *page*.

    Nothing is leased before UTC has passed *floor*. *used* is set while holders make ids, or are
    about to, until the next save begins. *granted* counts leases, *revoked* those that were ended
    though their holders were there.

    *top* is past all ticks that holders of lanes of the open generation may have used. *epoch* is
    the one in the page: how often holders were told to drop all that they have.
    """

    def __init__(self, page: MutableSequence[int] | memoryview | None = None) -> None:
        self._page = [0] * PAGE_WORDS if page is None else page
        self.users: dict[int, int] = {}
        """The user of each lane that is held."""
        self.rests: dict[int, tuple[int, int]] = {}
        """Of each lane that was held, the last user, and the tick at which its next holder begins.
        """
        self._refused: dict[int, tuple[str, int, int]] = {}
        """The last refusal of each user since a lease ended: why, when, and the first tick at which
        one of the lanes that it counted has rested, 0 if none of them rests."""
        self._reach = 0
        self.floor = self.top = 0
        self.granted = 0
        self.revoked = 0
        self.used = False
        self._page[MAGIC_AT] = PAGE_MAGIC
        self.epoch = self._page[EPOCH_AT]

    def grant(
        self, generation: Generation, limit: int, *, uid: int, now: int, random: RandomBits
    ) -> Lease | NoLease:
        """Lease a lane of *generation*, the open one, to a connection of the user *uid*.

        If there is none, that changes nothing.
        """
        lane = self.free_lane(generation, limit, uid=uid, now=now)
        if isinstance(lane, NoLease):
            return lane
        if not self.users:
            self._show(limit)
        self.users[lane] = uid
        self.granted += 1
        self.used = True
        # Never 0, which stands for no holder.
        token = random(TOKEN_BITS - 1) << 1 | 1
        self._page[TOKENS_AT + lane] = token
        return Lease(
            lane,
            generation.number << LANE_BITS | lane,
            generation.node,
            token,
            max(self.floor, generation.begin, self.rests.pop(lane, (uid, 0))[1]),
        )

    def free_lane(self, generation: Generation, limit: int, *, uid: int, now: int) -> int | NoLease:
        """Return the lane of *generation*, the open one, that *uid* would be leased now.

        *limit* is the horizon of this generation: what the disk allows it.

        There is none for ``save`` until a save completes, for ``floor`` until UTC has passed the
        floor, for ``user`` if the user holds half of the lanes, for ``lanes`` if all are held or
        rest.
        """
        if limit == 0:
            return NoLease("save")
        begin = max(self.floor, generation.begin)
        if begin > now:
            return NoLease("floor", begin - now)
        if uid in self._refused:
            # Users that hold all their lanes ask again and again. To count them takes long.
            reason, since, rested = self._refused[uid]
            if since <= now and (now < rested or not rested):
                return NoLease(reason, max(0, (rested or self.horizon) - now))
        # A lane that rests counts for its last holder's user, whose next processes wait for it.
        resting = {lane: user for lane, (user, until) in self.rests.items() if until > now}
        taken = resting | self.users
        if sum(user == uid for user in taken.values()) >= PER_USER:
            reason, counted = "user", [lane for lane, user in resting.items() if user == uid]
        elif len(taken) == RESERVED:
            reason, counted = "lanes", list(resting)
        else:
            return next(lane for lane in range(BLOCK_LANES, LANES) if lane not in taken)
        rested = min((self.rests[lane][1] for lane in counted), default=0)
        self._refused[uid] = reason, now, rested
        # A lane whose lease ends from now on rests until the horizon at least.
        return NoLease(reason, max(0, (rested or self.horizon) - now))

    def release(self, lease: Lease) -> None:
        """End *lease*, because its connection ended. It does nothing if it has ended already."""
        if self._page[TOKENS_AT + lease.lane] != lease.token:
            return
        self._page[TOKENS_AT + lease.lane] = 0
        self._refused.clear()
        self.rests[lease.lane] = self.users.pop(lease.lane), self.horizon

    def revoke(self) -> int:
        """End all leases; return how many there were. None is granted before UTC has passed top."""
        ended = len(self.users)
        for lane in self.users:
            self._page[TOKENS_AT + lane] = 0
        self.users.clear()
        self._refused.clear()
        self.revoked += ended
        self.floor = max(self.floor, self.top)
        # The floor stands for them: no lane rests past top.
        self.rests.clear()
        return ended

    def leave_generation(self) -> None:
        """End all leases, because another generation is going to be opened."""
        self.revoke()
        self.top = 0

    def renew(self) -> None:
        """End all leases, and all blocks of holders of the page: the machine was cloned.

        Another generation has to be opened then, or a volatile node to be used.
        """
        self.leave_generation()
        self.epoch += 1
        self._page[EPOCH_AT] = self.epoch

    def begin_save(self, shown: int, *, now: int) -> int:
        """Return the mark to save. *shown* is what holders will be shown once that is done.

        It is the mark of the open generation in the same state, 0 if none is open.
        """
        self.used = False
        if shown:
            self._reach = shown - now
        return max(self.floor, self.top, shown)

    def end_save(self, limit: int) -> None:
        """Show holders the horizon *limit*: what the disk allows the open generation now.

        It is not below the one that they see, because each save since then covers that one. The
        mark of leases does not bound it: where this generation is open, that is not below its mark.
        """
        if self.users:
            self._show(limit)

    @property
    def horizon(self) -> int:
        """The tick at which holders stop, until a later one is shown."""
        return self._page[HORIZON_AT]

    @property
    def out(self) -> int:
        """The number of leases that are held."""
        return len(self.users)

    def _show(self, horizon: int) -> None:
        self._page[DUE_AT] = horizon - self._reach // 2
        self._page[HORIZON_AT] = horizon
        self.top = max(self.top, horizon)
