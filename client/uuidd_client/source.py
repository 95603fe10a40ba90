"""Where blocks come from: the daemon, or this process itself while there is none."""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Callable
from types import FrameType
from typing import TypeVar

from uuidd.core.ids.ticks import TICKS_PER_SECOND, UNIX_EPOCH
from uuidd.core.timeline import Block, SteadyBlock
from uuidd_client.clocks import elapsed, pause
from uuidd_client.connection import Connection
from uuidd_client.errors import DaemonUnavailable
from uuidd_client.fallback import MAX_LEAD, here

AnyBlock = TypeVar("AnyBlock", Block, SteadyBlock)

RETRY = 0.25
"""Seconds after which a daemon that was not there, or gave nothing, is asked again. A silent one is
looked after by the connection at each call, which costs next to nothing."""


def utc_tick() -> int:
    """Give the tick that UTC is in, by the same clock as ``utc``."""
    return time.clock_gettime_ns(time.CLOCK_REALTIME) // 100 + UNIX_EPOCH


class Reached:
    """The *tick* that the steady ids of a client have got to, whatever they came from."""

    __slots__ = ("tick",)

    def __init__(self) -> None:
        self.tick = 0


class Source:
    """Gives blocks from *connection* and, if *fallback*, from this process when that fails.

    Sources that share what they have *reached* give steady ticks that rise among all of them.
    """

    def __init__(self, connection: Connection, *, fallback: bool, reached: Reached) -> None:
        self.connection = connection
        self._fallback = fallback
        self._retry_at = {"utc": 0.0, "steady": 0.0}
        self._reached = reached

    def take(self, count: int) -> tuple[Block, bool]:
        """Give up to *count* ticks of UTC, and whether they came from the daemon.

        Raises DaemonUnavailable when they cannot, and there is no fallback.
        """
        block = self._ask("utc", self.connection.take, count, self._fallback)
        if block is not None:
            return block, True
        begun = elapsed()
        while True:
            found = here().take(count, now=utc_tick(), waited=elapsed() - begun)
            if not isinstance(found, int):
                return found, False
            # UTC stepped back by 10 ms at most, or the node would be another.
            pause(found / TICKS_PER_SECOND)

    def take_steady(self, count: int, *, fallback: bool = True) -> tuple[SteadyBlock, bool]:
        """Give up to *count* ticks of the steady timeline, and whether they came from the daemon.

        They lie past all steady ticks given before, whatever those came from, unless that is more
        than an hour ahead. Raises DaemonUnavailable when they cannot, and there is no fallback.
        """
        fallback = fallback and self._fallback
        block = self._ask("steady", self._take_later, count, fallback)
        safe = block is not None
        while block is None:
            since = int(elapsed() * TICKS_PER_SECOND)
            past = self._reached.tick
            found = here().take_steady(count, past=past, now=utc_tick(), elapsed=since)
            if isinstance(found, int):
                pause(found / TICKS_PER_SECOND)
            else:
                block = found
        reached, end = self._reached, block.first + block.count
        # No call stands between the reading and the setting, so no signal handler can come in.
        if not 0 <= reached.tick - end <= MAX_LEAD:
            reached.tick = end
        return block, safe

    def _ask(
        self, timeline: str, take: Callable[[int], AnyBlock], count: int, fallback: bool
    ) -> AnyBlock | None:
        """Give a block of the daemon's; None when the fallback is to be used."""
        if not fallback:
            return take(count)
        if elapsed() < self._retry_at[timeline]:
            return None
        try:
            return take(count)
        except DaemonUnavailable as unavailable:
            if not unavailable.late:
                self._retry_at[timeline] = elapsed() + RETRY
            _warn(unavailable)
            return None

    def _take_later(self, count: int) -> SteadyBlock:
        """Give what is past all that was used here of a block of the daemon's.

        A block of which nothing is comes from a daemon whose clock is behind what this process has
        made ids of without it, or that has lost its state. One that is more than an hour behind is
        used: what was used here was of a clock that was wrong, or that a test had set.
        """
        # Before the request: what a signal handler gets in the middle of it is later.
        reached = self._reached.tick
        block = self.connection.take_steady(count)
        end = block.first + block.count
        if reached - end > MAX_LEAD:
            return block
        if end <= reached:
            behind = (reached - end + 1) / TICKS_PER_SECOND
            raise DaemonUnavailable(
                self.connection.path,
                f"its steady timeline is {behind:.3f} s behind what this process has used",
            )
        first = max(block.first, reached)
        return SteadyBlock(first, end - first, block.node, block.worker, block.epoch)


_PACKAGE = os.path.dirname(__file__) + os.sep

_warned_in = 0


def _warn(unavailable: DaemonUnavailable) -> None:
    """Warn once a process, whatever number of clients it has."""
    global _warned_in
    if _warned_in != os.getpid():
        _warned_in = os.getpid()
        warnings.warn(
            f"{unavailable}; ids are made in this process, and are not marked safe,"
            " until it answers",
            RuntimeWarning,
            stacklevel=_callers_level(),
        )


def _callers_level() -> int:
    """Give how far up the stack of ``_warn`` the line is that asked for an id."""
    frame: FrameType | None = sys._getframe(1)
    level = 1
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
        level += 1
    return level
