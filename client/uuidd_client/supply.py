"""The ids of one kind in one process: blocks, cut into runs from which ids are drawn.

Theory of operation

1. Ids are made of places (``places``). They leave the supply in *runs*: deques of a thousand ids
   at most. ``popleft`` of one is atomic, so drawing an id needs no lock. (Where threads share an
   iterator of C, CPython 3.11.2 raises SystemError.)
2. One run is out at a time. To start another, or to make many ids at once, the supply takes back
   what is left of the run, by drawing it to its end. So the ids of a kind rise, in whatever form.
3. The places have a span of UTC in which their ids are valid: from the reading of UTC at the
   request to a deadline, which is kept in memory that a fork's child finds empty. The caller reads
   UTC after it has drawn an id. If UTC is past the deadline, or has gone back before the request,
   or the process is a fork's child, the id is dropped and a new run is started.
4. Random bits that are made ahead have such a span too, of a millisecond. A run of v4 is RANDOM_RUN
   ids at most.
5. The caller also compares the epoch in a page (``watch``) with that of the run, which is dropped
   if the machine was cloned. So is a list that was being made.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import repeat, starmap
from typing import Any, TypeAlias

from uuidd_client.direct import direct
from uuidd_client.errors import DaemonUnavailable
from uuidd_client.lease import Holding
from uuidd_client.places import Places
from uuidd_client.system import random_bytes
from uuidd_client.uuid_objects import new_uuids

SHORT_RUN = 16
"""Ids of the first run after a change of form, each of which draws what is left of a run."""

LONG_RUNS = {"uuid": 512, "text": 1024, "int": 1024, "bytes": 1024}
"""The most ids of a run: more of them leave the processor's cache before they are used."""

SLOW_RUNS = {("ksuid", "text"): 128}
"""The same for ids that take microseconds each: a longer run would outlast LEASE_AGE in the making.
"""

_TRIES = range(8)
"""Times that a list is made, because the machine was cloned meanwhile, until the daemon counts as
broken."""

RANDOM_RUN = 128
"""The most ids of a run of v4: they are secrets that wait in memory until they are drawn."""

Run: TypeAlias = "tuple[Callable[[], Any], float, memoryview[float], memoryview[int], int]"
"""What ids are drawn from: *take*, *begin* and *deadline* of the span in which they are valid, and
*epochs* and *epoch* of their ``Watch``.

``take()`` returns the next id; it raises IndexError, or returns None, if there is none. An id is
valid if ``begin <= utc() < deadline[0] and epochs[0] == epoch``, where all are read after it. A
plain tuple, because it is unpacked at each id, and a named one takes twice as long.
"""


Direct: TypeAlias = "tuple[Callable[[], Any], memoryview[float]] | None"
"""A function that makes one id or returns None, and a deadline that passes in a fork's child."""


class _Cloned(Exception):
    """The machine was cloned while a list was made."""


class Supply:
    """The ids of one kind, made on *places*. Not for two threads; runs are."""

    def __init__(self, places: Places) -> None:
        self.places = places
        self._out: deque[Any] | None = None
        self._out_form = ""
        self._length = SHORT_RUN
        self._direct: dict[str, tuple[Holding, Direct]] = {}

    def direct(self, form: str) -> Direct:
        """Return a function that makes one id in *form*, or returns None; see ``direct``.

        None while no lane is leased, and for the kinds and forms that have no such function.
        """
        lane = self.places.lane
        if lane is None or lane.lease is None:
            return None
        known = self._direct.get(form)
        if known is None or known[0] is not lane.lease:
            one = direct(form, self.places, lane.lease)
            known = lane.lease, one and (one, self.places.guard.always)
            self._direct[form] = known
        return known[1]

    def run(self, form: str) -> tuple[Run, Any]:
        """Return a new run of ids in *form*, and its first id, which is valid as it is.

        Raises DaemonUnavailable if there is no daemon, and no fallback.
        """
        self._take_back()
        if form != self._out_form:
            self._length = SHORT_RUN
        places = self.places
        places.ensure(1, ahead=self._length)
        first, count = places.use(self._length)
        ids = deque(self._ids(form, first, count))
        self._out, self._out_form = ids, form
        longest = SLOW_RUNS.get((places.kind, form), LONG_RUNS[form])
        self._length = min(2 * self._length, longest if places.timeline else RANDOM_RUN)
        watch = places.watch
        run = ids.popleft, places.begin, places.deadline, watch.epochs, watch.epoch
        return run, ids.popleft()

    def prepare(self) -> None:
        """Have places, so that the next id is made without asking the daemon. Raises as ``run``.

        With a *max_age* of 0 and no lease there are none: each id is asked for.
        """
        self._take_back()
        self.places.ensure(1, ahead=self._length)

    def make(self, count: int, form: str) -> list[Any]:
        """Return exactly *count* ids in *form*.

        Raises DaemonUnavailable; the ids made so far are lost.
        """
        for _ in _TRIES:
            made: list[Any] = []
            try:
                for first, part in self._pieces(count):
                    made += self._ids(form, first, part)
                return made
            except _Cloned:
                pass
        raise self._never_whole()

    def join(self, count: int) -> bytes:
        """Return the bytes of exactly *count* ids, in one piece. Raises as ``make``."""
        places = self.places
        packed = places.layout.packed
        if packed is None:
            return b"".join(self.make(count, "bytes"))
        return self._joined(
            count, lambda first, part: packed(first, part, places.origin, random_bytes)
        )

    def rest(self) -> None:
        """Let no id be drawn from the run that is out."""
        self._take_back()

    def drop_block(self) -> None:
        """Drop what is left of the block. The next ids are later than all that were made so far."""
        self.places.drop()

    def _joined(self, count: int, pack: Callable[[int, int], bytes | bytearray]) -> bytes:
        """Return what *pack* returns for the first of some places, and their number, in a row."""
        for _ in _TRIES:
            try:
                return b"".join([pack(first, part) for first, part in self._pieces(count)])
            except _Cloned:
                pass
        raise self._never_whole()

    def _never_whole(self) -> DaemonUnavailable:
        return self.places.blocks.broken(f"its epoch changed {len(_TRIES)} times in one call")

    def _pieces(self, count: int) -> Iterator[tuple[int, int]]:
        """Use *count* places: return the first, and the number, of each piece that is one run.

        Raises _Cloned if the machine was cloned meanwhile: a clone may have the same pieces.
        """
        self._take_back()
        places = self.places
        watch = None
        while count:
            places.ensure(count)
            if watch is not places.watch:
                if watch is not None and watch.moved:
                    raise _Cloned
                watch = places.watch
            first, part = places.use(count)
            yield first, part
            count -= part
        if watch is not None and watch.epochs[0] != watch.epoch:
            raise _Cloned

    def _ids(self, form: str, first: int, count: int) -> Iterable[Any]:
        """Return the ids of *count* places, all within one run."""
        places = self.places
        ids = places.layout.forms[form](first, count, places.origin, random_bytes)
        return new_uuids(ids, count, places.safe) if form == "uuid" else ids

    def _take_back(self) -> None:
        """Take back what is left of the run that is out: nothing can be drawn from it then."""
        places = self.places
        places.blocks.begin_call()
        if self._out is None:
            return
        if (places.leased or not places.timeline) and not places.valid():
            # What is left can never be drawn, and the lane has newer ticks, or there are none.
            if places.deadline[0]:
                # It was not drawn in time: so few ids are made one by one.
                places.direct = 0
                self._length = SHORT_RUN
            self._out = None
            return
        out, self._out = self._out, None
        with suppress(IndexError):
            # In C, so all at once. If another thread or a handler has drawn since their number was
            # read, there are too few, and none is taken back.
            left = len(list(starmap(out.popleft, repeat((), len(out)))))
            places.give_back(places.first - left)
