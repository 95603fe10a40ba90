"""Sonyflakes, read only: 63 bits, by 10 milliseconds, for many machines.

::

    | 0 | 10 ms since an epoch 39 | sequence 8 | machine 16 |
"""

from __future__ import annotations

from typing import NamedTuple

from uuidd.core.ids.checks import check_bits
from uuidd.core.ids.ticks import TICKS_PER_MS, TimeField, unix_field

EPOCHS = {"sonyflake": 1_409_529_600_000, "sonyflake2": 1_735_689_600_000}
"""Where versions 1 and 2 of the library begin by default: 2014-09-01 and 2025-01-01."""


class SonyflakeFields(NamedTuple):
    """What a Sonyflake is made of; *timestamp* counts 10 milliseconds since its epoch."""

    timestamp: int
    sequence: int
    machine: int


def time_field(epoch: int = EPOCHS["sonyflake"]) -> TimeField:
    """Give the time field of Sonyflakes whose epoch is at *epoch*, in Unix milliseconds."""
    return unix_field("sonyflake", 10 * TICKS_PER_MS, 39, epoch_ms=epoch)


def fields(value: int) -> SonyflakeFields:
    """Give the fields of a Sonyflake. ValueError if it has more than 63 bits."""
    check_bits("a Sonyflake", value, 63)
    return SonyflakeFields(value >> 24, value >> 16 & 0xFF, value & 0xFFFF)
