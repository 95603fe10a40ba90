"""Makes ids for clients that ask for ids instead of blocks: a few in one go, many in pieces."""

from __future__ import annotations

from collections.abc import Generator, Iterator

from uuidd.core.ids.kinds import KINDS, PLACES
from uuidd.core.ids.layouts import LAYOUTS
from uuidd.core.ids.places import Origin
from uuidd.core.timeline import Block, SteadyBlock
from uuidd.core.wire.methods import MAX_MAKE, Make, RefusedError
from uuidd.server.allocator import Allocator
from uuidd.server.entropy import Entropy
from uuidd.server.fairness import Pause

PIECES = {"flake": 40, "ksuid": 40}
"""Ids made in one go, while all others wait: about as many as fit into a turn (fairness.py).
Those in base 62 take microseconds each; of all other kinds, one request may ask for about that."""


class Maker:
    """Makes ids from ticks of *allocator* and random bits of *entropy*."""

    def __init__(self, allocator: Allocator, entropy: Entropy) -> None:
        self._allocator = allocator
        self._entropy = entropy

    def make(self, call: Make, *, uid: int) -> Generator[Pause, None, list[str]]:
        """Return the ids as text, however many; it waits as ``Allocator.take`` does.

        Too many for one go are made in turns of the user's own, and no tick is taken before the
        first of these. Raises RefusedError.
        """
        most = PIECES.get(call.kind, MAX_MAKE)
        if call.count > most:
            yield None
        block, timeline = None, KINDS[call.kind].timeline
        if timeline:
            ticks = PLACES[call.kind].ticks(call.count)
            block = yield from self._allocator.take(
                timeline, ticks, True, call.wait, uid=uid, in_turn=True
            )
        ids: list[str] = []
        for piece in self._pieces(call, block, most):
            if ids and call.count > most:
                yield None
            ids += piece
        return ids

    def _pieces(
        self, call: Make, block: Block | SteadyBlock | None, most: int
    ) -> Iterator[list[str]]:
        places, random = PLACES[call.kind], self._entropy.take
        draw = LAYOUTS[call.kind]["text"]
        place, origin, left = 0, Origin(0), call.count
        if block is not None:
            place, _ = places.places(block.first, block.count)
            origin = block.origin
        while left:
            part = min(left, most, places.room(place))
            try:
                piece = list(draw(place, part, origin, random))
            except ValueError as error:
                # The time field of the kind is full, many years from now.
                raise RefusedError("unavailable", f"no {call.kind} can be made: {error}") from error
            yield piece
            place += part
            left -= part
