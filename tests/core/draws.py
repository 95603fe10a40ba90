"""Randomness that repeats: a fake in which no two random nodes are ever the same."""

from __future__ import annotations

from uuidd.core.ids.nodes import NODE_BITS


class Draws:
    """A RandomBits that counts: nodes 1, 2, 3, ..., numbers *first*, *first* + *step*, ..."""

    def __init__(self, first: int = 0, step: int = 1) -> None:
        self.nodes = 0
        self._number = first
        self._step = step

    def __call__(self, bits: int) -> int:
        """Return a node of its own for each draw of 48 bits, else the next number."""
        if bits == NODE_BITS:
            self.nodes += 1
            return self.nodes
        number = self._number % (1 << bits)
        self._number += self._step
        return number


def ones(bits: int) -> int:
    """Random bits that are all ones."""
    return (1 << bits) - 1


def zeros(bits: int) -> int:
    """Random bits that are all zeros."""
    return 0 >> bits
