"""Ticks, in which all times are counted, and the time field of an id.

A tick is 100 ns, counted from 1582-10-15T00:00:00Z (RFC 9562, 5.1).
"""

from __future__ import annotations

from uuidd.core.ids.checks import check_bits, shown
from uuidd.core.typed import NamedTuple

TICK_BITS = 60
"""Bits of a tick in a v1 or v6: they last until the year 5236."""

TICKS_PER_SECOND = 10_000_000
TICKS_PER_MS = TICKS_PER_SECOND // 1000

UNIX_EPOCH = 0x01B21DD213814000
"""The tick of 1970-01-01T00:00:00Z."""


class TimeField(NamedTuple):
    """The time field of a *kind* of id: units of *unit* ticks since *epoch*, in *bits* bits.

    *epoch* is a tick. *kind* is the name that errors show.
    """

    kind: str
    unit: int
    epoch: int
    bits: int

    @property
    def end(self) -> int:
        """The first tick that the field has no bits for."""
        return self.epoch + (self.unit << self.bits)

    def raw(self, tick: int) -> int:
        """Return the field's value at *tick*.

        Raises ValueError, naming the kind and its range, if *tick* is before the epoch or past the
        end; TypeError if it is not an int.
        """
        if type(tick) is not int:
            raise TypeError(f"tick is {shown(tick)}; it must be an int")
        raw = (tick - self.epoch) // self.unit
        if not 0 <= raw < 1 << self.bits:
            raise ValueError(
                f"tick is {tick}; the time of a {self.kind} is from tick {self.epoch}"
                f" to {self.end - 1}"
            )
        return raw

    def tick(self, raw: int) -> int:
        """Return the first tick of the unit that the field's value *raw* stands for.

        Raises ValueError, naming the range, if *raw* has more bits than the field.
        """
        return self.epoch + check_bits("timestamp", raw, self.bits) * self.unit


def unix_field(kind: str, unit: int, bits: int, *, epoch_ms: int = 0) -> TimeField:
    """Return a time field that begins *epoch_ms* milliseconds after 1970-01-01T00:00:00Z.

    Raises TypeError if *epoch_ms* is not an int.
    """
    if type(epoch_ms) is not int:
        raise TypeError(f"epoch is {shown(epoch_ms)}; it must be an int")
    return TimeField(kind, unit, UNIX_EPOCH + epoch_ms * TICKS_PER_MS, bits)
