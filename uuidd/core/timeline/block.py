"""A block: the ticks that a caller is given to make ids from."""

from __future__ import annotations

from uuidd.core.ids.places import Origin
from uuidd.core.typed import NamedTuple

MAX_BLOCK = 1_000_000
"""Ticks of one block: 0.1 s of one clock sequence, so a whole block is soon there. It is also the
most that libuuid's callers ask for in one request."""


class Block(NamedTuple):
    """The ticks ``first .. first + count``, half open, under one clock sequence and node.

    No other block of any process holds one of them under the same clock sequence and node.
    """

    first: int
    count: int  # type: ignore[assignment]  # a tuple has a method of that name, which is not used
    clock_seq: int
    node: int

    @property
    def origin(self) -> Origin:
        """What its ids hold beside the time."""
        return Origin(self.node, clock_seq=self.clock_seq)


class SteadyBlock(NamedTuple):
    """The ticks ``first .. first + count`` of the steady timeline, half open.

    No other block of this host holds one of them. *worker* is the host's worker number for
    Snowflakes, 0 to 1023, None if it has none. *epoch*, in Unix milliseconds, is the Snowflakes'.
    """

    first: int
    count: int  # type: ignore[assignment]  # likewise
    node: int
    worker: int | None
    epoch: int

    @property
    def origin(self) -> Origin:
        """What its ids hold beside the time."""
        return Origin(self.node, worker=self.worker, epoch=self.epoch)
