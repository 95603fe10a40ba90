"""The page of the vmclock device: memory in which the hypervisor tells of a restored snapshot.

Theory of operation

1. The hypervisor changes ``vm_generation_counter`` when it restores the machine from a snapshot,
   before the machine runs. A hypervisor that does not have this counter changes
   ``disruption_marker``, but also after a live migration, which makes no copy. The layout is that
   of linux/vmclock-abi.h: little endian, each number aligned.
2. A sequence number guards the page: it is odd while the hypervisor writes, and another one after
   that. So as long as it and the marker are what they were, nothing has changed: two loads.
3. Otherwise the page is read again until the sequence number is even, and the same before and
   after. If it stays odd, the page is taken as changed. That is told once: not again before
   another number is in the page.
"""

from __future__ import annotations

import mmap
import os
from pathlib import Path

from uuidd.clones import NoSignal

PATH = Path("/dev/vmclock0")
"""The device, since Linux 6.13. A host has one at most."""

MAGIC = int.from_bytes(b"VCLK", "little")

HAS_GENERATION = 1 << 8
"""The flag that says that the page has ``vm_generation_counter``."""

SEQUENCE_AT, DISRUPTION_AT, FLAGS_AT, GENERATION_AT = 1, 2, 3, 13
"""The numbers of 64 bits that are read. The upper half of the first is the sequence number, and the
lower half never changes."""

TRIES = 100
"""How often the page is read while the hypervisor writes to it. It writes for less than one."""


class VmClock:
    """The page of the device at *path*. Raises NoSignal."""

    def __init__(self, path: Path = PATH) -> None:
        try:
            # O_NONBLOCK, because anything may be at the path of a test.
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except FileNotFoundError:
            raise NoSignal(f"no {path}") from None
        except OSError as error:
            raise NoSignal(f"{path} cannot be read: {error.strerror}") from error
        try:
            # The driver maps this one page, to be read, and nothing else.
            self._memory = mmap.mmap(fd, mmap.PAGESIZE, prot=mmap.PROT_READ)
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else error
            raise NoSignal(f"{path} cannot be mapped: {why}") from error
        finally:
            os.close(fd)
        self._words = memoryview(self._memory).cast("Q")
        if self._words[0] & 0xFFFF_FFFF != MAGIC:
            self.close()
            raise NoSignal(f"{path} has no page of a vmclock")
        self._at = GENERATION_AT
        self._sequence = self._marker = -1
        self._known: tuple[int, int] | None = None
        self.changed()

    def changed(self) -> bool:
        """Return whether the machine may have been cloned since the last call."""
        words = self._words
        if words[SEQUENCE_AT] == self._sequence and words[self._at] == self._marker:
            return False
        known, self._known = self._known, None
        for _ in range(TRIES):
            self._sequence = words[SEQUENCE_AT]
            self._at = GENERATION_AT if words[FLAGS_AT] & HAS_GENERATION else DISRUPTION_AT
            self._marker = words[self._at]
            if words[SEQUENCE_AT] == self._sequence and not self._sequence >> 32 & 1:
                self._known = self._at, self._marker
                break
        return self._known is None or known != self._known

    def close(self) -> None:
        """Let go of the page."""
        self._words.release()
        self._memory.close()
