"""The lane of the daemon's that a connection has leased, and the ticks that are cut from it."""

from __future__ import annotations

from contextlib import suppress
from math import inf

from uuidd.core.timeline.block import LeasedBlock
from uuidd_client.connection import Connection
from uuidd_client.errors import DaemonUnavailable
from uuidd_client.lease import Holding
from uuidd_client.source import LatestSteady, utc_tick
from uuidd_client.system import elapsed

LEASE_AGE = 0.001
"""How old, in seconds, an id of a lease may become before it is drawn."""

NO_LEASE_SECONDS = 1.0
"""Seconds after which a lease that the daemon did not grant is asked for again."""


class OwnLane:
    """The ticks of a lane that *connection* leases, for the ids of one process.

    Those of the steady kinds are noted in *latest*, so that blocks and the fallback go on after
    them.
    """

    def __init__(self, connection: Connection, latest: LatestSteady | None) -> None:
        self._connection = connection
        self._latest = latest
        self._lease: Holding | None = None
        self._ask_at = inf

    def cut(self, count: int, *, after: int) -> LeasedBlock | None:
        """Return the latest ticks until now, at most *count*; None if none can be used.

        None lies before *after*.
        """
        lease = self._lease
        if lease is None:
            lease = self._ask()
            if lease is None:
                return None
        now = utc_tick()
        if not lease.allows(now):
            if lease.ended:
                self._lease = None
            return None
        first = max(now + 1 - count, after, lease.begin)
        if first > now:
            return None
        if lease.due(now):
            self._connection.tell_in_use()
        if self._latest is not None:
            self._latest.note(now + 1)
        return LeasedBlock(first, now + 1 - first, lease.lane, lease.clock_seq, lease.node)

    def end(self) -> int:
        """Return a tick that lies after all that this process has used until now."""
        now = utc_tick() + 1
        return now if self._latest is None else max(now, self._latest.end)

    def drop(self) -> None:
        """Forget the lease, because its connection is being closed."""
        self._lease = None

    def _ask(self) -> Holding | None:
        """Return a lease that is asked for now, or None.

        Not at the first call: a program that makes a few ids, and ends, leaves the lanes to others.
        """
        now = elapsed()
        if self._ask_at == inf:
            self._ask_at = 0.0
        elif now >= self._ask_at:
            self._ask_at = now + NO_LEASE_SECONDS
            with suppress(DaemonUnavailable):
                self._lease = self._connection.lease()
        return self._lease
