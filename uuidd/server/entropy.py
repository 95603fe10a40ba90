"""Random bytes of the system, a few of them read ahead for a moment."""

from __future__ import annotations

import hashlib
import os
import struct
import time
from collections.abc import Callable

READ_AHEAD = 512
"""Bytes read at once: one system call for 32 UUIDs. Bytes that wait are part of
future ids, so there are few."""

MAX_AGE = 0.1
"""Seconds for which bytes may wait to be used: as long as a client keeps a block."""


def of_this_moment(count: int) -> bytes:
    """Return random bytes of the system, mixed with the clocks.

    Right after a machine was cloned the kernels of both copies may have the same random generator,
    until they are told. Their clocks, in nanoseconds, hardly ever agree.
    """
    clocks = time.time_ns(), time.monotonic_ns(), time.perf_counter_ns(), time.process_time_ns()
    mixed = hashlib.shake_256(os.urandom(32) + os.urandom(count) + struct.pack("4q", *clocks))
    return mixed.digest(count)


class Entropy:
    """Random bits and bytes of *source*.

    Bytes that were read ahead are dropped once *utc*, in seconds, has moved by MAX_AGE or has gone
    back. So a core dump or a snapshot of the machine holds little of what is given out later.

    For one process only: a child after a fork would use the same bytes again.
    """

    def __init__(
        self, source: Callable[[int], bytes] = os.urandom, utc: Callable[[], float] = time.time
    ) -> None:
        self._source = source
        self._utc = utc
        self._read_at = 0.0
        self._ahead = b""
        self._used = 0

    def take(self, count: int) -> bytes:
        """Return *count* random bytes that were never returned before."""
        if count > READ_AHEAD:
            return self._source(count)
        end = self._used + count
        if end > len(self._ahead) or not 0 <= self._utc() - self._read_at < MAX_AGE:
            self._read_at = self._utc()
            self._ahead = self._source(READ_AHEAD)
            self._used, end = 0, count
        taken = self._ahead[self._used : end]
        self._used = end
        return taken

    def drop(self) -> None:
        """Drop the bytes that were read ahead, because a copy of this machine has them too."""
        self._ahead, self._used = b"", 0

    def bits(self, count: int) -> int:
        """Return an int of *count* random bits."""
        return int.from_bytes(self.take((count + 7) // 8), "big") >> -count % 8
