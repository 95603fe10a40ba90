"""UUIDs made of ints, and the randomness of ids."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable
from itertools import repeat
from typing import Any
from uuid import UUID, SafeUUID

random_bytes = os.urandom
"""Gives so many random bytes; nothing is read ahead that a fork's child would have too."""

# A UUID forbids setting its attributes, so they are set below it, as its own __init__ does. Slot
# descriptors do it in a fifth of the time that UUID(int=...) takes.
_UUID: Any = UUID
_new: Callable[[type[UUID]], UUID] = object.__new__
_set_int: Callable[[UUID, int], None] = _UUID.int.__set__
_set_is_safe: Callable[[UUID, SafeUUID], None] = _UUID.is_safe.__set__


def safety(from_daemon: bool) -> SafeUUID:
    """Give the mark of an id: safe if it came from the daemon, and only then."""
    return SafeUUID.safe if from_daemon else SafeUUID.unknown


def uuids(ints: Iterable[int], count: int, safe: SafeUUID) -> list[UUID]:
    """Give *count* UUIDs of these ints. The loops run in C."""
    made = list(map(_new, repeat(UUID, count)))
    deque(map(_set_int, made, ints), 0)
    deque(map(_set_is_safe, made, repeat(safe)), 0)
    return made
