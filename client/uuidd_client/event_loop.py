"""What one event loop has of its own: the threads that wait for the daemon, and a lock a timeline.

The package anyio has to be there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import anyio
import anyio.lowlevel
import anyio.to_thread

from uuidd.core.ids.kinds import KINDS

Result = TypeVar("Result")

MAX_THREADS = 4
"""Threads of one event loop that ask at once. Those whose task was cancelled count until they end:
the client's time-out is their limit."""

FULL_SECONDS = 0.001
"""Between two looks whether one of them has ended."""


class EventLoop:
    """The threads of one event loop, and *locks*, one for each timeline."""

    def __init__(self) -> None:
        self.locks = {each.timeline: anyio.Lock() for each in KINDS.values()}
        self._limiter = anyio.CapacityLimiter(1000)
        self._running = 0

    async def in_thread(self, work: Callable[[], Result]) -> Result:
        """Return what *work* returns in a thread, which is left alone if this is cancelled."""
        # Taken once: by the thread, which counts down at its end, or here if none has begun.
        start = [True]

        def run() -> Result | None:
            if not _taken(start):
                # The call was cancelled just before.
                return None
            try:
                return work()
            finally:
                self._running -= 1

        # A thread that was left alone cannot tell this loop that it has ended.
        while self._running >= MAX_THREADS:  # noqa: ASYNC110
            await anyio.sleep(FULL_SECONDS)
        self._running += 1
        try:
            made = await anyio.to_thread.run_sync(
                run, abandon_on_cancel=True, limiter=self._limiter
            )
        finally:
            if _taken(start):
                self._running -= 1
        return made  # type: ignore[return-value]  # not None, as this was not cancelled


_of_this: anyio.lowlevel.RunVar[EventLoop] = anyio.lowlevel.RunVar("uuidd_client")


def this_loop() -> EventLoop:
    """Return what the event loop that runs now has."""
    loop = _of_this.get(None)
    if loop is None:
        loop = EventLoop()
        _of_this.set(loop)
    return loop


def _taken(once: list[bool]) -> bool:
    """Take what is in the list; return whether it was there. Atomic."""
    try:
        return once.pop()
    except IndexError:
        return False
