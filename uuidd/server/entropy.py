"""Random bytes from the system, read ahead."""

from __future__ import annotations

import os
from collections.abc import Callable

READ_AHEAD = 4096
"""Bytes read at once: one system call for 256 UUIDs."""


class Entropy:
    """Random bits and bytes, from os.urandom unless told otherwise.

    For one process only: what is read ahead would come again in a fork's child.
    """

    def __init__(self, source: Callable[[int], bytes] = os.urandom) -> None:
        self._source = source
        self._ahead = b""
        self._used = 0

    def take(self, count: int) -> bytes:
        """Give *count* random bytes that nobody else was given."""
        if count > READ_AHEAD:
            return self._source(count)
        end = self._used + count
        if end > len(self._ahead):
            self._ahead = self._source(READ_AHEAD)
            self._used, end = 0, count
        taken = self._ahead[self._used : end]
        self._used = end
        return taken

    def bits(self, count: int) -> int:
        """Give an int of *count* random bits."""
        return int.from_bytes(self.take((count + 7) // 8), "big") >> -count % 8
