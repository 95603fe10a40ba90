"""The state: what must survive the daemon (RFC 9562, 6.3)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from uuidd.core.ids.nodes import MULTICAST, NODE_BITS

RandomBits = Callable[[int], int]
"""Gives an int of so many random bits."""


@dataclass(frozen=True, slots=True)
class Node:
    """A node and where it came from: ``random``, ``mac eth0``, ``ip 10.0.0.5 eth0`` or ``given``.

    A *fixed* node (any but a random one) can be met again by someone who lost the state; a random
    one cannot, which is why it is the default (RFC 9562, 6.10).
    """

    value: int
    source: str

    @property
    def fixed(self) -> bool:
        """Whether others, or a later self with no memory, may come to the same node."""
        return self.source != "random"

    def same_as(self, other: Node) -> bool:
        """Whether ids of both carry the same node, from wherever each came."""
        return (self.value, self.fixed) == (other.value, other.fixed)


@dataclass(frozen=True, slots=True)
class State:
    """The node, the host, the current generation, and a mark for every generation ever opened.

    Marks and *floor* are ticks of UTC; *steady* is the steady timeline's mark, on its own clock.
    *epochs* is the earliest epoch, in Unix milliseconds, that each machine number was used with.
    Under a fixed node every mark counts as at least the floor: the tick at which the state began
    or last changed to such a node.
    """

    node: Node
    machine: str
    generation: int
    marks: Mapping[int, int]
    floor: int
    steady: int
    epochs: Mapping[int, int] = field(default_factory=dict)


def random_node(random: RandomBits) -> Node:
    """Give a node of 47 random bits and the multicast bit (RFC 9562, 6.10)."""
    return Node(random(NODE_BITS) | MULTICAST, "random")
