"""A block: what a caller is given to make ids from."""

from __future__ import annotations

from typing import NamedTuple

from uuidd.core.ids.layouts import Origin


class Block(NamedTuple):
    """The ticks ``first .. first + count``, half open, under one clock sequence and node.

    They are the caller's alone: no other block of any process holds one of them under the same
    clock sequence and node.
    """

    first: int
    count: int  # type: ignore[assignment]  # a tuple has a method of that name, which is not used
    clock_seq: int
    node: int

    @property
    def origin(self) -> Origin:
        """What its ids tell beside the time."""
        return Origin(self.node, clock_seq=self.clock_seq)


class SteadyBlock(NamedTuple):
    """The ticks ``first .. first + count`` of the steady timeline, half open.

    They are the caller's alone on this host. *worker* is the host's machine number for Snowflakes,
    0 to 1023, None if it has none; *epoch* is theirs, in Unix milliseconds.
    """

    first: int
    count: int  # type: ignore[assignment]  # likewise
    node: int
    worker: int | None
    epoch: int

    @property
    def origin(self) -> Origin:
        """What its ids tell beside the time."""
        return Origin(self.node, worker=self.worker, epoch=self.epoch)
