"""How objects of ``uuid.UUID`` are made fast.

A UUID forbids setting its attributes, and its ``__init__`` checks what it is given. To write the
two attributes where the type keeps them takes a fifth of the time. In a Python whose UUID has no
such slots, the class is called for each.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from itertools import repeat
from typing import Any
from uuid import UUID, SafeUUID

One = Callable[[int, SafeUUID], UUID]
"""Returns the UUID of 128 bits, with that mark."""

Many = Callable[[Iterable[int], int, SafeUUID], list[UUID]]
"""Returns that number of UUIDs, each of the next of these ints, with that mark."""


def by_slots(kind: type[UUID]) -> tuple[One, Many] | None:
    """Return functions that make UUIDs of type *kind* by setting its slots; None if it has none."""
    new = object.__new__
    try:
        attributes: Any = vars(kind)
        set_int = attributes["int"].__set__
        set_is_safe = attributes["is_safe"].__set__
    except (AttributeError, KeyError):
        return None

    def one(value: int, safe: SafeUUID) -> UUID:
        made = new(kind)
        set_int(made, value)
        set_is_safe(made, safe)
        return made

    def many(values: Iterable[int], count: int, safe: SafeUUID) -> list[UUID]:
        # The loops run in C.
        made = list(map(new, repeat(kind, count)))
        deque(map(set_int, made, values), 0)
        deque(map(set_is_safe, made, repeat(safe)), 0)
        return made

    return one, many


def by_calling(kind: type[UUID]) -> tuple[One, Many]:
    """Return the same functions, which call *kind*."""

    def one(value: int, safe: SafeUUID) -> UUID:
        return kind(int=value, is_safe=safe)

    def many(values: Iterable[int], count: int, safe: SafeUUID) -> list[UUID]:
        return [kind(int=value, is_safe=safe) for value, _ in zip(values, range(count))]  # noqa: B905

    return one, many


new_uuid, new_uuids = by_slots(UUID) or by_calling(UUID)
