"""The ids of one kind in one process: blocks, cut into runs from which ids are drawn.

Theory of operation

1. A *supply* holds the places that are left of one block (``layouts`` says what a place is). Ids
   leave it by way of *runs*: C iterators over a thousand ids at most, of which ``next`` is
   atomic, so that drawing one needs no lock.
2. One run is out at a time. To start another, or to make many ids at once, the supply takes back
   what is left of it, by drawing it to its end. So ids of a kind rise, whatever their form.
3. Each block has a span of UTC in which its ids count: from the reading of UTC at the request to
   a deadline, which is kept in memory that a fork wipes. Whoever draws an id reads UTC after that.
   When UTC is past the deadline, or has gone back before the request, or the process is a fork's
   child, the id is dropped and a new run is asked for.
4. Random bits that are made ahead have such a span too, and never more of v4 than RANDOM_RUN.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias
from uuid import SafeUUID

from uuidd.core.ids.kinds import KINDS
from uuidd.core.ids.layouts import LAYOUTS, Origin, time_fields
from uuidd.core.ids.ticks import TICKS_PER_SECOND
from uuidd.core.timeline import Block, SteadyBlock
from uuidd_client.clocks import elapsed, pause, utc
from uuidd_client.demand import Demand
from uuidd_client.errors import DaemonUnavailable, NoWorkerId, RateExceeded, TimeOutOfRange
from uuidd_client.fork_guard import ForkGuard
from uuidd_client.forms import random_bytes, safety, uuids
from uuidd_client.source import Source, utc_tick

SHORT_RUN = 16
"""Ids of a run, the first after a change of form. What is left of a run has to be drawn to its end
when the form changes, and is worth the more the less often that happens."""

LONG_RUNS = {"uuid": 512, "text": 1024, "int": 1024, "bytes": 1024}
"""The most ids of a run: more of them leave the processor's cache before they are used."""

RANDOM_RUN = 128
"""The most ids of a run of v4, which are secrets that wait in memory until they are drawn."""

RANDOM_BLOCK = 1 << 30
"""Places of a block of ids without a time: no number of them means anything."""

REFETCHES = 3
"""How often another block is asked for when one holds nothing later than what was used."""

MOST_EMPTY = 32
"""Blocks in a row without a place, after which the daemon is found to be broken. A Snowflake has a
place on 4 of 10 ticks; and after a change of the node, places begin with the next millisecond."""

EMPTY_PAUSE = 0.0001
"""Seconds between such requests."""

MOST_NODES = 8
"""Blocks in a row of one call, each under another node or worker, after which the daemon is found
to be broken."""


Run: TypeAlias = "tuple[Iterator[Any], float, memoryview[float]]"
"""What ids are drawn from: *ids*, and *begin* and *deadline* of the span in which they count.

What ``next(ids)`` gave counts if ``begin <= utc() < deadline[0]``, where both are read after it. A
plain tuple, for it is unpacked at each id, and a named one takes twice as long.
"""


class Supply:
    """The ids of *kind*, from *source*. Not for two threads at once; runs are.

    Unless it may *wait*, ``make`` gives what is free at once, or nothing.
    """

    def __init__(
        self, kind: str, source: Source, page: ForkGuard, max_age: float, *, wait: bool = True
    ) -> None:
        self._kind = kind
        self._timeline = KINDS[kind].timeline
        self._layout = LAYOUTS[kind]
        self._source = source
        self._page = page
        self._max_age = max_age
        self._wait = wait
        self._demand = Demand(max_age, least=self._layout.ticks(1))
        self._first = self._end = self._not_before = 0
        self._origin = Origin(0)
        self._times = time_fields(self._origin.epoch).get(kind)
        self._nodes = 0
        self._safe = SafeUUID.unknown
        self._begin = 0.0
        self._deadline = page.slot(0.0)
        self._out: Iterator[Any] | None = None
        self._out_form = ""
        self._length = SHORT_RUN
        self._used = 0

    def run(self, form: str) -> tuple[Run, Any]:
        """Give a new run of ids in *form*, and its first id, which counts as it is.

        Raises DaemonUnavailable when there is no daemon, and no fallback.
        """
        self._take_back()
        if form != self._out_form:
            self._length = SHORT_RUN
        self._have(1)
        count = min(self._length, self._end - self._first, self._layout.room(self._first))
        ids = iter(self._cut(form, count))
        self._out, self._out_form = ids, form
        self._length = min(2 * self._length, LONG_RUNS[form] if self._timeline else RANDOM_RUN)
        return (ids, self._begin, self._deadline), next(ids)

    def make(self, count: int, form: str) -> list[Any]:
        """Give exactly *count* ids in *form*.

        Raises DaemonUnavailable; what was made is lost. Raises RateExceeded; nothing was made.
        """
        self._take_back()
        if not self._wait:
            self._have_at_once(count)
        made: list[Any] = []
        while count:
            self._have(count)
            part = min(count, self._end - self._first, self._layout.room(self._first))
            made += self._cut(form, part)
            count -= part
        return made

    def join(self, count: int) -> bytes:
        """Give the bytes of exactly *count* ids, in one piece. Raises as ``make``."""
        packed = self._layout.packed
        if packed is None:
            return b"".join(self.make(count, "bytes"))
        self._take_back()
        if not self._wait:
            self._have_at_once(count)
        made: list[bytes | bytearray] = []
        while count:
            self._have(count)
            part = min(count, self._end - self._first, self._layout.room(self._first))
            made.append(packed(self._first, part, self._origin, random_bytes))
            self._first += part
            self._used += part
            count -= part
        return b"".join(made)

    def give_up(self) -> None:
        """See to it that what is left of the block is not used."""
        self._deadline[0] = 0.0

    def _cut(self, form: str, count: int) -> Iterable[Any]:
        ids = self._ids(form, count)
        self._first += count
        self._used += count
        return ids

    def _ids(self, form: str, count: int) -> Iterable[Any]:
        """Give the ids of the next *count* places, all in one run."""
        ids = self._layout.forms[form](self._first, count, self._origin, random_bytes)
        return uuids(ids, count, self._safe) if form == "uuid" else ids

    def _take_back(self) -> None:
        """Take back what is left of the run that is out. Nobody can draw from it after that."""
        self._nodes = 0
        if self._out is None:
            return
        left = list(self._out)
        self._out = None
        if not left:
            return
        end = self._first
        self._first -= len(left)
        self._used -= len(left)
        # Another thread that drew in the middle of that leaves a gap: then all of it is dropped.
        # Where ids have random bits there is no telling, and no need: they differ again.
        if not self._layout.random and left[0] not in self._ids(self._out_form, 1):
            self._first = end
            self._used += len(left)

    def _have_at_once(self, count: int) -> None:
        """See to it that there are *count* places, all current. Raises RateExceeded."""
        if self._end - self._first >= count and self._counts():
            return
        self._deadline[0] = 0.0
        self._have(count)
        free = self._end - self._first
        if free < count:
            raise RateExceeded(self._kind, count, free)

    def _have(self, needed: int) -> None:
        """See to it that there are places, and that they are current."""
        if self._first < self._end and self._counts():
            return
        if self._timeline != "utc":
            # Whoever breaks off the fetch leaves no half of a block that seems current.
            self._deadline[0] = 0.0
            self._fetch(needed)
            for _ in range(MOST_EMPTY):
                if self._first < self._end:
                    return
                # Of three ticks in a row one has a place, but fewer may have been free; and under
                # another node, ids go on in the next run.
                if not self._wait:
                    raise RateExceeded(self._kind, needed, 0)
                pause(EMPTY_PAUSE)
                self._fetch(needed)
            raise self._broken(f"{MOST_EMPTY} blocks in a row have no place for a {self._kind}")
        last_used = self._first - 1
        self._deadline[0] = 0.0
        for tries_left in reversed(range(REFETCHES)):
            self._fetch(needed)
            if self._first > last_used or utc_tick() < last_used:
                # Later than all before it; or UTC stepped back, and order is not to be had.
                return
            if self._end - 1 > last_used:
                self._first = last_used + 1
                return
            if tries_left:
                self._first = self._end = last_used + 1

    def _counts(self) -> bool:
        """Whether UTC is in the span in which the ids of the block count."""
        return self._begin <= utc() < self._deadline[0]

    def _fetch(self, needed: int) -> None:
        layout = self._layout
        begin, asked_at = utc(), elapsed()
        if not self._timeline:
            # Random bits, of this process's own: with no age allowed, none is made ahead.
            size = RANDOM_BLOCK if self._max_age else needed
            self._first, self._end = self._end, self._end + size
            self._span(begin, begin + self._max_age)
            return
        asked = self._demand.size(layout.ticks(needed), layout.ticks(self._used), asked_at)
        block, from_daemon = self._take(asked)
        self._demand.came(elapsed())
        self._used = 0
        if block.origin == self._origin:
            self._nodes = 0
        else:
            # Not where the daemon comes and goes: this process has a node of its own, too.
            self._nodes = self._nodes + 1 if from_daemon else 0
            if self._nodes > MOST_NODES:
                raise self._broken(f"{self._nodes} answers in a row have each another node")
            if self._end and self._timeline == "steady" and not layout.random:
                # Within a run the node or the worker comes first in the order of ids.
                self._not_before = self._end - 1 + layout.room(self._end - 1)
            self._origin = block.origin
        first, end = layout.places(block.first, block.count)
        if first < self._end:
            # The source's blocks rise, unless it has begun again at a clock far behind.
            self._not_before = 0
        self._end = end
        self._first = min(max(first, self._not_before), self._end)
        self._safe = safety(from_daemon)
        # Its first tick is that much older than the block.
        age = block.count / TICKS_PER_SECOND
        self._span(begin, begin + self._max_age - age)

    def _span(self, begin: float, deadline: float) -> None:
        self._begin, self._deadline = begin, self._page.slot(deadline)

    def _take(self, count: int) -> tuple[Block | SteadyBlock, bool]:
        if self._timeline == "utc":
            return self._source.take(count)
        # Nothing but a worker number that is the host's alone tells Snowflakes of two makers apart.
        block, from_daemon = self._source.take_steady(count, fallback=self._kind != "snowflake")
        if self._kind == "snowflake" and block.worker is None:
            raise NoWorkerId(self._source.connection.path)
        self._check_time(block, from_daemon)
        return block, from_daemon

    def _check_time(self, block: SteadyBlock, from_daemon: bool) -> None:
        """Raise TimeOutOfRange if ids of this kind cannot tell the time of a block.

        Where they can tell what UTC is here, it is the daemon that is wrong: DaemonUnavailable.
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
