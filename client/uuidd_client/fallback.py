"""The fallback: the daemon's timelines, without its state, in a channel that finds no daemon."""

from __future__ import annotations

from uuidd.core.ids.nodes import random_node
from uuidd.core.ids.places import Origin
from uuidd.core.ids.ticks import TICKS_PER_SECOND
from uuidd.core.ids.versions import CLOCK_SEQ_BITS
from uuidd.core.timeline.generation import Lane
from uuidd.core.timeline.outcomes import NoneFree
from uuidd.core.timeline.slew import MAX_LEAD_SECONDS, TOLERANCE, Slew
from uuidd_client.system import ClientClock, random_bits

MAX_LEAD = MAX_LEAD_SECONDS * TICKS_PER_SECOND
"""The most ticks by which steady ids lead UTC. To lead further, their timeline is started again."""

STILL_SECONDS = 0.02
"""Seconds after which a caller no longer waits for UTC. It waits for 10 ms of UTC at most, so a
clock that has not moved that far stands still."""


class Fallback:
    """Blocks under random nodes, 61 random bits for each timeline, by *clock*. Not for two threads.

    What ``utc`` and ``steady`` return is the first tick, the number of ticks, and their origin.
    """

    def __init__(self, clock: ClientClock) -> None:
        self._clock = clock
        self._utc = _Timeline()
        self._steady = _Timeline()
        self._slew = Slew(0, now=0, elapsed=0)
        self._still = 0

    def utc(self, count: int) -> tuple[int, int, Origin]:
        """Take up to *count* ticks of UTC, and wait until there is one.

        Another node and clock sequence are drawn if UTC stepped back by more than 10 ms, and if it
        stands still.
        """
        begun = self._clock.elapsed()
        while True:
            now = self._clock.utc_tick()
            back = self._utc.lane.next - now
            still = self._clock.elapsed() - begun >= STILL_SECONDS or now <= self._still
            if back > TOLERANCE or (back > 0 and still):
                self._still = now if still else 0
                self._utc = _Timeline()
            try:
                first, taken = self._utc.lane.take(count, now=now)
                return first, taken, self._utc.origin
            except NoneFree as none:
                self._clock.pause(none.wait / TICKS_PER_SECOND)

    def steady(self, count: int, past: int) -> tuple[int, int, Origin]:
        """Take up to *count* steady ticks, at *past* or later, and later than all taken before.

        Waits until there is one. Where they would lead UTC by more than an hour, they start again
        at UTC, under another node.
        """
        while True:
            now, elapsed = self._clock.utc_tick(), int(self._clock.elapsed() * TICKS_PER_SECOND)
            if past - now > MAX_LEAD:
                past = 0
            slew = self._slew
            if max(self._steady.lane.next, past) <= now:
                slew.begin(now, elapsed=elapsed)
            slew.lift(past, now=now, elapsed=elapsed)
            end = slew.read(now=now, elapsed=elapsed)
            if end - now > MAX_LEAD:
                self._steady = _Timeline()
                end = max(now, past)
                slew.begin(end, elapsed=elapsed)
            try:
                first, taken = self._steady.lane.take(count, now=end, not_before=past)
                return first, taken, self._steady.origin
            except NoneFree as none:
                self._clock.pause(none.wait / TICKS_PER_SECOND)


class _Timeline:
    """A lane under a node of its own."""

    def __init__(self) -> None:
        node, clock_seq = random_node(random_bits), random_bits(CLOCK_SEQ_BITS)
        self.origin = Origin(node, clock_seq, lane=None)
        self.lane = Lane(0)
