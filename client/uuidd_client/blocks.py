"""The blocks of one kind: how many ticks to ask for, and which answers its ids cannot have."""

from __future__ import annotations

from uuidd.core.ids.kinds import KINDS
from uuidd.core.ids.layouts import LAYOUTS, Origin, time_fields
from uuidd.core.timeline import Block, SteadyBlock
from uuidd_client.demand import Demand
from uuidd_client.errors import DaemonUnavailable, TimeOutOfRange
from uuidd_client.source import Source, utc_tick

MAX_NODES = 8
"""Blocks in a row of one call, each under another node, after which the daemon counts as broken."""


class Blocks:
    """The blocks of *source* for the ids of *kind*, none of which may be older than *max_age*.

    *origin* is that of the last block's ids, and *times* are those that they can hold, None for
    any.
    """

    def __init__(self, kind: str, source: Source, max_age: float) -> None:
        self._kind = kind
        self._timeline = KINDS[kind].timeline
        self._ticks = LAYOUTS[kind].ticks
        self._source = source
        self._clock = source.clock
        self._demand = Demand(max_age, least=self._ticks(1))
        self.origin = Origin(0)
        self.times = time_fields(self.origin.epoch).get(kind)
        self._nodes = 0

    def begin_call(self) -> None:
        """Begin a call, in which the daemon may change its node only so often."""
        self._nodes = 0

    def take(self, needed: int, used: int) -> tuple[Block | SteadyBlock, bool]:
        """Return the next block, and whether it came from the daemon.

        *needed* ids are to be made of it, and *used* were made of the last one.

        Raises DaemonUnavailable, TimeOutOfRange, or MustWait if the call may not wait.
        """
        asked_at = self._clock.elapsed()
        self._source.check_may_wait()
        asked = self._demand.size(self._ticks(needed), self._ticks(used), asked_at)
        block, from_daemon = self._take(asked)
        self._demand.came(self._clock.elapsed())
        origin = block.origin if from_daemon else block.origin._replace(lane=None)
        if origin == self.origin:
            self._nodes = 0
        else:
            # Not if the daemon comes and goes: the fallback has a node of its own too.
            self._nodes = self._nodes + 1 if from_daemon else 0
            if self._nodes > MAX_NODES:
                raise self.broken(f"{self._nodes} answers in a row each have another node")
            self.origin = origin
        return block, from_daemon

    def broken(self, cause: str) -> DaemonUnavailable:
        """Return the error of a daemon that is not usable."""
        return DaemonUnavailable(
            self._source.connection.path, f"an unusable answer: {cause}", "unusable"
        )

    def _take(self, count: int) -> tuple[Block | SteadyBlock, bool]:
        if self._timeline == "utc":
            return self._source.take(count)
        if self._timeline == "snowflake":
            block, from_daemon = self._source.take_snowflake(count), True
        else:
            block, from_daemon = self._source.take_steady(count)
        self._check_time(block, from_daemon)
        return block, from_daemon

    def _check_time(self, block: SteadyBlock, from_daemon: bool) -> None:
        """Raise TimeOutOfRange if ids of this kind cannot hold the time of a block.

        If they can hold the current UTC, the daemon is wrong: raises DaemonUnavailable.
        """
        if self._kind == "snowflake" and block.epoch != self.origin.epoch:
            self.times = time_fields(block.epoch)[self._kind]
        times = self.times
        assert times is not None  # noqa: S101  (all steady kinds have such a field)
        last = block.first + block.count - 1
        if times.epoch <= block.first and last < times.end:
            return
        error = TimeOutOfRange(self._kind, last, times.epoch, times.end)
        if from_daemon and times.epoch <= utc_tick(self._clock) < times.end:
            raise self.broken(str(error)) from error
        raise error
