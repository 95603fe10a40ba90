"""Makes ids for clients that ask for ids instead of blocks: a few in one go, many in pieces."""

from __future__ import annotations

from collections.abc import Generator

from uuidd.core.ids.kinds import KINDS, PLACES
from uuidd.core.ids.layouts import LAYOUTS
from uuidd.core.ids.places import Origin
from uuidd.core.wire.methods import MAX_MAKE, Make, RefusedError
from uuidd.server.allocator import Allocator
from uuidd.server.entropy import Entropy
from uuidd.server.fairness import Pause

PIECES = {"flake": 40, "ksuid": 40}
"""Ids made in one go, while all others wait: about as many as fit into a turn (fairness.py).
Those in base 62 take microseconds each; of all other kinds, one request may ask for about that."""


def make(
    call: Make, allocator: Allocator, entropy: Entropy, *, uid: int
) -> Generator[Pause, None, list[str]]:
    """Return ids as text, however many, from ticks of *allocator* and random bytes of *entropy*.

    It waits as ``Allocator.take`` does. Too many for one go are made in turns of the user's own,
    and no tick is taken before the first of these. Raises RefusedError.
    """
    most = PIECES.get(call.kind, MAX_MAKE)
    places = PLACES[call.kind]
    in_pieces = call.count > most
    if in_pieces:
        yield None
    place, origin, timeline = 0, Origin(0), KINDS[call.kind].timeline
    if timeline:
        ticks = places.ticks(call.count)
        block = yield from allocator.take(timeline, ticks, True, call.wait, uid=uid, in_turn=True)
        place, _ = places.places(block.first, block.count)
        origin = block.origin
    ids: list[str] = []
    while left := call.count - len(ids):
        if ids and in_pieces:
            yield None
        part = min(left, most, places.room(place))
        try:
            ids += LAYOUTS[call.kind]["text"](place, part, origin, entropy.take)
        except ValueError as error:
            # The time field of the kind is full, many years from now.
            raise RefusedError("unavailable", f"no {call.kind} can be made: {error}") from error
        place += part
    return ids
