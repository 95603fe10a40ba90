"""Visiting every state of a small world.

A state is bytes, so that nothing that bears on what happens next can be left out of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

NONE = 255
"""A byte that stands for None."""

After = Callable[[bytes], Iterator[tuple[object, bytes]]]
"""Returns all that may happen in a state, and the state then; raises Repeated."""


class Repeated(AssertionError):
    """A tick was given out that must not be."""


class OutOfBounds(Exception):
    """The world ends here."""


@dataclass(frozen=True, slots=True)
class Seen:
    """How much was seen."""

    states: int
    moves: int
    depth: int
    """The most moves that it takes to come to a state."""


def explore(beginnings: Iterable[bytes], after: After) -> Seen:
    """Visit every state. Raises Repeated, with the shortest way there."""
    edge = list(dict.fromkeys(beginnings))
    came_from = dict.fromkeys(edge, b"")
    moves = depth = 0
    while edge:
        ahead: list[bytes] = []
        for frozen in edge:
            try:
                for _, then in after(frozen):
                    moves += 1
                    if then not in came_from:
                        came_from[then] = frozen
                        ahead.append(then)
            except Repeated as repeated:
                for move in _way(frozen, came_from, after):
                    repeated.add_note(f"after {move}")
                raise
        edge = ahead
        depth += bool(edge)
    return Seen(len(came_from), moves, depth)


def _way(frozen: bytes, came_from: dict[bytes, bytes], after: After) -> list[object]:
    """Return the moves that led here, the last one first."""
    way = []
    while before := came_from[frozen]:
        way.append(next(move for move, then in after(before) if then == frozen))
        frozen = before
    return way
