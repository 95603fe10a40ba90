"""The fallback: both timelines of the daemon, without its state, in a process that finds no daemon.

A process has one fallback, which all its clients, threads and signal handlers share. So the ticks
that one of them gets are later than those that the others got before.
"""

from collections.abc import Callable
from copy import copy
from typing import Generic, NamedTuple, TypeVar

from uuidd.core.ids.nodes import random_node
from uuidd.core.ids.snowflake import TWITTER_EPOCH
from uuidd.core.ids.ticks import TICKS_PER_SECOND
from uuidd.core.ids.versions import CLOCK_SEQ_BITS
from uuidd.core.timeline import Block, Lane, NoneFree, SteadyBlock
from uuidd.core.timeline.slew import MAX_LEAD_SECONDS, Slew
from uuidd.core.timeline.volatile import TOLERANCE
from uuidd_client.fork_guard import ForkGuard
from uuidd_client.per_process import Owned, PerProcess
from uuidd_client.system import random_bits
from uuidd_client.watch import latest

MAX_LEAD = MAX_LEAD_SECONDS * TICKS_PER_SECOND
"""The most ticks by which steady ids lead UTC. To lead further, their timeline is started again."""

STILL_SECONDS = 0.02
"""Seconds after which a caller no longer waits for UTC. It waits for 10 ms of UTC at most, so a
clock that has not moved that far stands still."""

Value = TypeVar("Value")
Result = TypeVar("Result")


class Fallback(Owned):
    """Blocks under random nodes. Where there is none yet, an int says how many ticks to wait.

    Any thread may use it, and a signal handler that interrupts the thread. *alive* and *child* are
    for ``PerProcess``. Its nodes were drawn under *watch*.
    """

    def __init__(self) -> None:
        self._guard = ForkGuard()
        self.alive = self._guard.alive
        self.child: dict[str, Fallback] = {}
        self.watch = latest()
        self._utc = _Shared(_fresh_utc(0))
        self._steady = _Shared(_fresh_steady())

    def take(self, count: int, *, now: int, waited: float = 0.0) -> Block | int:
        """Take up to *count* ticks of UTC, for a caller that has *waited* that many seconds.

        Another node and clock sequence are drawn if UTC stepped back by more than 10 ms, and if it
        stands still.
        """

        def take(utc: _Utc) -> tuple[_Utc | None, Block | int]:
            back = utc.lane.next - now
            still = waited >= STILL_SECONDS or now <= utc.still
            if back > TOLERANCE or (back > 0 and still):
                utc = _fresh_utc(now if still else 0)
            lane = copy(utc.lane)
            try:
                first, taken = lane.take(count, now=now)
            except NoneFree as none:
                return None, none.wait
            return utc._replace(lane=lane), Block(first, taken, utc.clock_seq, utc.node)

        return self._utc.change(take)

    def take_steady(self, count: int, *, past: int, now: int, elapsed: int) -> SteadyBlock | int:
        """Take up to *count* steady ticks, at *past* or later, and later than all taken before.

        Where they would lead UTC by more than an hour, they start again at UTC, under another node.
        """
        if past - now > MAX_LEAD:
            past = 0

        def take(steady: _Steady) -> tuple[_Steady | None, SteadyBlock | int]:
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
                first, taken = lane.take(count, now=end, not_before=past)
            except NoneFree as none:
                return None, none.wait
            block = SteadyBlock(first, taken, steady.node, None, TWITTER_EPOCH)
            return _Steady(steady.node, slew, lane), block

        return self._steady.change(take)


class _Utc(NamedTuple):
    """A timeline of UTC; the clock was found to stand still at tick *still*."""

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

    There is no lock, because a handler or a fork's child could find it held, and never released.
    Each value has one place for the next value; a caller that does not get that place starts again.
    """

    def __init__(self, value: Value) -> None:
        self._last = _Link(value)

    def change(self, make: Callable[[Value], tuple[Value | None, Result]]) -> Result:
        """Replace the value by the first that *make* returns for it, and return the second.

        If the first is None the value stays as it is.
        """
        while True:
            link = self._last
            while link.after:
                link = link.after["next"]
            # It may no longer be the last: then the next caller goes on from here.
            self._last = link
            value, result = make(link.value)
            if value is None:
                return result
            following = _Link(value)
            # Atomic: of two callers exactly one gets the place.
            if link.after.setdefault("next", following) is following:
                return result


class _Link(Generic[Value]):
    __slots__ = ("after", "value")

    def __init__(self, value: Value) -> None:
        self.value = value
        self.after: dict[str, _Link[Value]] = {}


def _fresh_utc(still: int) -> _Utc:
    return _Utc(random_node(random_bits), random_bits(CLOCK_SEQ_BITS), Lane(0), still)


def _fresh_steady() -> _Steady:
    return _Steady(random_node(random_bits), Slew(0, now=0, elapsed=0), Lane(0))


local_fallback = PerProcess(Fallback)
"""The fallback of this process."""
