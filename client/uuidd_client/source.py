"""Where blocks come from: the daemon, or this process itself while there is none."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable
from typing import TypeVar

from uuidd.core.ids.timebased import TICKS_PER_SECOND, UNIX_EPOCH
from uuidd.core.timeline import Block, SteadyBlock
from uuidd_client.clocks import elapsed
from uuidd_client.connection import Connection
from uuidd_client.errors import DaemonUnavailable
from uuidd_client.standin import StandIn

AnyBlock = TypeVar("AnyBlock", Block, SteadyBlock)

RETRY = 0.25
"""Seconds after which a daemon that was not there, or gave nothing, is asked again. A silent one is
looked after by the connection at each call, which costs next to nothing."""


def utc_tick() -> int:
    """Give the tick that UTC is in."""
    return time.time_ns() // 100 + UNIX_EPOCH


class Source:
    """Gives blocks from *connection* and, if *fallback*, from this process when that fails."""

    def __init__(self, connection: Connection, *, fallback: bool) -> None:
        self.connection = connection
        self._fallback = fallback
        self._retry_at = {"utc": 0.0, "steady": 0.0}
        self._stand_in: StandIn | None = None
        self._reached = 0

    def take(self, count: int) -> tuple[Block, bool]:
        """Give up to *count* ticks of UTC, and whether they came from the daemon.

        Raises DaemonUnavailable when they cannot, and there is no fallback.
        """
        block = self._ask("utc", self.connection.take, count, self._fallback)
        if block is not None:
            return block, True
        while True:
            found = self._here().take(count, now=utc_tick())
            if not isinstance(found, int):
                return found, False
            # UTC stepped back a little: 10 ms at most, or the node would be another.
            time.sleep(found / TICKS_PER_SECOND)

    def take_steady(self, count: int, *, fallback: bool = True) -> tuple[SteadyBlock, bool]:
        """Give up to *count* ticks of the steady timeline, and whether they came from the daemon.

        They lie past all steady ticks given before, whatever those came from. Raises
        DaemonUnavailable when they cannot, and there is no fallback.
        """
        fallback = fallback and self._fallback
        block = self._ask("steady", self._take_later, count, fallback)
        safe = block is not None
        while block is None:
            found = self._here().take_steady(
                count, past=self._reached, now=utc_tick(), elapsed=int(elapsed() * TICKS_PER_SECOND)
            )
            if isinstance(found, int):
                time.sleep(found / TICKS_PER_SECOND)
            else:
                block = found
        self._reached = block.first + block.count
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

        One that is not at all is of a daemon whose clock is behind what this process has made
        ids of without it, or that has lost its state.
        """
        block = self.connection.take_steady(count)
        end = block.first + block.count
        if end <= self._reached:
            behind = (self._reached - end + 1) / TICKS_PER_SECOND
            raise DaemonUnavailable(
                self.connection.path,
                f"its steady timeline is {behind:.3f} s behind what this process has used",
            )
        first = max(block.first, self._reached)
        return SteadyBlock(first, end - first, block.node, block.worker, block.epoch)

    def _here(self) -> StandIn:
        if self._stand_in is None:
            self._stand_in = StandIn()
        return self._stand_in


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
            stacklevel=2,
        )
