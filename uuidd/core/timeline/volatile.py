"""The volatile node: ids where no state can be kept (RFC 9562, 6.3, "no stable store")."""

from __future__ import annotations

from uuidd.core.ids.nodes import RandomBits, random_node
from uuidd.core.timeline.block import Block
from uuidd.core.timeline.generation import GENERATION_BITS, Generation

TOLERANCE = 100_000
"""How far UTC may step back without another generation: 10 ms, in ticks.

Waiting that long costs less than a generation, and time daemons step UTC by a few milliseconds
every day.
"""


class Volatile:
    """A timeline whose node and generation are random: 57 bits in place of a memory.

    It begins with *generation*, if one is given.
    """

    __slots__ = ("_open", "_random")

    def __init__(self, random: RandomBits, generation: Generation | None = None) -> None:
        self._random = random
        self._open = generation or self._draw()

    def take(self, count: int, *, now: int, whole: bool = False, not_before: int = 0) -> Block:
        """Hand out at most *count* of the latest free ticks, or exactly *count* if *whole*.

        A short block has no tick before *not_before*. After UTC stepped back, the block comes from
        a new node and generation.

        Raises NoneFree, and changes nothing; the error says how many ticks to wait.
        """
        if now < self._open.top - TOLERANCE:
            self._open = self._draw()
        return self._open.take(count, now=now, whole=whole, not_before=not_before)

    @property
    def generation(self) -> Generation:
        """The open generation, to look at."""
        return self._open

    def _draw(self) -> Generation:
        number = self._random(GENERATION_BITS)
        return Generation(number, node=random_node(self._random), begin=0)
