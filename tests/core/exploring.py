"""Visiting every state of a small world.

A state is bytes, so that nothing that bears on what happens next can be left out of it.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Protocol
from unittest.mock import patch

from tests.judge import Repeated

NONE = 255
"""A byte that stands for None."""


class OutOfBounds(Exception):
    """The world ends here."""


class Host(Protocol):
    """A small host in one of its states."""

    def moves(self) -> Iterable[object]:
        """Return all that may happen."""
        ...

    def happen(self, move: Any) -> None:
        """Let it happen. Raises Repeated, or OutOfBounds."""
        ...

    def freeze(self) -> bytes:
        """Return the state."""
        ...


Thaw = Callable[[bytes], Host]
"""Returns the host that is in a state."""


@dataclass(frozen=True, slots=True)
class Seen:
    """How much was seen."""

    states: int
    moves: int
    depth: int
    """The most moves that it takes to come to a state."""


@contextmanager
def constants(values: Mapping[str, object]) -> Iterator[None]:
    """Let the product's timelines have these *values* for their constants, named MODULE.NAME."""
    with ExitStack() as undo:
        for name, value in values.items():
            undo.enter_context(patch(f"uuidd.core.timeline.{name}", value))
        yield


def explore(beginnings: Iterable[bytes], thaw: Thaw) -> Seen:
    """Visit every state. Raises Repeated, with the shortest way there."""
    edge = list(dict.fromkeys(beginnings))
    came_from = dict.fromkeys(edge, b"")
    moves = depth = 0
    while edge:
        ahead: list[bytes] = []
        for frozen in edge:
            try:
                for _, then in _after(frozen, thaw):
                    moves += 1
                    if then not in came_from:
                        came_from[then] = frozen
                        ahead.append(then)
            except Repeated as repeated:
                for move in _way(frozen, came_from, thaw):
                    repeated.add_note(f"after {move}")
                raise
        edge = ahead
        depth += bool(edge)
    return Seen(len(came_from), moves, depth)


def tell(bounds: object, explore: Callable[[], Seen]) -> int:
    """Visit every state of a world with these *bounds*, and print how many there are."""
    begun = time.monotonic()
    seen = explore()
    sys.stdout.write(f"{bounds}\n{seen}\n{time.monotonic() - begun:.1f} s\n")
    return 0


def _after(frozen: bytes, thaw: Thaw) -> Iterator[tuple[object, bytes]]:
    """Return all that may happen in a state, and the state then; raises Repeated, with the move."""
    host = thaw(frozen)
    assert host.freeze() == frozen
    for move in list(host.moves()):
        try:
            host.happen(move)
        except OutOfBounds:
            pass
        except Repeated as repeated:
            repeated.add_note(f"at {move}")
            raise
        else:
            then = host.freeze()
            if then != frozen:
                yield move, then
        # Also after a move that changed nothing that a state holds.
        host = thaw(frozen)


def _way(frozen: bytes, came_from: dict[bytes, bytes], thaw: Thaw) -> list[object]:
    """Return the moves that led here, the last one first."""
    way = []
    while before := came_from[frozen]:
        way.append(next(move for move, then in _after(before, thaw) if then == frozen))
        frozen = before
    return way
