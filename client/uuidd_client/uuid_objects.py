"""How objects of ``uuid.UUID`` are made fast, and whether that is right in this Python.

A UUID forbids setting its attributes, and its ``__init__`` checks what it is given. To write the
two attributes where the type keeps them takes a fifth of the time. That relies on how CPython
writes the class, which a later version may change. So one UUID is made both ways, and they are
compared; if they differ in anything, the class is called for each.
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

_SAMPLE = 0x0123_4567_89AB_CDEF_8123_4567_89AB_CDEF


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


def is_right(one: One, kind: type[UUID]) -> bool:
    """Whether *one* makes what calling *kind* makes."""
    try:
        return all(
            _looks(one(_SAMPLE, safe)) == _looks(kind(int=_SAMPLE, is_safe=safe))
            for safe in SafeUUID
        )
    except (AttributeError, TypeError, SystemError):
        return False


def _looks(made: UUID) -> tuple[object, ...]:
    """Return all of a UUID that a program can see, and what a pickle of it holds."""
    reduced = made.__reduce_ex__(4)
    return (
        type(made),
        made.int,
        made.is_safe,
        reduced[:2],
        reduced[2:],
        hash(made),
        str(made),
        made.bytes,
        made == UUID(int=_SAMPLE),
    )


def makers(kind: type[UUID]) -> tuple[One, Many]:
    """Return the fastest functions that make what calling *kind* makes: of one, and of many."""
    found = by_slots(kind)
    return found if found is not None and is_right(found[0], kind) else by_calling(kind)


new_uuid, new_uuids = makers(UUID)
