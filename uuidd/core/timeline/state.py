"""The state: what must survive the daemon (RFC 9562, 6.3), and the horizon that it allows.

Theory of operation

1. A mark in the saved state says: everything given out lies below it. The next start gives out
   nothing below the mark that it finds, so an id below it cannot come twice.
2. A crash can happen at any moment, and the next start finds either the last save that completed or
   one that was in flight. So nothing is given out at or past the lower of their marks.
3. A save that failed may have reached the disk all the same: its rename may have been done before
   the error. It counts as in flight until a later save completes, which replaces it on the disk.
4. A save that has only begun can therefore lower the horizon, but only a completed save raises it.
5. Saves can become void: the folder that holds them was moved away, and a start would not find
   them. Then nothing is given out until a later save completes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from uuidd.core.timeline.fence import Kept

NO_EPOCHS: Mapping[int, int] = {}
"""The epochs of a host that has made no Snowflakes."""


class Node(NamedTuple):
    """A node and its source: ``random``, ``mac eth0`` or ``given``.

    A *fixed* node, any but a random one, can come back on a host that has lost its state. A random
    one cannot, which is why it is the default (RFC 9562, 6.10).
    """

    value: int
    source: str

    @property
    def fixed(self) -> bool:
        """Whether another program, or this host without its state, may come to the same node."""
        return self.source != "random"

    def same_as(self, other: Node) -> bool:
        """Whether both are the same node, whatever interface a fixed one was read from."""
        return (self.value, self.fixed) == (other.value, other.fixed)


@dataclass(frozen=True, slots=True)
class State:
    """The node, the host, the current generation, and a mark for every generation ever opened.

    *machine* is the hash of the host's machine-id, "" where that was not known. Marks and *floor*
    are ticks of UTC; *steady* is the steady timeline's mark, on its own clock. *leases* is a tick
    before which all ticks lie that leases may have used, of any generation. *epochs* is the
    earliest epoch, in Unix milliseconds, that each worker number was used with. *worker* is the
    host's worker number if it was set by hand, the claim to one, or one that is used no more.
    *product* is the hash of the machine's product UUID, "" where it was never known. *now* and
    *elapsed* are UTC and CLOCK_BOOTTIME when the save began, in ticks. Under a fixed
    node every mark counts as at least the floor: the tick at which the state began, or changed to
    that node.
    """

    node: Node
    machine: str
    generation: int
    marks: Mapping[int, int]
    floor: int
    steady: int = 0
    epochs: Mapping[int, int] = field(default_factory=lambda: NO_EPOCHS)
    leases: int = 0
    worker: Kept = None
    product: str = ""
    now: int = 0
    elapsed: int = 0

    def copied_to(self, product: str) -> bool:
        """Whether the machine with this *product* is another one than the state's.

        If one of the two is not known they count as the same: the user that runs the daemon may not
        have the right to read it.
        """
        return "" not in (self.product, product) and self.product != product


class Horizon:
    """The tick up to which one supply of ticks may be given out, given what the disk may hold.

    *saved* is its mark in the last completed save, *in_flight* the lowest of those that may have
    reached the disk since, None if there is none. *limit* is the first tick that may not be given
    out; 0 lets none be given out.
    """

    __slots__ = ("in_flight", "limit", "saved")

    def __init__(self, saved: int = 0) -> None:
        self.saved = self.limit = saved
        self.in_flight: int | None = None

    def begin_save(self, mark: int) -> None:
        """Count *mark* as possibly on the disk from now on.

        One save at a time: ``end_save`` comes before the next ``begin_save``.
        """
        lowest = mark if self.in_flight is None else min(self.in_flight, mark)
        self.in_flight = lowest
        self.limit = min(self.saved, lowest)

    def end_save(self, mark: int, *, completed: bool) -> None:
        """Take note of how the save of *mark* ended; a failed one still counts as in flight."""
        if completed:
            self.saved = self.limit = mark
            self.in_flight = None

    @property
    def highest(self) -> int:
        """The tick before which all lies that a copy of this process may have given out.

        That is so as long as the copy has begun no other save.
        """
        return max(self.saved, self.in_flight or 0)

    def void(self) -> None:
        """Let nothing be given out before a later save completes."""
        self.saved = self.limit = 0
