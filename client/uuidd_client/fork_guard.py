"""Memory that is empty in a fork's child, also after a fork that Python's hooks do not see."""

from __future__ import annotations

import mmap
import os
import weakref
from math import inf

from uuidd_client.per_process import Owned, PerProcess

MADV_WIPEONFORK = 18
"""From <linux/mman.h>; Linux 4.14 or newer."""

_SLOTS = mmap.PAGESIZE // 8


class ForkGuard(Owned):
    """Slots of one number each, all 0.0 in a child of the process that set them.

    A slot is a memoryview of one double: ``slot[0]`` reads it as fast as an attribute is read.
    *alive* is one that holds 1.0, *always* one that holds infinity. *memory* is that of all slots,
    *alive* first, and after it another page, which is left to the C extension. If it is not
    *cloned*, a copy of the machine may go on with what it guards, and ``wipe_all`` leaves it alone.
    """

    def __init__(self, *, cloned: bool = True) -> None:
        pages = mmap.mmap(-1, 2 * mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self.child: dict[str, ForkGuard] = {}
        self.memory = memoryview(pages)
        self._doubles = self.memory.cast("d")
        self._next = 0
        try:
            pages.madvise(MADV_WIPEONFORK)
        except OSError:
            # On an older kernel only the forks by Python's own calls are noticed.
            _unwiped.add(self)
        self.alive = self._doubles[0:1]
        self.alive[0] = 1.0
        self.always = self._doubles[1:2]
        self.always[0] = inf
        if cloned:
            _guards[id(self)] = self

    def slot(self, value: float) -> memoryview[float]:
        """Return a slot that holds *value*. It is used again after some 500 others."""
        # After those two.
        self._next = self._next % (_SLOTS - 2) + 1
        slot = self._doubles[self._next + 1 : self._next + 2]
        slot[0] = value
        return slot

    def wipe(self) -> None:
        """Set all slots to 0.0, as the kernel does in a fork's child."""
        self.memory[:] = bytes(len(self.memory))


_unwiped: weakref.WeakSet[ForkGuard] = weakref.WeakSet()


_guards: weakref.WeakValueDictionary[int, ForkGuard] = weakref.WeakValueDictionary()


def wipe_all() -> None:
    """Set all slots of this process to 0.0, as if it were a fork's child.

    For a restored snapshot: its copies share what the slots guard, as a child does with its parent.
    Other threads notice it at their next look, and what they make from then on is new.
    """
    # Not values(): another thread may add one meanwhile.
    for guard in [reference() for reference in _guards.valuerefs()]:
        if guard is not None:
            guard.wipe()


def _wipe_in_child() -> None:
    for guard in _unwiped:
        guard.wipe()


os.register_at_fork(after_in_child=_wipe_in_child)


_guard = PerProcess(ForkGuard)


def alive() -> memoryview[float]:
    """Return a slot that holds 1.0 in this process, and 0.0 in the children that it forks."""
    return _guard.get().alive
