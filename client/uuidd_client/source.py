"""Where blocks come from: the daemon, or the fallback in this process while there is none."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import partial
from typing import TypeVar

from uuidd.core.ids.ticks import TICKS_PER_SECOND, UNIX_EPOCH
from uuidd.core.timeline import Block, SteadyBlock
from uuidd_client.connection import Connection
from uuidd_client.errors import DaemonUnavailable
from uuidd_client.fallback import MAX_LEAD, Fallback, local_fallback
from uuidd_client.mark import Mark
from uuidd_client.notices import Notices
from uuidd_client.system import ClientClock
from uuidd_client.watch import NEVER

AnyBlock = TypeVar("AnyBlock", Block, SteadyBlock)

RETRY_SECONDS = 0.25
"""Seconds after which a daemon that was not there, or that refused, is asked again."""


def utc_tick(clock: ClientClock) -> int:
    """Return the tick that the UTC of *clock* is in."""
    return clock.utc_ns() // 100 + UNIX_EPOCH


class LatestSteady:
    """The *end* of the latest steady ticks of a client, of the daemon's or the fallback's.

    It is that of *mark*.
    """

    def __init__(self, mark: Mark | None = None) -> None:
        self.mark = mark or Mark()

    @property
    def end(self) -> int:
        """The tick after the latest that is used."""
        return self.mark.end

    def note(self, end: int) -> None:
        """Note that ticks before *end* are used; forget those used more than an hour ahead of it.

        There is no call between the reading and the setting, so no signal handler can run there.
        """
        mark = self.mark
        if mark.end - end > MAX_LEAD:
            mark.end = end
        else:
            mark.raise_to(end)


class Source:
    """Blocks from *connection* and, if *fallback*, from this process when that fails.

    Sources that share *latest* have steady ticks that rise among all of them. *watch* is that of
    the last block. *blocks* counts those of the daemon, *fallback_blocks* the others, and *notices*
    has the errors.
    """

    def __init__(
        self,
        connection: Connection,
        *,
        fallback: bool,
        latest: LatestSteady,
        notices: Notices | None = None,
    ) -> None:
        self.connection = connection
        self.clock = connection.clock
        self._fallback = fallback
        # For each timeline, when to ask again, and the error until then.
        self._refused: dict[str, tuple[float, DaemonUnavailable]] = {}
        self._latest = latest
        self.watch = NEVER
        self.notices = notices or Notices("ids", connection.clock)
        self.blocks = self.fallback_blocks = 0

    def check_may_wait(self) -> None:
        """Raise MustWait if this call may not wait. Call it before anything is changed."""
        self.connection.check_may_wait()

    def take(self, count: int) -> tuple[Block, bool]:
        """Return up to *count* ticks of UTC, and whether they came from the daemon.

        Raises DaemonUnavailable if they cannot, and there is no fallback.
        """
        block = self._ask("utc", self.connection.take, count, fallback=self._fallback)
        if block is not None:
            self.watch = self.connection.watch
            return block, True
        clock = self.clock
        begun = clock.elapsed()
        self.fallback_blocks += 1
        while True:
            fallback = _current_fallback()
            waited = clock.elapsed() - begun
            taken = fallback.take(count, now=utc_tick(clock), waited=waited)
            if not isinstance(taken, int):
                self.watch = fallback.watch
                return taken, False
            # UTC stepped back, but by 10 ms at most: otherwise there would be another node.
            clock.pause(taken / TICKS_PER_SECOND)

    def take_snowflake(self, count: int) -> SteadyBlock:
        """Return up to *count* ticks of the steady timeline, with a worker number.

        They are as those of ``take_steady``. There is no fallback, because only a worker number of
        the host's own keeps the Snowflakes of two processes distinct. Raises DaemonUnavailable.
        """
        take = partial(self._take_later, self.connection.take_snowflake)
        block = self._ask("snowflake", take, count, fallback=False)
        assert block is not None  # noqa: S101  (without a fallback, this was raised)
        self._latest.note(block.first + block.count)
        self.watch = self.connection.watch
        return block

    def take_steady(self, count: int) -> tuple[SteadyBlock, bool]:
        """Return up to *count* ticks of the steady timeline, and whether they came from the daemon.

        They are later than all steady ticks before, of the daemon or the fallback, unless those are
        more than an hour ahead. Raises DaemonUnavailable if the daemon has none, and there is no
        fallback.
        """
        take = partial(self._take_later, self.connection.take_steady)
        block = self._ask("steady", take, count, fallback=self._fallback)
        safe = block is not None
        self.fallback_blocks += not safe
        self.watch = self.connection.watch
        while block is None:
            ticks = int(self.clock.elapsed() * TICKS_PER_SECOND)
            past = self._latest.end
            fallback = _current_fallback()
            self.watch = fallback.watch
            taken = fallback.take_steady(count, past=past, now=utc_tick(self.clock), elapsed=ticks)
            if isinstance(taken, int):
                self.clock.pause(taken / TICKS_PER_SECOND)
            else:
                block = taken
        self._latest.note(block.first + block.count)
        return block, safe

    def _ask(
        self, timeline: str, take: Callable[[int], AnyBlock], count: int, *, fallback: bool
    ) -> AnyBlock | None:
        """Return a block of the daemon's, or None if the *fallback* is to be used.

        Raises DaemonUnavailable without a *fallback*. A daemon that refused is not asked again for
        RETRY_SECONDS, nor is one that was not there if there is a *fallback*. For a silent one the
        connection checks at each call whether it has answered, which costs next to nothing.
        """
        retry_at, refused = self._refused.get(timeline, (0.0, None))
        if refused is not None and self.clock.elapsed() < retry_at:
            if fallback:
                return None
            raise copy(refused)
        try:
            block = take(count)
        except DaemonUnavailable as unavailable:
            if unavailable.code is not None or (fallback and unavailable.reason != "silent"):
                # A copy, because the traceback would keep all that the caller's frames have.
                self._refused[timeline] = self.clock.elapsed() + RETRY_SECONDS, copy(unavailable)
            self.notices.failed(unavailable, fallback=fallback)
            if fallback:
                return None
            raise
        self.blocks += 1
        self.notices.answered(self.connection.path)
        return block

    def _take_later(self, take: Callable[[int], SteadyBlock], count: int) -> SteadyBlock:
        """Take a block from the daemon; return the part that is later than all that was used here.

        There may be no such part: then the daemon's clock is behind the ids that this process has
        made without it, or the daemon has lost its state. A block that is more than an hour behind
        is used: the ticks used here were then of a wrong clock, or of a clock set by a test.
        """
        # Read before the request: a signal handler that interrupts it gets later ticks.
        used = self._latest.end
        block = take(count)
        end = block.first + block.count
        if used - end > MAX_LEAD:
            return block
        if end <= used:
            raise DaemonUnavailable(
                self.connection.path,
                "its steady timeline is behind what this process has used",
                "behind",
            )
        first = max(block.first, used)
        return SteadyBlock(first, end - first, block.node, block.worker, block.epoch)


def _current_fallback() -> Fallback:
    """Return the fallback of this process, of after the last clone of the machine."""
    fallback = local_fallback.get()
    if fallback.watch.moved:
        # As in a fork's child.
        fallback.alive[0] = 0.0
        fallback = local_fallback.get()
    return fallback
