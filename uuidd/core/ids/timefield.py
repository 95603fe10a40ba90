"""The time field of an id: its unit, where it begins, and when it is full."""

from __future__ import annotations

from typing import NamedTuple

from uuidd.core.ids.fields import check
from uuidd.core.ids.shown import shown
from uuidd.core.ids.timebased import TICK_BITS, TICKS_PER_SECOND, UNIX_EPOCH

TICKS_PER_MS = TICKS_PER_SECOND // 1000


class TimeField(NamedTuple):
    """A count of units of *unit* ticks since the tick *epoch*, in *bits* bits. *kind* names it."""

    kind: str
    unit: int
    epoch: int
    bits: int

    @property
    def end(self) -> int:
        """The first tick that the field cannot tell any more."""
        return self.epoch + (self.unit << self.bits)

    def raw(self, tick: int) -> int:
        """Give the field's value at *tick*.

        Raises ValueError, naming the kind and its range, for one before its epoch or past its end;
        TypeError for what is no int.
        """
        if type(tick) is not int:
            raise TypeError(f"tick is {shown(tick)}; it must be an int")
        if not self.epoch <= tick < self.end:
            raise ValueError(
                f"tick is {tick}, and {self.kind} tells times from tick {self.epoch}"
                f" to {self.end - 1}"
            )
        return (tick - self.epoch) // self.unit

    def tick(self, raw: int) -> int:
        """Give the first tick of the unit that the field's value *raw* tells.

        Raises ValueError, naming the range, when it has more bits than the field.
        """
        return self.epoch + check("timestamp", raw, self.bits) * self.unit


GREGORIAN = {kind: TimeField(kind, 1, 0, TICK_BITS) for kind in ("v1", "v6")}
"""The fields of v1 and v6: ticks since 1582-10-15T00:00:00Z."""


def unix(kind: str, unit: int, bits: int, *, epoch_ms: int = 0) -> TimeField:
    """Give a field that begins *epoch_ms* after 1970-01-01T00:00:00Z. TypeError if it is no int."""
    if type(epoch_ms) is not int:
        raise TypeError(f"epoch is {shown(epoch_ms)}; it must be an int")
    return TimeField(kind, unit, UNIX_EPOCH + epoch_ms * TICKS_PER_MS, bits)


def milliseconds(tick: int) -> tuple[int, int]:
    """Give the Unix milliseconds of a tick, and which of their 10,000 ticks it is."""
    return divmod(tick - UNIX_EPOCH, TICKS_PER_MS)
