"""The ticks of one kind in one process: of its lane, of the daemon's blocks, or of the fallback.

Theory of operation

1. What is there are the *places* of one block (``layouts`` says what a place is). A place is used
   once, and places only rise. When there is none left, or the block is too old, ``ensure`` gets
   another.
2. If the process has leased a lane, ticks of the lane come first: as many of the latest as are
   wanted, up to the reading of UTC. Otherwise a block is taken from the daemon, or made here.
3. *reserved* is a mark: the end of the ticks of the lane that this kind has used. v1 and v6 share
   one, because a v6 is a v1 written in another order. Ticks are reserved without a lock, because a
   handler or a fork's child could find it held. Instead the mark is compared and raised in one step
   (see ``mark``).
"""

from __future__ import annotations

from uuid import SafeUUID

from uuidd.core.ids.kinds import KINDS
from uuidd.core.ids.layouts import LAYOUTS
from uuidd.core.ids.ticks import TICKS_PER_SECOND
from uuidd_client.blocks import Blocks
from uuidd_client.demand import AT_ONCE
from uuidd_client.fork_guard import ForkGuard
from uuidd_client.mark import Mark
from uuidd_client.own_lane import LEASE_AGE, OwnLane
from uuidd_client.source import Source, utc_tick
from uuidd_client.watch import NEVER, latest

LEASABLE = {"v1", "v6", "v7", "ulid", "ksuid", "push_id"}
"""The kinds that have room for the number of a lane."""

SPARSE = 1024
"""Ticks that a long list waits for, 0.1 ms, when its lane has fewer."""

LIST_AHEAD = int(LEASE_AGE * TICKS_PER_SECOND) // 2
"""Ticks of a lane that a list takes if it needs fewer; the next may use the rest.

Lists in a row are made faster than new ticks come, and need older ones. Half of LEASE_AGE is left
to use them.
"""

RANDOM_BLOCK = 1 << 30
"""Places of a block of ids without a time, where the number of a place means nothing."""

FETCHES = 3
"""How many blocks are fetched if each holds nothing later than the ids used before."""

MAX_EMPTY = 32
"""Blocks in a row without a place, after which the daemon counts as broken. A Snowflake has a place
on 4 of 10 ticks; after a change of node, places begin with the next millisecond."""

EMPTY_PAUSE = 0.0001
"""Seconds between such requests."""


class Places:
    """The places of *kind*, from *lane*, if it has any, or from *source*. Not for two threads.

    Those in ``first .. end`` are free. Their ids have *origin*, are marked *safe*, and are valid
    while UTC is in the span from *begin* to ``deadline[0]``, which is memory that a fork's child
    finds empty, and until *watch* has moved. *used* counts those that were used of the last block,
    *leased* is whether they are of the own lane, and *marked* where the mark was when they were
    taken. *direct* counts the ids that were made one by one since the last pause.
    """

    def __init__(
        self,
        kind: str,
        source: Source,
        guard: ForkGuard,
        max_age: float,
        *,
        lane: OwnLane | None = None,
        reserved: Mark | None = None,
    ) -> None:
        self.kind = kind
        self.timeline = KINDS[kind].timeline
        self.layout = LAYOUTS[kind]
        self.lane = lane if kind in LEASABLE else None
        self._source = source
        self.clock = source.clock
        self.blocks = Blocks(kind, source, max_age)
        self.guard = guard
        self.max_age = max_age
        self.first = self.end = self._not_before = 0
        self.reserved = reserved or Mark()
        self.marked = 0
        self.direct = 0
        self.origin = self.blocks.origin
        self.leased = False
        self.safe = SafeUUID.unknown
        self.begin = 0.0
        self.deadline = guard.slot(0.0)
        self.watch = NEVER
        self.used = 0

    def drop(self) -> None:
        """Drop what is left. The next places are later than all ids that were made so far."""
        self.deadline[0] = 0.0
        if self.lane is not None:
            self.reserved.raise_to(self.lane.end())

    def used_end(self) -> int:
        """Return the end of the ticks that were used, or now if UTC has gone back since."""
        return min(max(self.first, self.reserved.end), utc_tick(self.clock) + 1)

    def use(self, count: int) -> tuple[int, int]:
        """Use up to *count* places that lie within one run: return the first, and how many."""
        first = self.first
        count = min(count, self.end - first, self.layout.room(first))
        self.first += count
        self.used += count
        return first, count

    def use_all(self) -> tuple[int, int]:
        """Use up all places, of whatever run: return the first, and their end."""
        first = self.first
        self.used += self.end - first
        self.first = self.end
        return first, self.end

    def skip_all(self) -> None:
        """Make no id of the places that are left."""
        self.first = self.end

    def give_back(self, first: int) -> None:
        """Take back the places from *first* on that were used last."""
        self.used -= self.first - first
        self.first = first

    def ensure(self, needed: int, *, ahead: int = LIST_AHEAD) -> None:
        """Ensure that there are valid places. *needed* is how many the caller wants.

        The caller can use *ahead* if they cost nothing.

        Raises DaemonUnavailable if there is no daemon, and no fallback.
        """
        if self.first < self.end and self.valid():
            return
        # First, so that an interrupted fetch leaves no part of a block that looks valid.
        self.deadline[0] = 0.0
        if self.lane is not None and self._cut(self.lane, needed, ahead):
            marked = self.end
        else:
            marked = self.reserved.end
            self._fetch_later(needed)
        self.marked = marked
        if self.reserved.end != marked:
            # An id was made directly meanwhile, by a handler or a thread: the places are older. So
            # is a run that is made of them.
            self.deadline[0] = 0.0

    def valid(self) -> bool:
        """Whether UTC is in the span in which the ids of the block are valid.

        They are not once the mark has moved: then an id was made directly, and they are older. Nor
        are they once the machine was cloned, because a copy of this process has them too.
        """
        watch = self.watch
        return (
            self.begin <= self.clock.utc_seconds() < self.deadline[0]
            and self.reserved.end == self.marked
            and watch.epochs[0] == watch.epoch
        )

    def _cut(self, lane: OwnLane, needed: int, ahead: int) -> bool:
        """Take the latest ticks of *lane*, and return whether any can be used now."""
        if self.max_age and needed >= SPARSE and utc_tick(self.clock) - self.reserved.end < SPARSE:
            # So that a long list is not made of a few ids at a time.
            self.clock.pause(min(needed, 16 * SPARSE) / TICKS_PER_SECOND)
        begin, max_age = self.clock.utc_seconds(), self.max_age
        # With a max_age of 0 each id has a reading of its own.
        count = min(max(needed, ahead), int(AT_ONCE * max_age * TICKS_PER_SECOND)) or 1
        now = lane.now()
        times = self.blocks.times
        if not now or (times is not None and not times.epoch <= now - count < now < times.end):
            # An answer of the daemon with such a time is an error that says so.
            return False
        # Not those that were used of the block before.
        first, end = max(now + 1 - count, self.first, lane.begin), now + 1
        first = max(first, self.reserved.raise_to(end))
        if first >= end:
            return False
        self.first, self.end = first, end
        lane.note(end)
        self.origin, self.leased, self.safe = lane.origin, True, SafeUUID.safe
        self.watch = lane.watch
        # The first tick is older than now by this.
        age = (now - first) / TICKS_PER_SECOND
        # A list is used at once, of as many ticks as max_age has room for.
        lasting = max_age if needed > ahead else min(max_age, LEASE_AGE)
        self._span(begin, begin + lasting - age)
        return True

    def _fetch_later(self, needed: int) -> None:
        """Fetch a block, or a few, until there is a place later than those that were used."""
        if self.timeline != "utc":
            self._fetch(needed)
            for _ in range(MAX_EMPTY):
                if self.first < self.end:
                    return
                # Of three ticks in a row one has a place, but fewer may have been free; and under
                # another node, ids go on in the next run.
                self.clock.pause(EMPTY_PAUSE)
                self._fetch(needed)
            raise self.blocks.broken(f"{MAX_EMPTY} blocks in a row have no place for a {self.kind}")
        last_used = max(self.first, self.reserved.end) - 1
        for tries_left in reversed(range(FETCHES)):
            self._fetch(needed)
            if self.first > last_used or utc_tick(self.clock) < last_used:
                # Later than all before it; or UTC stepped back, and there can be no order.
                return
            if self.end - 1 > last_used:
                self.first = last_used + 1
                return
            if tries_left:
                self.first = self.end = last_used + 1

    def _fetch(self, needed: int) -> None:
        layout = self.layout
        begin = self.clock.utc_seconds()
        if not self.timeline:
            # Random bits of this process. With a max_age of 0 none are made ahead.
            size = RANDOM_BLOCK if self.max_age else needed
            self.watch = latest()
            self.first, self.end = self.end, self.end + size
            self._span(begin, begin + min(self.max_age, LEASE_AGE))
            return
        block, from_daemon = self.blocks.take(needed, self.used)
        self.leased, self.watch = False, self._source.watch
        self.used = 0
        origin = self.blocks.origin
        if origin != self.origin and self.end and self.timeline != "utc" and not layout.random:
            # Within a run the node or the worker comes first in the order of ids.
            self._not_before = self.end - 1 + layout.room(self.end - 1)
        self.origin = origin
        first, end = layout.places(block.first, block.count)
        if first < self.end:
            # The source's blocks rise, unless it has started again with a clock far behind.
            self._not_before = 0
        self.end = end
        self.first = min(max(first, self._not_before), self.end)
        self.safe = SafeUUID.safe if from_daemon else SafeUUID.unknown
        # The first tick is older than the block by this.
        age = block.count / TICKS_PER_SECOND
        self._span(begin, begin + self.max_age - age)

    def _span(self, begin: float, deadline: float) -> None:
        self.begin, self.deadline = begin, self.guard.slot(deadline)
