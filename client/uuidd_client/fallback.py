"""What stands in for the daemon in a process that finds none: both timelines, with no state.

A process has one stand-in, whatever number of clients, threads and signal handlers use it, so what
one of them gets is later than what all others got before.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from copy import copy
from typing import Generic, NamedTuple, TypeVar

from uuidd.core.ids.snowflake import TWITTER_EPOCH
from uuidd.core.ids.ticks import TICKS_PER_SECOND
from uuidd.core.ids.versions import CLOCK_SEQ_BITS
from uuidd.core.timeline import Block, Lane, NoneFree, SteadyBlock
from uuidd.core.timeline.state import random_node
from uuidd.core.timeline.steady import MAX_LEAD_SECONDS, Slew
from uuidd.core.timeline.volatile import TOLERANCE
from uuidd_client.fork_guard import alive

MAX_LEAD = MAX_LEAD_SECONDS * TICKS_PER_SECOND
"""The most ticks by which steady ids lead UTC: order begins anew rather than further ahead."""

STILL = 0.02
"""Seconds after which a caller no longer waits for UTC: what is waited for is 10 ms at most, so a
clock that has not come so far stands still."""

Value = TypeVar("Value")
Given = TypeVar("Given")


class StandIn:
    """Gives blocks under random nodes; an int instead is how many ticks to wait for one.

    Any thread may use it, and a signal handler in the middle of that. *alive* tells whether this is
    the process that it was made in; see ``here``.
    """

    def __init__(self) -> None:
        self.alive = alive()
        self.child: dict[str, StandIn] = {}
        self._utc = _Shared(_fresh_utc(0))
        self._steady = _Shared(_fresh_steady())

    def take(self, count: int, *, now: int, waited: float = 0.0) -> Block | int:
        """Give up to *count* ticks of UTC, to a caller that has *waited* so many seconds for them.

        Node and clock sequence are drawn anew when UTC stepped back by more than 10 ms, and when it
        stands still.
        """

        def give(utc: _Utc) -> tuple[_Utc | None, Block | int]:
            back = utc.lane.next - now
            still = waited >= STILL or now <= utc.still
            if back > TOLERANCE or (back > 0 and still):
                utc = _fresh_utc(now if still else 0)
            lane = copy(utc.lane)
            try:
                first, given = lane.take(count, now=now)
            except NoneFree as none:
                return None, none.wait
            return utc._replace(lane=lane), Block(first, given, utc.clock_seq, utc.node)

        return self._utc.change(give)

    def take_steady(self, count: int, *, past: int, now: int, elapsed: int) -> SteadyBlock | int:
        """Give up to *count* steady ticks at or after *past*, and after all given before.

        Where that would lead UTC by more than an hour, they begin anew at UTC, under another node.
        """
        if past - now > MAX_LEAD:
            past = 0

        def give(steady: _Steady) -> tuple[_Steady | None, SteadyBlock | int]:
            slew, lane = copy(steady.slew), copy(steady.lane)
            if max(lane.next, past) <= now:
                slew.begin(now, elapsed=elapsed)
            slew.lift(past, now=now, elapsed=elapsed)
            end = slew.read(now=now, elapsed=elapsed)
            if end - now > MAX_LEAD:
                steady = _fresh_steady()
                slew, lane = copy(steady.slew), copy(steady.lane)
                end = max(now, past)
                slew.begin(end, elapsed=elapsed)
            try:
                first, given = lane.take(count, now=end, not_before=past)
            except NoneFree as none:
                return None, none.wait
            block = SteadyBlock(first, given, steady.node, None, TWITTER_EPOCH)
            return _Steady(steady.node, slew, lane), block

        return self._steady.change(give)


class _Utc(NamedTuple):
    """A timeline of UTC; the clock is known to have stood still at tick *still*."""

    node: int
    clock_seq: int
    lane: Lane
    still: int


class _Steady(NamedTuple):
    """A steady timeline."""

    node: int
    slew: Slew
    lane: Lane


class _Shared(Generic[Value]):
    """A value that threads and signal handlers change one after another.

    There is no lock, which a handler or a fork's child could find held for good. Each value has one
    place for the value after it, and whoever does not get that place begins again.
    """

    def __init__(self, value: Value) -> None:
        self._last = _Link(value)

    def change(self, make: Callable[[Value], tuple[Value | None, Given]]) -> Given:
        """Give what *make* gives beside the value that is to follow; None leaves it as it is."""
        while True:
            link = self._last
            while link.after:
                link = link.after["next"]
            # Perhaps not the last any more: then the next caller goes on from here.
            self._last = link
            value, given = make(link.value)
            if value is None:
                return given
            following = _Link(value)
            # Atomic, and so the one place where it is decided.
            if link.after.setdefault("next", following) is following:
                return given


class _Link(Generic[Value]):
    __slots__ = ("after", "value")

    def __init__(self, value: Value) -> None:
        self.value = value
        self.after: dict[str, _Link[Value]] = {}


def _fresh_utc(still: int) -> _Utc:
    return _Utc(random_node(_random_bits).value, _random_bits(CLOCK_SEQ_BITS), Lane(0), still)


def _fresh_steady() -> _Steady:
    return _Steady(random_node(_random_bits).value, Slew(0, now=0, elapsed=0), Lane(0))


def _random_bits(count: int) -> int:
    return int.from_bytes(os.urandom((count + 7) // 8), "big") >> -count % 8


_here = StandIn()


def here() -> StandIn:
    """Give the stand-in of this process. A fork's child has another than its parent."""
    global _here
    found = _here
    while not found.alive[0]:
        # Atomic, so all threads of the child find the same one.
        found = found.child.setdefault("child", StandIn())
    _here = found
    return found
