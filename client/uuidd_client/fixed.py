"""Ids for tests: of a seed, and of a time that stands still or that a test sets."""

from __future__ import annotations

import datetime
import os
import random
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

from uuidd.core.ids.kinds import KINDS, PLACES, time_fields
from uuidd.core.ids.layouts import LAYOUTS
from uuidd.core.ids.nodes import random_node
from uuidd.core.ids.places import Origin
from uuidd.core.ids.times import tick_at
from uuidd.core.ids.versions import CLOCK_SEQ_BITS
from uuidd_client.cutter import new_uuids
from uuidd_client.errors import DaemonUnavailable, TimeOutOfRange
from uuidd_client.life import Life
from uuidd_client.notices import Stats
from uuidd_client.times import Used

ANY_TICKS = 3
"""Of so many ticks in a row one holds a Snowflake."""


def clock_that_was_set() -> int | None:
    """Return the tick that a test has set the clock to, by time-machine or freezegun, or None."""
    machine = sys.modules.get("time_machine")
    travels = machine is not None and machine.escape_hatch.is_travelling()
    if travels or time.time_ns.__module__ == "freezegun.api":
        # Not time.time_ns: that of freezegun is a float, which is some 100 ns wrong.
        return tick_at(datetime.datetime.now(datetime.UTC))
    return None


class FixedChannel:
    """What stands in for a ``Channel``: ids of *seed*, which are the same in each run.

    Their time is that of the clock, if a test has set it, and otherwise *at*, a tick. An id that
    would have a time which was used before gets the next time that is free. The ids of a kind do
    not depend on how many of another kind were made.
    """

    def __init__(self, seed: int | str, at: int, worker: int) -> None:
        self._lock = threading.RLock()
        self._pid = os.getpid()
        self._seed, self._at, self._worker = seed, at, worker
        draw = random.Random(f"{seed}/origin")  # noqa: S311  (repeatable is what is wanted)
        node = random_node(draw.getrandbits)
        self._origin = Origin(node, draw.getrandbits(CLOCK_SEQ_BITS), worker, lane=None)
        self._kinds: dict[str, _FixedKind] = {}

    def make(self, kind: str, form: str, count: int) -> list[Any] | bytes:
        """Return *count* ids of *kind* in *form*. Raises TimeOutOfRange. Nothing has to wait."""
        with self._lock:
            known = self._kinds.get(kind)
            if known is None:
                known = self._kinds[kind] = _FixedKind(kind, f"{self._seed}/{kind}", self._origin)
            now = self._at if (read := clock_that_was_set()) is None else read
            parts = list(known.make(count, form, now))
            return b"".join(parts) if form == "bytes" else [id for part in parts for id in part]

    def in_life(self, life: Life, former: FixedChannel | None) -> FixedChannel:
        """Return the channel of a *life* that follows *former*: the same, if there is one.

        A fork's child cannot know how many siblings it has, so it has one of a random seed.
        """
        found = former or self
        if found._pid == life.pid:
            return found
        return FixedChannel(os.urandom(16).hex(), self._at, self._worker)

    def cutter(self, _kind: str) -> None:
        """Return None: each id is made here."""

    def stats(self) -> Stats:
        """Return what was asked for: nothing."""
        return Stats()

    def status(self) -> dict[str, Any]:
        """Raise DaemonUnavailable: there is no daemon."""
        raise DaemonUnavailable(
            "(none)", "the ids of this test are fixed, and need no daemon", "fixed"
        )

    def close(self) -> None:
        """Do nothing: there is no connection."""

    def rest(self) -> None:
        """Do nothing: each id is a call of this channel."""


class _FixedKind:
    """The ids of *kind*, whose random bits come from *seed*. Not for two threads."""

    def __init__(self, kind: str, seed: str, origin: Origin) -> None:
        self._kind = kind
        self._forms, self._places = LAYOUTS[kind], PLACES[kind]
        self._times = time_fields(origin.epoch).get(kind)
        self._random = random.Random(seed).randbytes  # noqa: S311  (repeatable is what is wanted)
        self._origin = origin
        self._used = Used()

    def make(self, count: int, form: str, now: int) -> Iterator[Any]:
        """Return *count* ids, part by part, of the first free places at or after the tick *now*."""
        times = self._times
        if times is not None and not times.epoch <= now < times.end - ANY_TICKS:
            raise TimeOutOfRange(self._kind, now, times.epoch, times.end)
        place = self._places.places(now, ANY_TICKS)[0] if KINDS[self._kind].timeline else 0
        while count:
            first, part = self._use(place, count)
            ids = self._forms[form](first, part, self._origin, self._random)
            yield new_uuids(ids, part, safe=False) if form == "uuid" else ids
            count -= part

    def _use(self, place: int, count: int) -> tuple[int, int]:
        """Use up to *count* places of one run, from *place* on: return the first, and how many."""
        first = place = self._used.free(place)
        end = first + min(count, self._places.room(first))
        while place < end and self._used.free(place) == place:
            self._used.add(place)
            place += 1
        return first, place - first
