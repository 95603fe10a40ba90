"""Makes ids for clients that ask for ids instead of blocks: a few in one go, many in pieces."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import trio

from uuidd.core.ids.kinds import KINDS
from uuidd.core.ids.layouts import LAYOUTS
from uuidd.core.ids.places import PLACES, Origin
from uuidd.core.timeline import Block, SteadyBlock
from uuidd.core.timeline.outcomes import NotNow
from uuidd.core.wire.methods import MAX_MAKE, Make, RefusedError
from uuidd.server.allocator import Allocator
from uuidd.server.entropy import Entropy
from uuidd.server.fairness import Turns

PIECES = {"flake": 40, "ksuid": 40}
"""Ids made in one go, while all others wait: about as many as fit into a turn (requests.py).
Those in base 62 take microseconds each; of all other kinds, one request may ask for about that."""


class Maker:
    """Makes ids from ticks of *allocator* and random bits of *entropy*."""

    def __init__(self, allocator: Allocator, entropy: Entropy) -> None:
        self._allocator = allocator
        self._entropy = entropy

    def make(self, call: Make, *, uid: int) -> list[str] | None:
        """Return the ids as text; None, and no tick is taken, when they are too many for one go.

        Raises RefusedError, or what ``Allocator.take`` raises when it has to wait.
        """
        if call.count > PIECES.get(call.kind, MAX_MAKE):
            return None
        wanted = _wanted(call)
        block = self._allocator.take(*wanted, uid=uid) if wanted else None
        return list(chain.from_iterable(self._pieces(call, block)))

    async def make_waiting(self, call: Make, *, uid: int, turns: Turns) -> list[str]:
        """Return the ids as text, however many, after waiting like ``Allocator.take_waiting``.

        They are made in the user's own turns; other users have theirs between the pieces. So of all
        that a user asks for, only one answer at a time is half made and in memory. Raises
        RefusedError.
        """
        wanted = _wanted(call)
        try:
            async with turns.turn(uid):
                block = self._allocator.take(*wanted, uid=uid) if wanted else None
                return await self._made(call, block)
        except NotNow:
            # Not in the user's turn, because its other requests may not have to wait.
            block = None
            if wanted:
                block = await self._allocator.take_waiting(*wanted, uid=uid, wait=call.wait)
        async with turns.turn(uid):
            return await self._made(call, block)

    async def _made(self, call: Make, block: Block | SteadyBlock | None) -> list[str]:
        ids: list[str] = []
        for piece in self._pieces(call, block):
            if ids:
                await trio.lowlevel.checkpoint()
            ids += piece
        return ids

    def _pieces(self, call: Make, block: Block | SteadyBlock | None) -> Iterator[list[str]]:
        places, random = PLACES[call.kind], self._entropy.take
        draw, most = LAYOUTS[call.kind].forms["text"], PIECES.get(call.kind, MAX_MAKE)
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


def _wanted(call: Make) -> tuple[str, int, bool] | None:
    """Return the timeline, the ticks and whole=True for a call; None if it needs no ticks."""
    timeline = KINDS[call.kind].timeline
    return (timeline, PLACES[call.kind].ticks(call.count), True) if timeline else None
