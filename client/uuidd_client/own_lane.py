"""The lane of the daemon's that a connection has leased, and the ticks that are cut from it."""

from __future__ import annotations

from math import inf

from uuidd.core.ids.layouts import Origin
from uuidd.core.ids.ticks import TICKS_PER_SECOND
from uuidd.core.timeline.page import DUE_AT, HORIZON_AT, TOKENS_AT
from uuidd.core.wire.methods import seconds_to_ask_again
from uuidd_client.connection import Connection
from uuidd_client.errors import DaemonUnavailable
from uuidd_client.lease import Holding
from uuidd_client.notices import Notices
from uuidd_client.source import LatestSteady, utc_tick
from uuidd_client.watch import NEVER, Watch

LEASE_AGE = 0.001
"""How old, in seconds, an id of a lease may become before it is drawn."""

TELL_TICKS = TICKS_PER_SECOND // 20
"""How often a daemon that has restarted is told that ids are made under the lease of the last one.
"""

NO_LEASE_SECONDS = 1.0
"""Seconds after which a lease that was not granted is asked for again, unless the daemon says to
wait for longer."""


class OwnLane:
    """The ticks of a lane that *connection* leases, for the ids of one process.

    Those of the steady kinds are noted in *latest*, so that blocks and the fallback go on after
    them. *leases* counts those that were granted. *begin*, the first tick of the lane that may be
    used, and *origin* are of the time of the last call of ``now``. *watch* is that of the lease.
    """

    def __init__(
        self, connection: Connection, latest: LatestSteady | None, notices: Notices | None = None
    ) -> None:
        self._connection = connection
        self._clock = connection.clock
        self.latest = latest
        self.lease: Holding | None = None
        self.leases = 0
        self._notices = notices or Notices("ids", connection.clock)
        self._ask_at = inf
        self._stalled = False
        self.begin = 0
        self.origin = Origin(0)
        self.watch = NEVER

    def now(self) -> int:
        """Return the tick of now if it is in the lane, and may be used; otherwise 0.

        A tick that was used before is also returned: the caller has to compare.
        """
        lease = self.lease or self._ask()
        if lease is None:
            return 0
        now = utc_tick(self._clock)
        if not lease.allows(now):
            # The page of a daemon that has ended stays as it was.
            if lease.ended or lease.page is not self._connection.page:
                self.lease = None
                self._notices.lease_ended()
            self._stalled = True
            return 0
        if self._stalled:
            # The daemon has saved again, which needed no request of this process.
            self._stalled = False
            self._notices.answered(self._connection.path)
        if now >= lease.tell_at:
            self._tell(lease, now)
        self.begin, self.origin = lease.begin, lease.origin
        return now

    def note(self, end: int) -> None:
        """Note that ticks before *end* are used."""
        if self.latest is not None:
            self.latest.note(end)

    def end(self) -> int:
        """Return a tick that lies after all that this process has used until now."""
        now = utc_tick(self._clock) + 1
        return now if self.latest is None else max(now, self.latest.end)

    def drop(self) -> None:
        """Forget the lease, because its connection is being closed."""
        self.lease = None

    def _tell(self, lease: Holding, now: int) -> None:
        """Tell the daemon that ids are made, if it has to know, and note when to look again."""
        words, connection = lease.words, self._connection
        if now < words[DUE_AT] and lease.page is connection.page:
            lease.tell_at = words[DUE_AT]
            return
        connection.tell_in_use()
        # Once for each horizon. After a restart the next daemon is told again and again, so that it
        # has a saved horizon, and need not wait for its disk, when this lease is over.
        ours = lease.page is connection.page
        lease.tell_at = words[HORIZON_AT] if ours else now + TELL_TICKS

    def _ask(self) -> Holding | None:
        """Return a lease that is asked for now, or None.

        Not at the first call: a program that makes a few ids, and ends, leaves the lanes to others.
        """
        now = self._clock.elapsed()
        if self._ask_at == inf:
            self._connection.check_may_wait()
            self._ask_at = 0.0
        elif now >= self._ask_at:
            self._connection.check_may_wait()
            self._ask_at = now + NO_LEASE_SECONDS
            try:
                lease = self._connection.lease()
            except DaemonUnavailable as error:
                seconds = seconds_to_ask_again(error.cause)
                self._ask_at = now + max(NO_LEASE_SECONDS, seconds)
                return None
            # An epoch that begins before this is read has cleared the token.
            self.watch = Watch(lease.page, lease.page.epochs[0])
            self.lease = lease
            self.leases += 1
            self._notices.leased(lease.at - TOKENS_AT)
            self._notices.answered(self._connection.path)
        return self.lease
