"""Memory that a fork's child finds empty, even one that no Python hook saw."""

from __future__ import annotations

import mmap
import os
import weakref

MADV_WIPEONFORK = 18
"""From <linux/mman.h>; Linux 4.14 or newer."""

_SLOTS = mmap.PAGESIZE // 8


class Forked(Exception):
    """Raised in a fork's child by what is its parent's."""


class ForkGuard:
    """Numbers, one a slot, all 0.0 in a child of the process that set them.

    A slot is a memoryview of one double: ``slot[0]`` reads it, and costs no more than an attribute.
    """

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self._doubles = memoryview(self._memory).cast("d")
        self._next = 0
        try:
            self._memory.madvise(MADV_WIPEONFORK)
        except OSError:
            # An older kernel: then forks by way of Python's own calls are seen, and no others.
            _unwiped.add(self)
        self.alive = self._doubles[0:1]
        self.alive[0] = 1.0

    def slot(self, value: float) -> memoryview[float]:
        """Give a slot that holds *value*. One is used again only after some 500 others."""
        self._next = self._next % (_SLOTS - 1) + 1
        slot = self._doubles[self._next : self._next + 1]
        slot[0] = value
        return slot

    def wipe(self) -> None:
        """Set all slots to 0.0, as the kernel does in a fork's child."""
        for index in range(_SLOTS):
            self._doubles[index] = 0.0


_unwiped: weakref.WeakSet[ForkGuard] = weakref.WeakSet()


def _wipe_in_child() -> None:
    for page in _unwiped:
        page.wipe()


os.register_at_fork(after_in_child=_wipe_in_child)


_ours = ForkGuard()


def alive() -> memoryview[float]:
    """Give a slot that holds 1.0 in this process, and 0.0 in each of its forks' children."""
    global _ours
    page = _ours
    if not page.alive[0]:
        page = _ours = ForkGuard()
    return page.alive
