"""The ids of one kind in one process: blocks, cut into runs from which ids are drawn.

Theory of operation

1. A *supply* holds the places that are left of one block (``layouts`` says what a place is). Ids
   leave it in *runs*: iterators of C over a thousand ids at most. ``next`` of one is atomic, so
   drawing an id needs no lock.
2. One run is out at a time. To start another, or to make many ids at once, the supply takes back
   what is left of the run, by drawing it to its end. So the ids of a kind rise, in whatever form.
3. Each block has a span of UTC in which its ids are valid: from the reading of UTC at the request
   to a deadline, which is kept in memory that a fork's child finds empty. The caller reads UTC
   after it has drawn an id. If UTC is past the deadline, or has gone back before the request, or
   the process is a fork's child, the id is dropped and a new run is started.
4. Random bits that are made ahead have such a span too. A run of v4 is RANDOM_RUN ids at most.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import repeat
from typing import Any, TypeAlias
from uuid import UUID, SafeUUID

from uuidd.core.ids.kinds import KINDS
from uuidd.core.ids.layouts import LAYOUTS, Origin, time_fields
from uuidd.core.ids.ticks import TICKS_PER_SECOND
from uuidd.core.timeline import Block, SteadyBlock
from uuidd_client.demand import Demand
from uuidd_client.errors import DaemonUnavailable, NoWorkerId, RateExceeded, TimeOutOfRange
from uuidd_client.fork_guard import ForkGuard
from uuidd_client.own_lane import LEASE_AGE, OwnLane
from uuidd_client.source import Source, utc_tick
from uuidd_client.system import elapsed, pause, random_bytes, utc

SHORT_RUN = 16
"""Ids of the first run after a change of form, each of which draws what is left of a run."""

LONG_RUNS = {"uuid": 512, "text": 1024, "int": 1024, "bytes": 1024}
"""The most ids of a run: more of them leave the processor's cache before they are used."""

RANDOM_RUN = 128
"""The most ids of a run of v4: they are secrets that wait in memory until they are drawn."""

RANDOM_BLOCK = 1 << 30
"""Places of a block of ids without a time, where the number of a place means nothing."""

FETCHES = 3
"""How many blocks are fetched if each holds nothing later than the ids used before."""

MAX_EMPTY = 32
"""Blocks in a row without a place, after which the daemon counts as broken. A Snowflake has a place
on 4 of 10 ticks; after a change of node, places begin with the next millisecond."""

EMPTY_PAUSE = 0.0001
"""Seconds between such requests."""

MAX_NODES = 8
"""Blocks in a row of one call, each under another node, after which the daemon counts as broken."""

# A UUID forbids setting its attributes. Its slot descriptors set them, as its own __init__ does, in
# a fifth of the time that UUID(int=...) takes.
_UUID: Any = UUID
_new: Callable[[type[UUID]], UUID] = object.__new__
_set_int: Callable[[UUID, int], None] = _UUID.int.__set__
_set_is_safe: Callable[[UUID, SafeUUID], None] = _UUID.is_safe.__set__

LEASABLE = {"v1", "v6", "v7", "ulid", "ksuid", "push_id"}
"""The kinds that have room for the number of a lane."""

Run: TypeAlias = "tuple[Iterator[Any], float, memoryview[float]]"
"""What ids are drawn from: *ids*, and *begin* and *deadline* of the span in which they are valid.

An id of ``next(ids)`` is valid if ``begin <= utc() < deadline[0]``, where both are read after it. A
plain tuple, because it is unpacked at each id, and a named one takes twice as long.
"""


def uuids(ints: Iterable[int], count: int, safe: SafeUUID) -> list[UUID]:
    """Return *count* UUIDs of *ints*, marked *safe*. The loops run in C."""
    made = list(map(_new, repeat(UUID, count)))
    deque(map(_set_int, made, ints), 0)
    deque(map(_set_is_safe, made, repeat(safe)), 0)
    return made


class Supply:
    """The ids of *kind*, from *source*. Not for two threads at once; runs are.

    Ticks of *lane* come first, if there are any. Unless it may *wait*, ``make`` returns what is
    free at once, or nothing.
    """

    def __init__(
        self,
        kind: str,
        source: Source,
        guard: ForkGuard,
        max_age: float,
        *,
        wait: bool = True,
        lane: OwnLane | None = None,
    ) -> None:
        self._kind = kind
        self._timeline = KINDS[kind].timeline
        self._lane = lane if kind in LEASABLE else None
        self._layout = LAYOUTS[kind]
        self._source = source
        self._guard = guard
        self._max_age = max_age
        self._wait = wait
        self._demand = Demand(max_age, least=self._layout.ticks(1))
        self._first = self._end = self._not_before = 0
        self._origin = Origin(0)
        self._times = time_fields(self._origin.epoch).get(kind)
        self._nodes = 0
        self._leased = False
        self._not_cut_before = 0
        self._safe = SafeUUID.unknown
        self._begin = 0.0
        self._deadline = guard.slot(0.0)
        self._out: Iterator[Any] | None = None
        self._out_form = ""
        self._length = SHORT_RUN
        self._used = 0

    def run(self, form: str) -> tuple[Run, Any]:
        """Return a new run of ids in *form*, and its first id, which is valid as it is.

        Raises DaemonUnavailable if there is no daemon, and no fallback.
        """
        self._take_back()
        if form != self._out_form:
            self._length = SHORT_RUN
        self._ensure(1)
        first, count = self._use(self._length)
        ids = iter(self._ids(form, first, count))
        self._out, self._out_form = ids, form
        self._length = min(2 * self._length, LONG_RUNS[form] if self._timeline else RANDOM_RUN)
        return (ids, self._begin, self._deadline), next(ids)

    def make(self, count: int, form: str) -> list[Any]:
        """Return exactly *count* ids in *form*.

        Raises DaemonUnavailable; the ids made so far are lost. Raises RateExceeded; none was made.
        """
        self._take_back()
        if not self._wait:
            self._ensure_at_once(count)
        made: list[Any] = []
        while count:
            self._ensure(count)
            first, part = self._use(count)
            made += self._ids(form, first, part)
            count -= part
        return made

    def join(self, count: int) -> bytes:
        """Return the bytes of exactly *count* ids, in one piece. Raises as ``make``."""
        packed = self._layout.packed
        if packed is None:
            return b"".join(self.make(count, "bytes"))
        self._take_back()
        if not self._wait:
            self._ensure_at_once(count)
        made: list[bytes | bytearray] = []
        while count:
            self._ensure(count)
            first, part = self._use(count)
            made.append(packed(first, part, self._origin, random_bytes))
            count -= part
        return b"".join(made)

    def drop_block(self) -> None:
        """Drop what is left of the block. The next ids are later than all that were made so far."""
        self._deadline[0] = 0.0
        if self._lane is not None:
            self._not_cut_before = self._lane.end()

    def _use(self, count: int) -> tuple[int, int]:
        """Use up to *count* places that lie within one run: return the first, and how many."""
        first = self._first
        count = min(count, self._end - first, self._layout.room(first))
        self._first += count
        self._used += count
        return first, count

    def _ids(self, form: str, first: int, count: int) -> Iterable[Any]:
        """Return the ids of *count* places, all within one run."""
        ids = self._layout.forms[form](first, count, self._origin, random_bytes)
        return uuids(ids, count, self._safe) if form == "uuid" else ids

    def _take_back(self) -> None:
        """Take back what is left of the run that is out: nothing can be drawn from it then."""
        self._nodes = 0
        if self._out is None:
            return
        if self._leased and not self._valid():
            # What is left can never be drawn, and there are newer ticks in the lane.
            self._out, self._length = None, SHORT_RUN
            return
        left = list(self._out)
        self._out = None
        # If another thread drew in the middle of that there is a gap: then all of it is dropped.
        # With random bits a gap cannot be seen, and does no harm: the next bits are different.
        first = self._first - len(left)
        if left and (self._layout.random or left[0] in self._ids(self._out_form, first, 1)):
            self._first = first
            self._used -= len(left)

    def _ensure_at_once(self, count: int) -> None:
        """Ensure that there are *count* places, all valid. Raises RateExceeded."""
        if self._end - self._first >= count and self._valid():
            return
        self._deadline[0] = 0.0
        self._ensure(count)
        free = self._end - self._first
        if free < count:
            raise RateExceeded(self._kind, count, free)

    def _ensure(self, needed: int) -> None:
        """Ensure that there are valid places. *needed* is how many the caller wants."""
        if self._first < self._end and self._valid():
            return
        # First, so that an interrupted fetch leaves no part of a block that looks valid.
        self._deadline[0] = 0.0
        if self._lane is not None and self._cut(self._lane, needed):
            return
        if self._timeline != "utc":
            self._fetch(needed)
            for _ in range(MAX_EMPTY):
                if self._first < self._end:
                    return
                # Of three ticks in a row one has a place, but fewer may have been free; and under
                # another node, ids go on in the next run.
                if not self._wait:
                    raise RateExceeded(self._kind, needed, 0)
                pause(EMPTY_PAUSE)
                self._fetch(needed)
            raise self._broken(f"{MAX_EMPTY} blocks in a row have no place for a {self._kind}")
        last_used = self._first - 1
        for tries_left in reversed(range(FETCHES)):
            self._fetch(needed)
            if self._first > last_used or utc_tick() < last_used:
                # Later than all before it; or UTC stepped back, and there can be no order.
                return
            if self._end - 1 > last_used:
                self._first = last_used + 1
                return
            if tries_left:
                self._first = self._end = last_used + 1

    def _valid(self) -> bool:
        """Whether UTC is in the span in which the ids of the block are valid."""
        return self._begin <= utc() < self._deadline[0]

    def _cut(self, lane: OwnLane, needed: int) -> bool:
        """Take the latest ticks of *lane*, and return whether any can be used now."""
        begin, max_age = utc(), self._max_age
        # Those of a run are drawn one by one, while they are young; those of a list are used now.
        count = min(max(needed, self._length), int(max_age * TICKS_PER_SECOND)) or 1
        block = lane.cut(count, after=max(self._first, self._not_cut_before))
        if block is None:
            return False
        first, end = block.first, block.first + block.count
        times = self._times
        if times is not None and not times.epoch <= first < end <= times.end:
            # The same answer from the daemon is an error that says so.
            return False
        self._first, self._end, self._origin = first, end, block.origin
        self._leased, self._safe = True, SafeUUID.safe
        # The first tick is older than now by this.
        age = block.count / TICKS_PER_SECOND
        self._span(begin, begin + min(max_age, LEASE_AGE) - age)
        return True

    def _fetch(self, needed: int) -> None:
        layout = self._layout
        begin, asked_at = utc(), elapsed()
        if not self._timeline:
            # Random bits of this process. With a max_age of 0 none are made ahead.
            size = RANDOM_BLOCK if self._max_age else needed
            self._first, self._end = self._end, self._end + size
            self._span(begin, begin + self._max_age)
            return
        asked = self._demand.size(layout.ticks(needed), layout.ticks(self._used), asked_at)
        block, from_daemon = self._take(asked)
        self._leased = False
        self._demand.came(elapsed())
        self._used = 0
        # The fallback has no lane of its own. Its ids have more random bits instead.
        origin = block.origin if from_daemon else block.origin._replace(lane=None)
        if origin == self._origin:
            self._nodes = 0
        else:
            # Not if the daemon comes and goes: the fallback has a node of its own too.
            self._nodes = self._nodes + 1 if from_daemon else 0
            if self._nodes > MAX_NODES:
                raise self._broken(f"{self._nodes} answers in a row each have another node")
            if self._end and self._timeline == "steady" and not layout.random:
                # Within a run the node or the worker comes first in the order of ids.
                self._not_before = self._end - 1 + layout.room(self._end - 1)
            self._origin = origin
        first, end = layout.places(block.first, block.count)
        if first < self._end:
            # The source's blocks rise, unless it has started again with a clock far behind.
            self._not_before = 0
        self._end = end
        self._first = min(max(first, self._not_before), self._end)
        self._safe = SafeUUID.safe if from_daemon else SafeUUID.unknown
        # The first tick is older than the block by this.
        age = block.count / TICKS_PER_SECOND
        self._span(begin, begin + self._max_age - age)

    def _span(self, begin: float, deadline: float) -> None:
        self._begin, self._deadline = begin, self._guard.slot(deadline)

    def _take(self, count: int) -> tuple[Block | SteadyBlock, bool]:
        if self._timeline == "utc":
            return self._source.take(count)
        # Only a worker number of the host's own keeps the Snowflakes of two processes distinct.
        block, from_daemon = self._source.take_steady(count, fallback=self._kind != "snowflake")
        if self._kind == "snowflake" and block.worker is None:
            raise NoWorkerId(self._source.connection.path)
        self._check_time(block, from_daemon)
        return block, from_daemon

    def _check_time(self, block: SteadyBlock, from_daemon: bool) -> None:
        """Raise TimeOutOfRange if ids of this kind cannot hold the time of a block.

        If they can hold the current UTC, the daemon is wrong: raises DaemonUnavailable.
        """
        if self._kind == "snowflake" and block.epoch != self._origin.epoch:
            self._times = time_fields(block.epoch)[self._kind]
        times = self._times
        assert times is not None  # noqa: S101  (all steady kinds have such a field)
        last = block.first + block.count - 1
        if times.epoch <= block.first and last < times.end:
            return
        error = TimeOutOfRange(self._kind, last, times.epoch, times.end)
        if from_daemon and times.epoch <= utc_tick() < times.end:
            raise self._broken(str(error)) from error
        raise error

    def _broken(self, cause: str) -> DaemonUnavailable:
        return DaemonUnavailable(self._source.connection.path, f"an unusable answer: {cause}")
