"""What the service manager hears while the daemon serves: that it lives, and how it does."""

from __future__ import annotations

from collections.abc import Callable

import trio

from uuidd.core.ids.timebased import TICKS_PER_SECOND
from uuidd.core.timeline.timelines import Reading, Timelines
from uuidd.server.admission import Admission
from uuidd.server.saver import Saver
from uuidd.server.service import Service
from uuidd.systemd import Notifier

TELL_SECONDS = 30.0
"""Seconds between two status lines where no watchdog wants to hear more often."""


async def supervise(notifier: Notifier, line: Callable[[], str]) -> None:
    """Say that the daemon serves, and on and on that it lives, with a *line* for people.

    It runs in the loop that serves, so a loop that hangs falls silent, and is ended.
    """
    if not notifier.asked:
        return
    pause = TELL_SECONDS if notifier.watchdog is None else notifier.watchdog / 3
    said = line()
    notifier.tell(ready=1, status=said)
    while True:
        await trio.sleep(pause)
        before, said = said, line()
        if said != before:
            notifier.tell(watchdog=1, status=said)
        else:
            notifier.tell(watchdog=1)


class StatusLine:
    """A line for ``systemctl status``: what it does, and what is wrong if something is."""

    def __init__(
        self,
        service: Service,
        admission: Admission,
        timelines: Timelines,
        saver: Saver,
        read: Callable[[], Reading],
    ) -> None:
        self._service = service
        self._admission = admission
        self._timelines = timelines
        self._saver = saver
        self._read = read
        self._ids = 0
        self._at = trio.current_time()

    def __call__(self) -> str:
        """Give the line; the rate is that since the last one."""
        ids, now = self._service.rpc.ids + self._service.libuuid.ids, trio.current_time()
        rate = (ids - self._ids) / max(now - self._at, 0.001)
        self._ids, self._at = ids, now
        said = f"Serving {self._admission.open} connections, {rate:,.0f} ids a second"
        if self._saver.failed_since_last:
            said += f"; saves fail ({self._saver.trouble})"
        if self._timelines.utc.volatile is not None:
            said += ", v1 and v6 come from a volatile node"
        at = self._read()
        lead = self._timelines.steady.lead(now=at.now, elapsed=at.elapsed)
        if lead > TICKS_PER_SECOND:
            said += f"; the steady kinds are {lead / TICKS_PER_SECOND:,.0f} s ahead of UTC"
        return said
