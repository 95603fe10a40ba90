"""What a request for ticks comes to: a block of them, or why none can be given out just now.

No refusal is a fault. Each says what has to happen before a further try can succeed.
"""

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


class NotNow(Exception):
    """Nothing was given out, and nothing has changed. The subclass says why."""


class NoneFree(NotNow):
    """No tick is free. *wait* is the number of ticks after which there will be."""

    def __init__(self, wait: int) -> None:
        super().__init__(f"no tick is free for {wait} ticks")
        self.wait = wait


class NeedsSave(NotNow):
    """The horizon is reached: a save of the state has to complete first."""


class NeedsSwitch(NotNow):
    """UTC stepped back, or the stored node can serve again: another generation has to serve."""


class TooFarAhead(NotNow):
    """The steady timeline is *lead* ticks ahead of UTC; only *most* are allowed, 0 for none."""

    def __init__(self, lead: int, most: int) -> None:
        super().__init__(f"{lead} ticks ahead of UTC, and {most} is the most")
        self.lead = lead
        self.most = most


class NoNumber(NotNow):
    """The host has no worker number, or its fence ends before now: Snowflakes cannot be made."""


class Withheld(NotNow):
    """Steady gives out nothing before the clock is good enough; the message says what it lacks."""


class Closed(NotNow):
    """The timeline has stopped for good: its last state is being saved."""
