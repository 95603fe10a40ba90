"""Lanes, which give out each tick once, and a generation: 256 lanes side by side."""

from __future__ import annotations

from uuidd.core.ids import versions
from uuidd.core.timeline.outcomes import Block, NoneFree

LANE_BITS = versions.LANE_BITS
LANES = 1 << LANE_BITS
"""Lanes of a generation: the low 8 bits of a clock sequence."""

BLOCK_LANES = 16
"""Lanes that serve blocks, the lowest ones: one short blocks, 15 whole ones. Together they have 160
million ticks a second, more than the 60 million that libuuid's callers were seen to draw. The
others can be leased (``leases``)."""

GENERATION_BITS = versions.CLOCK_SEQ_BITS - LANE_BITS
GENERATIONS = 1 << GENERATION_BITS
"""Generations of a node: the high 6 bits of a clock sequence."""


class Lane:
    """A supply of ticks that gives out none twice.

    *next* is the first tick that it has not given out.
    """

    __slots__ = ("next",)

    def __init__(self, begin: int) -> None:
        self.next = begin

    def take(self, count: int, *, now: int, not_before: int = 0) -> tuple[int, int]:
        """Hand out the latest free ticks, at most *count* of them and none past *now*.

        None lies before *not_before* either. The result is the first tick and the number of ticks.
        When fewer than *count* are free the block is shorter, so that no caller can run the clock
        ahead (RFC 9562, 6.1). When the clock stands still or went back there may be none.

        Raises NoneFree, and changes nothing; the error says how many ticks to wait for one.
        """
        # Compared by hand: this runs at each request, and max() takes three times as long.
        end = now + 1
        first = end - count
        if first < self.next:
            first = self.next
        if first < not_before:
            first = not_before
        if first > now:
            raise NoneFree(first - now)
        self.next = end
        return first, end - first


class Generation:
    """The lanes for blocks of the clock sequences from ``number * 256`` on, all begun at *begin*.

    *top* is the highest ``next`` of the lanes: at or past it nothing was given out.
    """

    __slots__ = ("begin", "lanes", "node", "number", "top")

    def __init__(self, number: int, *, node: int, begin: int) -> None:
        self.number = number
        self.node = node
        self.begin = begin
        self.lanes = [Lane(begin) for _ in range(BLOCK_LANES)]
        self.top = begin

    def take(self, count: int, *, now: int, whole: bool, not_before: int = 0) -> Block:
        """Hand out at most *count* ticks from lane 0, or exactly *count* from one of the others.

        A single tick is whole by nature and comes from lane 0, which gives out none before
        *not_before*. A whole block comes from the lowest lane with room, so that small ones leave
        the upper lanes to large ones.

        Raises NoneFree, and changes nothing; the error says how many ticks to wait.
        """
        index = self._with_room(count, now) if whole and count > 1 else 0
        floor = 0 if index else not_before
        first, given = self.lanes[index].take(count, now=now, not_before=floor)
        if self.top < first + given:
            self.top = first + given
        return Block(first, given, self.number << LANE_BITS | index, self.node)

    @property
    def clock_seq(self) -> int:
        """The clock sequence of lane 0; those of the other lanes follow it."""
        return self.number << LANE_BITS

    def lanes_since(self, tick: int) -> int:
        """The number of lanes that gave out a tick at or past *tick*."""
        return sum(lane.next > max(tick, self.begin) for lane in self.lanes)

    def _with_room(self, count: int, now: int) -> int:
        latest_begin = now - count + 1
        for index in range(1, BLOCK_LANES):
            if self.lanes[index].next <= latest_begin:
                return index
        raise NoneFree(min(lane.next for lane in self.lanes[1:]) - latest_begin)
