"""The page of the leases: memory that the daemon writes and that its clients can only read.

The clients get its descriptor (SCM_RIGHTS), and map it. It is sealed (memfd_create(2)), so that
nobody who has the descriptor can write to it, or change its size and so break its readers.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import mmap
import os
import stat
import struct
from collections.abc import Callable

from uuidd.core.timeline.page import PAGE_WORDS

WORD_BYTES = 8

PAGE_BYTES = PAGE_WORDS * WORD_BYTES

MFD_NOEXEC_SEAL = 0x8
"""From <linux/memfd.h> (Linux 6.3): the memory holds no program, whatever vm.memfd_noexec says."""

F_SEAL_FUTURE_WRITE = 0x10
"""From <linux/fcntl.h> (Linux 5.1): only what is mapped already can be written to."""


class PageError(Exception):
    """There can be no page; one line that says why."""


class Page:
    """A page that is zero at first: its *words*, and the descriptor *fd*, to be passed to clients.

    *create* and *pointer_bytes* are for tests. Raises PageError, and leaves nothing open.
    """

    def __init__(
        self,
        create: Callable[[str, int], int] = os.memfd_create,
        pointer_bytes: int = struct.calcsize("P"),
    ) -> None:
        if pointer_bytes < WORD_BYTES:
            raise PageError("a machine of 32 bits does not write 64 bits at once")
        seals = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | F_SEAL_FUTURE_WRITE | fcntl.F_SEAL_SEAL
        with contextlib.ExitStack() as undo:
            try:
                self.fd = _created(create)
                undo.callback(os.close, self.fd)
                # Clients need no right to map what they were passed. With the right to write they
                # could attach attributes to it (xattr(7)), which use the kernel's memory for good.
                os.fchmod(self.fd, stat.S_IRUSR)
                # Now, because a write to memory that cannot be had ends a process.
                os.posix_fallocate(self.fd, 0, PAGE_BYTES)
                memory = mmap.mmap(self.fd, PAGE_BYTES)
                undo.callback(memory.close)
                # Before this the memory is mapped, because afterwards nobody can map it to write.
                fcntl.fcntl(self.fd, fcntl.F_ADD_SEALS, seals)
            except OSError as error:
                raise PageError(f"the kernel gives no sealed memory: {error.strerror}") from error
            # An item of this is one aligned word, which is written at once.
            self.words = memoryview(memory).cast("Q")
            undo.callback(self.words.release)
            self._open = undo.pop_all()

    def close(self) -> None:
        """Let go of the page. Those who have its descriptor go on with what is in it."""
        self._open.close()


def _created(create: Callable[[str, int], int]) -> int:
    flags = os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING
    try:
        return create("uuidd-leases", flags | MFD_NOEXEC_SEAL)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        # The kernel does not know the flag yet.
        return create("uuidd-leases", flags)
