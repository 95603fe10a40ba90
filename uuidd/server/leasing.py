"""Leases lanes to connections, and ends the lease of one that ends (core/timeline/leases.py).

Theory of operation

1. A connection holds at most one lease. Its client remembers it.
2. The lease ends with the connection, or with the connection's next request for a lease.
3. When the daemon stops, leases do not end: their holders go on up to the horizon in the page, and
   the next daemon starts behind it. So nobody waits for a restart.
4. A holder needs the page. It is passed with the first reply of each connection, for those who hold
   blocks, and with the reply to the first request for a lease. If it cannot be passed with that
   one, the lease ends, and the request is refused.
5. The kernel counts each passed descriptor as the daemon's until its receiver has read it. Above
   the daemon's limit of descriptors the kernel passes none to anybody (unix(7), ETOOMANYREFS). So
   a connection over which the page is on its way counts as open (acceptor.py).
6. An idle daemon does not raise the horizon. A holder says that it makes ids (``in_use``) when half
   of the time up to the horizon is over. Then the horizon is raised with the next save.
"""

from __future__ import annotations

import array
import errno
import socket
from collections import Counter
from collections.abc import Callable, Generator
from functools import partial
from typing import Any

import trio

from uuidd.core.ids.ticks import TICKS_PER_SECOND
from uuidd.core.timeline.leases import PER_USER, RESERVED, NoLease
from uuidd.core.timeline.page import Lease
from uuidd.core.timeline.timelines import Reading, Timelines
from uuidd.core.wire.methods import MOST_ASK_AGAIN, RefusedError, ask_again_in
from uuidd.server import events
from uuidd.server.client import Client
from uuidd.server.fairness import Pause
from uuidd.server.saver import REACH, Saver
from uuidd.server.settings import SOON_SECONDS

ASK_AGAIN_SECONDS = 10.0
"""A refused client asks again after this time at most, if the reason may end early."""

_WORDS = {
    "floor": "no lease before UTC has passed all that earlier leases may have used",
    "lanes": f"all {RESERVED} lanes are leased, counting those whose lease ended in the last"
    f" {REACH:g} s",
    "page": "this daemon has no leases, and its log says why",
    "save": "the state has to be saved first",
    "steady": "no lease before UTC has caught up with the steady timeline",
    "stopping": "the daemon is stopping",
    "unpassed": "the page could not be passed over this connection",
    "user": f"has {PER_USER} leases, the most one user may have, counting those that ended in the"
    f" last {REACH:g} s; close connections",
    "volatile": "v1 and v6 come from a volatile node, which has no leases",
    "withheld": "no lease yet: ",
}
"""Why no lease is granted, in words. ``status`` counts by the reasons themselves."""

_OF_THE_CLIENT = {errno.EAGAIN, errno.EPIPE, errno.ECONNRESET, errno.EPERM}
"""Why a client cannot be passed anything: it reads nothing, is gone, or allows no descriptors."""


class Leasing:
    """Leases lanes of *timelines*, whose state *saver* saves. *read* reads the clock.

    *page* is the descriptor of the page, to be passed to holders; without it nothing is leased.
    *leases* are those of *timelines*. *refused* counts refusals by reason, *unpassed* how often the
    kernel did not pass the page to a client that would have taken it.
    """

    def __init__(
        self, timelines: Timelines, saver: Saver, read: Callable[[], Reading], page: int | None
    ) -> None:
        self._timelines = timelines
        self._saver = saver
        self._read = read
        self._stopping = False
        self.leases = timelines.utc.leases
        self.page = page
        self.refused: Counter[str] = Counter()
        self.unpassed = 0
        self._tell_at = 0.0

    def grant(self, holder: Client) -> Generator[Pause, None, Lease | RefusedError]:
        """Lease a lane to a connection; then a lease that it has ends.

        If UTC has passed the horizon in the page, this waits for a save that raises it, at most
        0.05 s. A refusal, ``no_lease``, changes nothing. It is returned like NoLease, which says
        why.
        """
        if self.page is None:
            return self._refusal("page", MOST_ASK_AGAIN)
        at = self._read()
        if at.elapsed >= self._saver.check_at:
            self._saver.check(at.elapsed)
        lease = self._timelines.lease(at=at, uid=holder.uid)
        if isinstance(lease, NoLease):
            return self._refusal(lease.reason, lease.wait / TICKS_PER_SECOND, holder.uid)
        self.release(holder)
        holder.lease = lease
        if self.leases.horizon <= at.now:
            yield partial(self._saver.settled_by, trio.current_time() + SOON_SECONDS)
        elif self._saver.idle:
            self._saver.want()
        return lease

    def send_with_page(self, sock: socket.SocketType, data: bytes) -> int:
        """Send *data* with the page, and return how many bytes; 0 if that is not possible."""
        if self.page is None:
            return 0
        passed = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [self.page]))
        try:
            return sock.sendmsg([data], [passed], socket.MSG_DONTWAIT)
        except OSError as error:
            if error.errno not in _OF_THE_CLIENT:
                self.unpassed += 1
                now = trio.current_time()
                if now >= self._tell_at:
                    self._tell_at = now + events.SPAN
                    events.unpassed(error)
            return 0

    def take_back(self, holder: Client) -> RefusedError:
        """End a lease whose page could not be passed; return the error to send instead."""
        self.release(holder)
        return self._refusal("unpassed", ASK_AGAIN_SECONDS)

    def release(self, holder: Client) -> None:
        """End the lease of a connection, if it has one and the daemon goes on."""
        if holder.lease is not None and not self._stopping:
            self.leases.release(holder.lease)
            holder.lease = None

    def stop(self) -> None:
        """Let the leases that are held last, whatever becomes of their connections."""
        self._stopping = True

    def note_use(self) -> None:
        """Take note that a holder makes ids, so that the horizon has to be raised."""
        self.leases.used = True
        if self._saver.idle:
            self._saver.want()

    def status(self) -> dict[str, Any]:
        """Return what ``status`` shows of leases. Spans are seconds."""
        leases, now = self.leases, self._read().now
        # Nobody reads the horizon while no lease is out.
        left = round((leases.horizon - now) / TICKS_PER_SECOND, 3) if leases.out else None
        return {
            "page": self.page is not None,
            "out": leases.out,
            "granted": leases.granted,
            "revoked": leases.revoked,
            "refused": dict(self.refused),
            "unpassed": self.unpassed,
            "horizon_in": left,
            "held_for": max(0.0, round((leases.floor - now) / TICKS_PER_SECOND, 3)),
        }

    def _refusal(self, reason: str, seconds: float, uid: int = 0) -> RefusedError:
        """Count a refusal, and return it. *seconds* is for how long no lease will be granted."""
        self.refused[reason] += 1
        words = _WORDS[reason]
        if reason == "user":
            words = f"uid {uid} {words}"
        elif reason in ("floor", "steady"):
            words += f", in {seconds:.3f} s"
            # UTC may be set forward before that.
            seconds = min(seconds, ASK_AGAIN_SECONDS)
        elif reason == "withheld":
            words += self._timelines.steady.withheld
        elif reason == "save" and self._saver.trouble:
            words += f", which fails ({self._saver.trouble})"
        return RefusedError("no_lease", f"{words}; blocks serve meanwhile{ask_again_in(seconds)}")
