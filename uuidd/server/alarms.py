"""Hears by each signal that this host has that its machine was cloned, and tells ``Clones``.

Theory of operation

1. The *vmclock* page is looked at after each answer is made and before it is sent (service.py), and
   now and then for the holders of leases, who send no requests. It is changed before the machine
   runs, so nothing is given out that the copy has too.
2. *vmgenid*: the kernel's log says that its driver has found another generation, some milliseconds
   after the machine runs.
3. *clock*: UTC has jumped forward against CLOCK_BOOTTIME, and nobody has set it. It is not compared
   with CLOCK_MONOTONIC, which stands still in a suspend, because a suspend makes no copy. A jump is
   seen with the next reading of the clock. The kernel may be late to tell that UTC was set, so the
   alarm waits for CONFIRM_SECONDS.
4. Where a host lacks a signal, ``status`` says why, and nothing else happens.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TypeVar

import trio

from uuidd.clones import ClockSets, KernelLog, NoSignal, VmClock
from uuidd.core.timeline.timelines import Reading
from uuidd.server.clones import Clones

JUMP = 1_000_000_000
"""Nanoseconds by which UTC must jump. To write a process to a file and restore it takes longer, and
what is less may be a correction of the kernel."""

CONFIRM_SECONDS = 0.05
"""How long the kernel may take to tell that UTC was set."""

LOOK_SECONDS = 0.1
"""Between two looks at the page while leases are held: as long as a block lasts."""

_Signal = TypeVar("_Signal", VmClock, KernelLog, ClockSets)


class Alarms:
    """Tells *clones* of each signal. *read* reads the clock, whose steps come by ``stepped``.

    *leased* tells whether leases are held. *page*, *log* and *sets* open the signals. Use it as
    a context, which closes them.
    """

    def __init__(
        self,
        clones: Clones,
        read: Callable[[], Reading],
        leased: Callable[[], int],
        *,
        page: Callable[[], VmClock],
        log: Callable[[], KernelLog],
        sets: Callable[[], ClockSets],
    ) -> None:
        self._clones = clones
        self._read = read
        self._leased = leased
        self._lacks: dict[str, str] = {}
        self._open = contextlib.ExitStack()
        self._page = self._opened("vmclock", page)
        self._log = self._opened("vmgenid", log)
        self._sets = self._opened("clock", sets)
        self._jumped = trio.Event()
        self._was_set = False

    def __enter__(self) -> Alarms:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    @property
    def changed(self) -> Callable[[], bool] | None:
        """What to call after each answer is made; it returns whether that has to be made anew.

        None if there is nothing to look at.
        """
        return None if self._page is None else self._look

    def stepped(self, nanoseconds: int) -> None:
        """Take note that UTC has jumped, as it may if it was set."""
        if nanoseconds >= JUMP and self._sets is not None:
            self._jumped.set()

    async def run(self) -> None:
        """Listen until it is cancelled."""
        async with trio.open_nursery() as nursery:
            if self._page is not None:
                nursery.start_soon(self._look_at_page)
            if self._log is not None:
                nursery.start_soon(self._hear_log, self._log)
            if self._sets is not None:
                nursery.start_soon(self._hear_sets, self._sets)
                nursery.start_soon(self._confirm_jumps, self._sets)

    def status(self) -> dict[str, str]:
        """Return for each signal why this host does not have it, "" if it does."""
        return dict(self._lacks)

    def _opened(self, name: str, opener: Callable[[], _Signal]) -> _Signal | None:
        self._lacks[name] = ""
        try:
            signal = opener()
        except NoSignal as lack:
            self._lacks[name] = str(lack)
            return None
        self._open.callback(signal.close)
        return signal

    def _look(self) -> bool:
        assert self._page is not None  # noqa: S101 - there is one where this is called
        if not self._page.changed():
            return False
        self._clones.notice("vmclock")
        return True

    async def _look_at_page(self) -> None:
        while True:
            await trio.sleep(LOOK_SECONDS if self._leased() else 10 * LOOK_SECONDS)
            self._look()

    async def _hear_log(self, log: KernelLog) -> None:
        while True:
            await trio.lowlevel.wait_readable(log.fd)
            if log.heard():
                self._clones.notice("vmgenid")

    async def _hear_sets(self, sets: ClockSets) -> None:
        while True:
            await trio.lowlevel.wait_readable(sets.fd)
            if sets.was_set():
                self._was_set = True
                # This finds the jump now. One that is too small for an alarm excuses no other.
                self._read()
                self._was_set = self._jumped.is_set()

    async def _confirm_jumps(self, sets: ClockSets) -> None:
        while True:
            await self._jumped.wait()
            await trio.sleep(CONFIRM_SECONDS)
            was_set = sets.was_set() or self._was_set
            self._jumped, self._was_set = trio.Event(), False
            if not was_set:
                self._clones.notice("clock")
