"""A lease: a lane of the daemon's that this process takes ticks from by itself, as time passes.

``core/timeline/leases.py`` has the rules, and what the words of a page mean. A page is memory that
the daemon writes, and passes as a descriptor. It is sealed: nobody can shorten it, or write to it
but the daemon, so a read of it cannot fail.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import sys

from uuidd.core.ids.places import Origin
from uuidd.core.timeline.page import (
    EPOCH_AT,
    HORIZON_AT,
    MAGIC_AT,
    PAGE_MAGIC,
    PAGE_WORDS,
    TOKENS_AT,
)
from uuidd.core.typed import TYPE_CHECKING
from uuidd_client.life import Watch

if TYPE_CHECKING:
    from uuidd.core.timeline.page import Lease as Granted

PAGE_BYTES = 8 * PAGE_WORDS

SEALS = 0x0002 | 0x0004 | 0x0010
"""F_SEAL_SHRINK, F_SEAL_GROW and F_SEAL_FUTURE_WRITE, which every page has (fcntl(2))."""


class PageError(Exception):
    """A descriptor is not that of a page; one line that says why."""


class _Mapping(mmap.mmap):
    """The memory of a page. It lasts as long as anybody has a memoryview of it."""

    # Kept here for ``__del__``: at the interpreter's end, the names of a module may be gone first.
    fstat = staticmethod(os.fstat)
    kept: list[_Mapping] = []  # noqa: RUF012  (all of them share it)
    """Mappings that are never closed, see ``__del__``."""

    number = -1
    """The number of its own descriptor."""

    identity = 0, 0
    """The device and the inode of what is mapped."""

    def __del__(self) -> None:
        # A mapping has a descriptor of its own, which its end closes by number. Meanwhile the
        # program may have closed it, as daemons do, and opened a file with the same number.
        if self.number < 0:
            # It was not mapped.
            return
        try:
            found = self.fstat(self.number)
            if (found.st_dev, found.st_ino) == self.identity:
                return
        except OSError:
            pass
        self.kept.append(self)


class Page:
    """The page of one daemon process, as a client reads it; *words* are its words of 64 bits.

    *clones* is the one that counts the clones of the machine. *identity* is the device and the
    inode of their memory. Raises PageError if *descriptor* is not a page. The descriptor stays the
    caller's.
    """

    def __init__(self, descriptor: int) -> None:
        if sys.maxsize < 1 << 62:
            raise PageError("this machine does not read words of 64 bits in one piece")
        try:
            seals = fcntl.fcntl(descriptor, fcntl.F_GET_SEALS)
            found = os.fstat(descriptor)
            if seals & SEALS != SEALS or found.st_size != PAGE_BYTES:
                raise PageError(
                    f"it has the seals {seals:#x} and {found.st_size} bytes; a page has at least"
                    f" {SEALS:#x} and {PAGE_BYTES}"
                )
            number = _next_number(descriptor)
            memory = _Mapping(descriptor, PAGE_BYTES, mmap.MAP_SHARED, mmap.PROT_READ)
        except OSError as error:
            raise PageError(f"it cannot be mapped: {error.strerror}") from error
        self.identity = found.st_dev, found.st_ino
        memory.number, memory.identity = number, self.identity
        self.words = memoryview(memory).cast("Q")
        self.clones = self.words[EPOCH_AT : EPOCH_AT + 1]
        if self.words[MAGIC_AT] != PAGE_MAGIC:
            raise PageError(f"it begins with {self.words[MAGIC_AT]:#x}, not {PAGE_MAGIC:#x}")


def _next_number(descriptor: int) -> int:
    """Return the number of the next descriptor, unless another thread opens one before."""
    number = os.dup(descriptor)
    os.close(number)
    return number


def page_of(descriptor: int, known: Page | None) -> Page | None:
    """Return the page of a *descriptor*, None if it is that of something else; then close it.

    If it is that of the *known* page, this is returned: each mapping costs a descriptor, so the
    connections of a process to one daemon share a page.
    """
    try:
        found = os.fstat(descriptor)
        if known is not None and known.identity == (found.st_dev, found.st_ino):
            return known
        return Page(descriptor)
    except PageError:
        return None
    finally:
        os.close(descriptor)


class Lease:
    """A lease that this process holds, read from *page*.

    Its ids have *origin*, and are made while *watch* allows it. *begin* is the first tick that may
    be used. *tell_at* is the tick from which the daemon may have to be told that ids are made.
    """

    def __init__(self, granted: Granted, page: Page) -> None:
        words, at = page.words, TOKENS_AT + granted.lane
        self.page = page
        self.words = words
        self.lane = granted.lane
        self.watch = Watch(words[HORIZON_AT : HORIZON_AT + 1], words[at : at + 1], granted.token)
        self.tell_at = 0
        self.begin = granted.begin
        self.origin = Origin(granted.node, clock_seq=granted.clock_seq, lane=granted.lane)

    def allows(self, tick: int) -> bool:
        """Whether *tick*, a reading of UTC made before this call, may be used.

        The horizon is read before the token: one that was shown after the lease had ended does not
        count.
        """
        return tick < self.words[HORIZON_AT] and not self.ended

    @property
    def ended(self) -> bool:
        """Whether the lease has ended. Otherwise the next save may raise the horizon."""
        return self.watch.token[0] != self.watch.value
