"""Hears that this machine was cloned, by each signal that this host has, and ends what is shared.

Theory of operation

1. Two copies of a running machine have the same memory: the same node, generation, claim, tokens
   and random bits, here and in all clients. What renews the daemon's part is ``Timelines.renew``;
   the clients' part ends by the page, whose epoch that moves on.
2. It is done at once, in the task that hears of the clone, before anything else is given out. The
   save comes after it, and nothing is given out from the new node before that has completed.
3. A false alarm must not cost more than a true one, and there may be many. So one renewal in SPAN
   is saved. Those that come sooner are joined: they renew the memory, which costs no save, and a
   volatile node serves until the next saved one, when SPAN is over.
4. The kernel's random generator may be the copy's too until the kernel has heard of the clone. So
   the clocks are mixed into what is drawn here, and each further signal draws anew.
5. The signal *vmclock*: its page is looked at after each answer is made and before it is sent
   (service.py), and now and then for the holders of leases, who send no requests. It is changed
   before the machine runs, so nothing is given out that the copy has too.
6. *vmgenid*: the kernel's log says that its driver has found another generation, some milliseconds
   after the machine runs.
7. *clock*: UTC has jumped forward against CLOCK_BOOTTIME, and nobody has set it. It is not compared
   with CLOCK_MONOTONIC, which stands still in a suspend, because a suspend makes no copy. A jump is
   seen with the next reading of the clock. The kernel may be late to tell that UTC was set, so the
   alarm waits for CONFIRM_SECONDS.
8. Where a host lacks a signal, ``status`` says why, and nothing else happens.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Generator
from functools import partial
from math import inf
from typing import Any, TypeVar

import trio

from uuidd.clones import ClockSets, KernelLog, NoSignal, VmClock
from uuidd.core.timeline.timelines import Reading, Timelines
from uuidd.core.wire.methods import SAVE_SECONDS, RefusedError
from uuidd.fleet.fences import shared_with_a_clone
from uuidd.server import events
from uuidd.server.entropy import Entropy, of_this_moment
from uuidd.server.fairness import Pause
from uuidd.server.saver import Saver

SPAN = 10.0
"""Seconds in which at most one renewal is saved: as often as a busy daemon saves anyway."""

FIXED = (
    "; the node is fixed, so the v1 and v6 of two clones differ in 6 bits only, and Flakes may"
    " be the same"
)
"""What the log adds with a fixed node, which no renewal changes."""

JUMP = 1_000_000_000
"""Nanoseconds by which UTC must jump. To write a process to a file and restore it takes longer, and
what is less may be a correction of the kernel."""

CONFIRM_SECONDS = 0.05
"""How long the kernel may take to tell that UTC was set."""

LOOK_SECONDS = 0.1
"""Between two looks at the page while leases are held: as long as a block lasts."""

log = logging.getLogger("uuidd")

_Signal = TypeVar("_Signal", VmClock, KernelLog, ClockSets)


class Clones:
    """Renews *timelines*, whose state *saver* saves, and drops what *entropy* has read ahead.

    *read* reads the clock. With *go_on*, a worker number that was set by hand is kept. *dropped* is
    called after each renewal, which drops a claimed number, with the time on trio's clock before
    which no other one is to be claimed. *page*, *log* and *sets* open the signals, which end with
    the context of this.

    *noticed* counts the signals, *saved* the renewals that were saved, and *last_by* names the last
    signal. *changed* is what to call after each answer is made, and returns whether that has to be
    made anew. It is None if there is nothing to look at.
    """

    def __init__(
        self,
        timelines: Timelines,
        saver: Saver,
        read: Callable[[], Reading],
        entropy: Entropy,
        *,
        go_on: bool,
        dropped: Callable[[float], None],
        page: Callable[[], VmClock],
        log: Callable[[], KernelLog],
        sets: Callable[[], ClockSets],
    ) -> None:
        self._timelines = timelines
        self._saver = saver
        self._read = read
        self._entropy = entropy
        self._go_on = go_on
        self._dropped = dropped
        self._joined = trio.Event()
        self._saved_at = self._last_at = -inf
        self.noticed = self.saved = 0
        self.last_by = ""
        # Its deadline is until when the kernel may tell that UTC was set, after a jump.
        self._unannounced = trio.CancelScope()
        self._leased = trio.Event()
        self._lacks: dict[str, str] = {}
        self._open = contextlib.ExitStack()
        self._page = self._opened("vmclock", page)
        self._log = self._opened("vmgenid", log)
        self._sets = self._opened("clock", sets)
        self.changed = None if self._page is None else partial(self._look, self._page)

    def __enter__(self) -> Clones:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    async def run(self) -> None:
        """Hear the signals, and save what was joined, until it is cancelled."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._save_joined)
            if self._page is not None:
                nursery.start_soon(self._look_at_page, self._page)
            if self._log is not None:
                nursery.start_soon(self._hear_log, self._log)
            if self._sets is not None:
                nursery.start_soon(self._hear_sets, self._sets)

    def stepped(self, nanoseconds: int) -> None:
        """Take note that UTC has jumped, as it may if it was set."""
        if nanoseconds >= JUMP:
            self._unannounced.deadline = trio.current_time() + CONFIRM_SECONDS

    def notice(self, by: str) -> int:
        """Share nothing any longer with a copy of this machine; return how many leases ended.

        *by* names the signal.
        """
        self.noticed += 1
        self.last_by, self._last_at = by, trio.current_time()
        again = self._joined.is_set()
        ended = self._renew()
        if again and self._joined.is_set():
            # However many signals come, the log does not grow by more than this.
            self._timelines.utc.new_openings()
        else:
            log.warning(
                "this machine was cloned again within 10 s: signal=%s leases_ended=%d%s"
                if self._joined.is_set()
                else "this machine was cloned: signal=%s leases_ended=%d%s",
                by,
                ended,
                FIXED if self._timelines.utc.node.fixed else "",
            )
            events.openings(self._timelines.utc)
        return ended

    def renew(self) -> Generator[Pause, None, dict[str, Any]]:
        """Renew as if a signal had come, and wait until that is saved, or for SAVE_SECONDS.

        Return how many *leases* it ended, and whether it is *saved* already, and not joined.
        Raises RefusedError, ``unavailable``, if it could not be saved: it is done all the same, and
        the daemon keeps trying.
        """
        ended = self.notice("renew")
        if self._joined.is_set():
            return {"leases": ended, "saved": False}
        deadline = trio.current_time() + SAVE_SECONDS
        while not self._timelines.saved:
            if trio.current_time() >= deadline:
                cause = self._saver.trouble or "the save is still under way"
                raise RefusedError(
                    "unavailable",
                    f"renewed, but the state could not be saved within {SAVE_SECONDS:g} s"
                    f" ({cause}); the daemon keeps trying",
                )
            yield partial(self._saver.settled_by, deadline)
        return {"leases": ended, "saved": True}

    def status(self) -> dict[str, Any]:
        """Return what ``status`` shows of clones. Spans are seconds."""
        return {
            "noticed": self.noticed,
            "renewed": self.saved,
            "last_by": self.last_by,
            "last_age": round(trio.current_time() - self._last_at, 3) if self.noticed else None,
            "after_clone": "go-on" if self._go_on else "refuse",
            # Why this host does not have a signal, "" if it does.
            "signals": dict(self._lacks),
        }

    def _renew(self) -> int:
        """Renew, and save that or join it; return how many leases ended."""
        now = trio.current_time()
        save_at = max(now, self._saved_at + SPAN)
        joined = now < save_at
        fence = self._timelines.fence
        number, claimed = fence.number, fence.claim is not None
        self._entropy.drop()
        ended = self._timelines.renew(
            at=self._read(),
            random=Entropy(of_this_moment).bits,
            go_on=self._go_on,
            unsaved=joined,
        )
        if joined:
            self._joined.set()
        else:
            self._joined = trio.Event()
            self._saved_at = now
            self.saved += 1
            self._saver.begin_again()
        # Also without a claim, for a write that claims one may be under way.
        self._dropped(save_at)
        if not claimed and number is not None and fence.number is None:
            fence.why = shared_with_a_clone(number)
            log.error("Snowflakes are refused: %s", fence.why)
        return ended

    async def _save_joined(self) -> None:
        """Save the renewals that were joined, when SPAN is over."""
        while True:
            await self._joined.wait()
            await trio.sleep_until(self._saved_at + SPAN)
            # A signal may just have come that was saved.
            if self._joined.is_set() and trio.current_time() >= self._saved_at + SPAN:
                self._renew()
                events.openings(self._timelines.utc)

    def _opened(self, name: str, opener: Callable[[], _Signal]) -> _Signal | None:
        try:
            signal = opener()
        except NoSignal as lack:
            self._lacks[name] = str(lack)
            return None
        self._lacks[name] = ""
        self._open.callback(signal.close)
        return signal

    def _look(self, page: VmClock) -> bool:
        if not self._leased.is_set() and self._timelines.utc.leases.out:
            self._leased.set()
        changed = page.changed()
        if changed:
            self.notice("vmclock")
        return changed

    async def _look_at_page(self, page: VmClock) -> None:
        while True:
            if self._timelines.utc.leases.out:
                await trio.sleep(LOOK_SECONDS)
            else:
                # The look after the answer that grants the first lease ends this wait.
                self._leased = trio.Event()
                with trio.move_on_after(10 * LOOK_SECONDS):
                    await self._leased.wait()
            self._look(page)

    async def _hear_log(self, log: KernelLog) -> None:
        while True:
            await trio.lowlevel.wait_readable(log.fd)
            if log.heard():
                self.notice("vmgenid")

    async def _hear_sets(self, sets: ClockSets) -> None:
        while True:
            with self._unannounced:
                await trio.lowlevel.wait_readable(sets.fd)
            if sets.was_set():
                # This finds the jump now. One that is too small for an alarm excuses no other.
                self._read()
            elif self._unannounced.cancelled_caught:
                self.notice("clock")
            self._unannounced = trio.CancelScope()
