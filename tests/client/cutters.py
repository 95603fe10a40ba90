"""Cutters of the C extension, with a clock and random bytes that a test chooses."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any
from uuid import UUID, SafeUUID

from tests.client.fakes import NODE, START
from tests.client.lanes import Lanes
from tests.kinds import GREGORIAN, KINDS
from uuidd.core.ids.layouts import Origin
from uuidd.core.ids.ticks import TICKS_PER_SECOND, UNIX_EPOCH
from uuidd_client import extension
from uuidd_client.fork_guard import ForkGuard
from uuidd_client.lease import Holding
from uuidd_client.watch import NO_EPOCHS

core: Any = extension.core
"""The extension. Without it, the tests that import this are not collected."""

BLOCK = Origin(NODE, clock_seq=0x1234, worker=5)
FOREVER = (1 << 60) - 1


class Hand:
    """A cutter for ids of *kind*, and what it reads: *now*, in ticks, and random bytes.

    *leased* is the lease that it holds, and *guard* has its memory. The clock is read *readings*
    times, and calls *between* then. If a *clock* is given, that is read instead, and *now* counts
    only for the deadlines of what is lent.
    """

    def __init__(
        self,
        kind: str = "v1",
        *,
        max_age: float = 0.1,
        clock: Callable[[], int] | None = None,
        random: Callable[[int], bytes] = os.urandom,
        uuid: type[UUID] = UUID,
        safe: object = SafeUUID.safe,
    ) -> None:
        self.now = START + 10 * TICKS_PER_SECOND
        self.readings = 0
        self.between: Callable[[], object] = lambda: None
        self.guard = ForkGuard()
        self.used, self.latest = core.Mark(), core.Mark()
        latest = None if kind in GREGORIAN else self.latest
        uuids = (uuid, safe, SafeUUID.unknown)
        self.cutter = core.Cutter(
            kind,
            self.guard.memory,
            self.used,
            latest,
            max_age,
            clock or self._clock,
            random,
            uuids,
        )
        self.leased: Holding | None = None
        self.form = "uuid" if "uuid" in KINDS[kind].forms else "text"

    def _clock(self) -> int:
        self.readings += 1
        now = self.now
        self.between()
        return (now - UNIX_EPOCH) * 100

    def hold(self, lanes: Lanes, *, end: int = FOREVER, tell_at: int = FOREVER) -> Hand:
        """Lease a lane for it."""
        self.leased = lease = lanes.lease()
        self.cutter.hold(lease.page, lease.at, lease.token, lease.begin, end, tell_at, lease.origin)
        return self

    def lend(
        self,
        first: int,
        count: int,
        *,
        begin: float = 0.0,
        seconds: float = 1.0,
        origin: Origin = BLOCK,
        safe: bool = True,
        epochs: memoryview[int] = NO_EPOCHS,
        epoch: int = 0,
    ) -> memoryview[float]:
        """Lend it places from *first* on, for some *seconds* from now; return their deadline."""
        deadline = self.guard.slot((self.now - UNIX_EPOCH) / TICKS_PER_SECOND + seconds)
        end = first + count
        marked = self.used.end
        self.cutter.lend(first, end, begin, deadline, marked, origin, safe, epochs, epoch)
        return deadline

    def one(self, form: str | None = None) -> Any:
        """Return the next id, or None."""
        return self.cutter.one(form or self.form)
