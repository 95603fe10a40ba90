"""What stands in for the daemon in a process that finds none: both timelines, with no state."""

from __future__ import annotations

import os

from uuidd.core.ids.snowflake import TWITTER_EPOCH
from uuidd.core.timeline import Block, Lane, NoneFree, SteadyBlock
from uuidd.core.timeline.slew import Slew
from uuidd.core.timeline.state import random_node
from uuidd.core.timeline.volatile import Volatile


class StandIn:
    """Gives blocks under random nodes; an int instead is how many ticks to wait for one."""

    def __init__(self) -> None:
        self._utc = Volatile(_random_bits)
        self._node = random_node(_random_bits).value
        self._slew: Slew | None = None
        self._lane = Lane(0)

    def take(self, count: int, *, now: int) -> Block | int:
        """Give up to *count* ticks of UTC."""
        try:
            return self._utc.take(count, now=now)
        except NoneFree as none:
            return none.wait

    def take_steady(self, count: int, *, past: int, now: int, elapsed: int) -> SteadyBlock | int:
        """Give up to *count* steady ticks at or after *past*, and after all given before."""
        if self._slew is None:
            self._slew = Slew(past, now=now, elapsed=elapsed)
        self._slew.lift(past, now=now, elapsed=elapsed)
        steady = self._slew.read(now=now, elapsed=elapsed)
        try:
            first, given = self._lane.take(count, now=steady, not_before=past)
        except NoneFree as none:
            return none.wait
        return SteadyBlock(first, given, self._node, None, TWITTER_EPOCH)


def _random_bits(count: int) -> int:
    return int.from_bytes(os.urandom((count + 7) // 8), "big") >> -count % 8
