"""Makes all parts of a daemon, and connects each with those that it needs when it is made."""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING

from uuidd.clock import Clock
from uuidd.clones import ClockSets, KernelLog, VmClock, kernel_log
from uuidd.core.ids.nodes import RandomBits
from uuidd.core.ids.ticks import TICKS_PER_SECOND
from uuidd.core.timeline.leases import Leases
from uuidd.core.timeline.state import NO_EPOCHS, Node, State
from uuidd.core.timeline.steady import Steady
from uuidd.core.timeline.timelines import Reading, Timelines
from uuidd.core.timeline.utc import Utc
from uuidd.fleet.fences import begin_fence
from uuidd.libuuid_clock import libuuid_clock_seq
from uuidd.server import events
from uuidd.server.acceptor import Acceptor
from uuidd.server.admission import Admission
from uuidd.server.allocator import Allocator
from uuidd.server.clones import Clones
from uuidd.server.entropy import Entropy
from uuidd.server.events import Refusals
from uuidd.server.leasing import Leasing
from uuidd.server.page import Page
from uuidd.server.saver import Saver
from uuidd.server.service import Service
from uuidd.server.settings import Settings
from uuidd.server.status import Report
from uuidd.server.trust import Quality, Trust, quality, withheld

if TYPE_CHECKING:
    from uuidd.fleet.keeper import Keeper


def timelines_from(
    loaded: State | None,
    settings: Settings,
    at: Reading,
    *,
    machine: str,
    random: RandomBits,
    product: str = "",
    node: Node | None = None,
    lost: bool = False,
    epochs: Mapping[int, int] = NO_EPOCHS,
    avoid: Callable[[], int | None] = libuuid_clock_seq,
    floor: int | None = None,
    page: Page | None = None,
    ask: Callable[[], Quality] = quality,
) -> Timelines:
    """Return the timelines that go on from the state *loaded*, None if there is none.

    *at* is the clock then, *page* shows the leases, and *ask* is as in ``Trust``. *lost* is as in
    ``Steady``, *epochs* as in ``Timelines``, and the others are as in ``Utc``.
    """
    steady = Steady(
        None if loaded is None else loaded.steady,
        now=at.now,
        elapsed=at.elapsed,
        lost=lost,
        rollback=settings.rollback,
        max_lead=max(1, int(settings.max_lead * TICKS_PER_SECOND)),
        withheld=withheld(settings.require_sync, ask),
    )
    utc = Utc(
        loaded,
        machine=machine,
        product=product,
        now=at.now,
        random=random,
        node=node,
        avoid=avoid,
        floor=floor,
        leases=Leases(None if page is None else page.words),
    )
    fence = begin_fence(
        loaded,
        settings.worker,
        in_fleet=settings.fleet is not None,
        go_on_after_clone=settings.go_on_after_clone,
        product=product,
    )
    # A fixed node may have had a state of which nothing is left, not even the folder.
    lost = steady.lost or (node is not None and loaded is None)
    timelines = Timelines(utc, steady, fence=fence, epoch=settings.epoch, epochs=epochs, lost=lost)
    if not steady.withheld:
        timelines.release(at=at)
    if loaded is not None:
        timelines.notice_step_since(loaded, at=at)
    return timelines


class Assembly:
    """The parts of a daemon that serve from *timelines*, whose first save has ended.

    *clock* makes the clock, and is given what to call at each step. *keeper* makes what keeps the
    number of a fleet. *unreachable* says why no client can connect, "" while they can. *save* and
    *unusable* are as in ``Saver``, *own_uid* and *outsiders* as in ``Admission``, *ask* as in
    ``Trust``, and *vmclock*, *log* and *sets* open the signals of ``Clones``.

    The ``run`` of each part that has one has to be running while clients are served.
    """

    def __init__(
        self,
        settings: Settings,
        timelines: Timelines,
        *,
        clock: Callable[[Callable[[int], None]], Clock],
        save: Callable[[State], Awaitable[None]],
        unusable: Callable[[], str],
        page: Page | None,
        own_uid: int,
        outsiders: int | None = None,
        keeper: Callable[[Timelines, Callable[[], Reading], Saver], Keeper] | None = None,
        unreachable: Callable[[], str] = str,
        ask: Callable[[], Quality] = quality,
        entropy: Entropy | None = None,
        vmclock: Callable[[], VmClock] = VmClock,
        log: Callable[[], KernelLog] = kernel_log,
        sets: Callable[[], ClockSets] = ClockSets,
    ) -> None:
        self.limits = limits = settings.limits
        self.timelines = timelines
        # No part reads the clock while it is made, so no step is found before all are there.
        self.clock = clock(self._stepped)
        read = self.clock.read
        self.saver = Saver(timelines, save, read, unusable)
        self.admission = Admission(limits, own_uid=own_uid, outsiders=outsiders)
        self.trust = Trust(timelines, read, settings.require_sync, ask)
        self.keeper = None if keeper is None else keeper(timelines, read, self.saver)
        self.entropy = entropy or Entropy()
        self.clones = Clones(
            timelines,
            self.saver,
            read,
            self.entropy,
            go_on=settings.go_on_after_clone,
            dropped=(lambda _: None) if self.keeper is None else self.keeper.dropped,
            page=vmclock,
            log=log,
            sets=sets,
        )
        self.report = Report(self, unreachable)
        renewed = None if self.keeper is None else self.keeper.renewed
        self.allocator = Allocator(timelines, self.saver, read, limits, renewed)
        self.leasing = Leasing(timelines, self.saver, read, None if page is None else page.fd)
        self.refusals = Refusals()
        self.service = Service(
            self.allocator,
            self.leasing,
            self.entropy,
            self.report.status,
            self.clones,
            self.admission.trusted,
            limits,
            self.refusals.note,
            self.clones.changed,
        )

    def acceptor(self, listener: socket.socket) -> Acceptor:
        """Return what serves the clients that connect to *listener*."""
        return Acceptor(listener, self.service, self.admission)

    def _stepped(self, nanoseconds: int) -> None:
        """End all leases if UTC was set back, log the step, and tell the clones of it."""
        ended = 0
        if nanoseconds < 0:
            ended = self.timelines.step_back(-nanoseconds // 100, at=self.clock.read())
        events.step(nanoseconds, ended)
        self.clones.stepped(nanoseconds)
