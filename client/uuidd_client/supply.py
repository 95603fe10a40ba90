"""The ticks of one kind in one process: blocks, cut into runs from which ids are drawn.

Theory of operation

1. A *supply* holds what is left of one block. Ids leave it by way of *runs*: C iterators over some
   thousand ids at most, of which ``next`` is atomic, so that drawing one needs no lock.
2. One run is out at a time. To start another, or to make many ids at once, the supply takes back
   what is left of it, by drawing it to its end. So ids of a kind rise, whatever their form.
3. Each block has a deadline, in memory that a fork wipes. Who draws an id checks the deadline
   after that; past it, or in a forked child, the id is dropped and a new run asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias
from uuid import SafeUUID

from uuidd.core.ids import runs
from uuidd.core.ids.timebased import TICKS_PER_SECOND
from uuidd_client.clocks import elapsed, utc_tick
from uuidd_client.demand import Demand
from uuidd_client.forms import ITERATORS, safety, uuids
from uuidd_client.page import Page
from uuidd_client.source import Source

SHORT_RUN, LONG_RUN = 16, 4096
"""Ids of a run: the first after a change of form, and the most. What is left of a run has to be
drawn to its end when the form changes, and is worth the more the less often that happens."""

REFETCHES = 3
"""How often another block is asked for when one holds nothing later than what was used."""


Run: TypeAlias = "tuple[Callable[[], Any], SafeUUID, memoryview[float]]"
"""What ids are drawn from: *draw*, their mark, and *deadline*.

*draw* gives the next id or raises StopIteration. What it gave counts if ``elapsed() < deadline[0]``
holds afterwards. A plain tuple, for it is unpacked at each id, and a named one takes twice as long.
"""


class Supply:
    """The ticks of *kind*, from *source*. Not for two threads at once; runs are."""

    def __init__(self, kind: str, source: Source, page: Page, max_age: float) -> None:
        self._kind = kind
        self._source = source
        self._page = page
        self._max_age = max_age
        self._demand = Demand(max_age)
        self._first = self._end = 0
        self._clock_seq = self._node = 0
        self._safe = SafeUUID.unknown
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
        count = min(self._length, self._end - self._first, runs.room(self._first))
        ids = self._cut(form, count)
        self._out, self._out_form = ids, form
        self._length = min(2 * self._length, LONG_RUN)
        return (ids.__next__, self._safe, self._deadline), next(ids)

    def make(self, count: int, form: str) -> list[Any]:
        """Give exactly *count* ids in *form*. Raises DaemonUnavailable; what was made is lost."""
        self._take_back()
        made: list[Any] = []
        while count:
            self._have(count)
            part = min(count, self._end - self._first, runs.room(self._first))
            ids = self._cut(form, part)
            made += uuids(ids, part, self._safe) if form == "uuid" else ids
            count -= part
        return made

    def _cut(self, form: str, count: int) -> Iterator[Any]:
        first = self._first
        self._first += count
        self._used += count
        return ITERATORS[form](self._kind, first, count, self._clock_seq, self._node)

    def _take_back(self) -> None:
        """Take back what is left of the run that is out. Nobody can draw from it after that."""
        if self._out is None:
            return
        left = list(self._out)
        self._out = None
        if not left:
            return
        first = self._first - len(left)
        # Another thread that drew in the middle of that leaves a gap: then all of it is dropped.
        again = ITERATORS[self._out_form](self._kind, first, 1, self._clock_seq, self._node)
        if next(again) == left[0]:
            self._first = first
            self._used -= len(left)

    def _have(self, needed: int) -> None:
        """See to it that there are ticks, and that they are current."""
        if self._first < self._end and elapsed() < self._deadline[0]:
            return
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

    def _fetch(self, needed: int) -> None:
        asked_at = elapsed()
        asked = self._demand.size(needed, self._used, asked_at)
        block, from_daemon = self._source.take(asked)
        self._used = 0
        self._first, self._end = block.first, block.first + block.count
        self._clock_seq, self._node = block.clock_seq, block.node
        self._safe = safety(from_daemon)
        # Its first tick is that much older than the block.
        age = block.count / TICKS_PER_SECOND
        self._deadline = self._page.slot(asked_at + self._max_age - age)
