"""The ids of one kind in one process, made by the C extension.

Nearly all ids are made by its ``Cutter`` without a call of this module: of a lane, if one is
leased, and otherwise of the places of a block, which are lent to it. ``client/extension/core.c``
says how. Here it is refilled, and many ids are made at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from typing import TYPE_CHECKING, Any
from uuid import UUID, SafeUUID

from uuidd_client.places import Places
from uuidd_client.supply import Supply
from uuidd_client.system import SYSTEM_CLOCK, random_bytes

if TYPE_CHECKING:
    from uuidd_client._core import Cutter


NEVER = (1 << 63) - 1
"""The floor of a cutter that makes no ids of its lane."""


class CompiledSupply(Supply):
    """As ``Supply``, by the extension *core*. *cutter* is for all threads.

    ``places.reserved`` has to be a mark of *core*.
    """

    def __init__(self, places: Places, core: ModuleType) -> None:
        super().__init__(places)
        self._floor = 0
        lane = places.lane
        latest = None if lane is None or lane.latest is None else lane.latest.mark
        self.cutter: Cutter = core.Cutter(
            places.kind,
            places.guard.memory,
            places.reserved,
            latest,
            places.max_age,
            None if places.clock is SYSTEM_CLOCK else places.clock.utc_ns,
            random_bytes,
            (UUID, SafeUUID.safe, SafeUUID.unknown),
        )

    def one(self, form: str) -> Any:
        """Return one id in *form*, and refill the cutter.

        Raises DaemonUnavailable if there is no daemon, and no fallback.
        """
        # Another thread may have refilled it meanwhile.
        made = self.cutter.one(form)
        if made is not None:
            return made
        self._take_back()
        places = self.places
        if places.leased:
            # What a list has left is older than now.
            places.skip_all()
        places.ensure(1, ahead=0)
        first, count = places.use(1)
        self._note_used()
        (made,) = self._ids(form, first, count)
        self._refill()
        return made

    def prepare(self) -> None:
        """See ``Supply``."""
        self._take_back()
        if self.places.leased:
            self.places.skip_all()
        self.places.ensure(1, ahead=0)
        self._refill()

    def rest(self) -> None:
        """Let no id be drawn from the cutter before it is refilled."""
        super().rest()
        if self.cutter.floor != NEVER:
            self._floor, self.cutter.floor = self.cutter.floor, NEVER

    def join(self, count: int) -> bytes:
        """Return the bytes of exactly *count* ids, in one piece. Raises as ``make``."""
        return self._joined(
            count, lambda first, part: self.cutter.packed(first, part, self.places.origin)
        )

    def _ids(self, form: str, first: int, count: int) -> list[Any]:
        places = self.places
        safe = places.safe is SafeUUID.safe
        return self.cutter.many(form, first, count, places.origin, safe)

    def _pieces(self, count: int) -> Iterator[tuple[int, int]]:
        for piece in super()._pieces(count):
            self._note_used()
            yield piece

    def _note_used(self) -> None:
        """Let the cutter use no tick of the lane before those that are used of blocks."""
        if not self.places.leased:
            self.cutter.floor = self.places.first

    def _refill(self) -> None:
        """Let the cutter have the lane, if one is leased, and what is left of a block."""
        places, cutter = self.places, self.cutter
        if cutter.floor == NEVER:
            cutter.floor = self._floor
        lease = None if places.lane is None else places.lane.lease
        times = places.blocks.times
        if lease is not None and times is not None:
            cutter.hold(
                lease.page,
                lease.at,
                lease.token,
                lease.begin,
                times.end,
                # It is a word of the page, and a daemon may write anything there.
                min(lease.tell_at, times.end),
                lease.origin,
            )
        if times is not None and not places.leased:
            # First they are all used, so that none can come twice if this is broken off.
            first, end = places.use_all()
            self._note_used()
            cutter.lend(
                first,
                end,
                places.begin,
                places.deadline,
                places.marked,
                places.origin,
                places.safe is SafeUUID.safe,
                places.watch.epochs,
                places.watch.epoch,
            )

    def _take_back(self) -> None:
        places = self.places
        places.blocks.begin_call()
        first = self.cutter.take_back()
        if first:
            places.give_back(first)
