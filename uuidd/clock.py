"""The host's clock, read in ticks; its steps are found by comparison with CLOCK_BOOTTIME."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

from uuidd.core.ids.ticks import UNIX_EPOCH
from uuidd.core.timeline.timelines import Reading

STEP = 10_000_000
"""Nanoseconds by which UTC must move against CLOCK_BOOTTIME between two readings, to be a step."""

SLEW = 1000
"""UTC may drift by one nanosecond in this many (1,000 ppm): time daemons slew by less."""


_read_boottime = partial(time.clock_gettime_ns, time.CLOCK_BOOTTIME)


class Clock:
    """Reads UTC in ticks, and counts its steps.

    *on_step* is called at each step, before the reading that found it is returned, with the
    nanoseconds by which UTC jumped, negative for back. With *since*, an earlier reading, the first
    one finds a step that came after that. *utc* and *boottime* read the two clocks, in nanoseconds.
    """

    def __init__(
        self,
        on_step: Callable[[int], None] = lambda _: None,
        *,
        since: Reading | None = None,
        utc: Callable[[], int] = time.time_ns,
        boottime: Callable[[], int] = _read_boottime,
    ) -> None:
        self._on_step = on_step
        self._utc = utc
        self._boottime = boottime
        self.steps_back = 0
        self.steps_forward = 0
        if since is None:
            now, self._last_boottime = self._settled(utc(), boottime())
        else:
            now, self._last_boottime = (since.now - UNIX_EPOCH) * 100, since.elapsed * 100
        self._offset = now - self._last_boottime

    def now(self) -> int:
        """Return the tick that UTC is in."""
        return self.read().now

    def read(self) -> Reading:
        """Return the ticks that UTC and CLOCK_BOOTTIME are in."""
        utc, boottime = self._utc(), self._boottime()
        offset = utc - boottime
        if not -STEP < offset - self._offset < STEP:
            utc, boottime = self._read_again(utc, boottime)
            offset = utc - boottime
        self._offset = offset
        self._last_boottime = boottime
        return Reading(utc // 100 + UNIX_EPOCH, boottime // 100)

    def _read_again(self, utc: int, boottime: int) -> tuple[int, int]:
        """Tell a step from drift, and from a pause of the process between its two readings."""
        utc, boottime = self._settled(utc, boottime)
        jump = utc - boottime - self._offset
        drift = (boottime - self._last_boottime) // SLEW
        if abs(jump) >= STEP + drift:
            if jump < 0:
                self.steps_back += 1
            else:
                self.steps_forward += 1
            # It may read the clock, and finds no step then.
            self._offset, self._last_boottime = utc - boottime, boottime
            self._on_step(jump)
        return utc, boottime

    def _settled(self, utc: int, boottime: int) -> tuple[int, int]:
        """Read both clocks until they agree with the reading before, three times at most."""
        for _ in range(3):
            earlier = utc - boottime
            utc, boottime = self._utc(), self._boottime()
            if abs(utc - boottime - earlier) < STEP // 10:
                break
        return utc, boottime
