"""The ids of Baidu's uid-generator, read only: 63 bits, by seconds, laid out as its user says.

::

    | 0 | seconds since an epoch 28 | worker 22 | sequence 13 |     (by default)
"""

from __future__ import annotations

from typing import NamedTuple

from uuidd.core.ids.checks import check_bits
from uuidd.core.ids.ticks import TICKS_PER_SECOND, TimeField, unix_field

EPOCH = 1_463_673_600_000
"""2016-05-20T00:00:00+08:00, in Unix milliseconds: the default."""

BITS = (28, 22, 13)
"""Bits of time, worker and sequence: the default."""


class UidGeneratorFields(NamedTuple):
    """What an id is made of; *timestamp* counts seconds since its epoch."""

    timestamp: int
    worker: int
    sequence: int


def time_field(epoch: int = EPOCH, bits: int = BITS[0]) -> TimeField:
    """Give the time field of ids whose epoch is at *epoch*, in Unix milliseconds."""
    return unix_field("uidgenerator", TICKS_PER_SECOND, bits, epoch_ms=epoch)


def fields(value: int, bits: tuple[int, int, int] = BITS) -> UidGeneratorFields:
    """Give the fields of an id. ValueError if it or the layout does not fit into 63 bits."""
    if min(bits) < 0 or sum(bits) != 63:
        raise ValueError(f"bits are {bits}; time, worker and sequence must have 63 together")
    check_bits("an id", value, 63)
    _, worker, sequence = bits
    return UidGeneratorFields(
        value >> worker + sequence,
        value >> sequence & (1 << worker) - 1,
        value & (1 << sequence) - 1,
    )
