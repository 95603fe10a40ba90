"""v2: DCE security UUIDs, read only: a v1 whose time_low is a user's or a group's number.

Laid out by DCE 1.1, Authentication and Security Services; RFC 9562 leaves it to that (5.2).

::

    | local_id 32 | time_mid 16 | ver 4 | time_high 12 | var 2 | clock_seq 6 | domain 8 | node 48 |
"""

from __future__ import annotations

from typing import NamedTuple

from uuidd.core.ids import uuids
from uuidd.core.ids.timefield import TimeField

TIME = TimeField("v2", 1 << 32, 0, 28)
"""The time lacks the 32 bits that the local id takes: it tells some seven minutes."""

DOMAINS = {0: "person", 1: "group", 2: "org"}


class DceFields(NamedTuple):
    """What a v2 is made of. *timestamp* counts 2**32 ticks; *domain* tells what *local_id* is."""

    timestamp: int
    domain: int
    local_id: int
    clock_seq: int
    node: int


def fields(value: int) -> DceFields:
    """Give the fields of a v2 UUID. ValueError, naming the UUID, if it is none."""
    if uuids.version(value) != 2:
        raise ValueError(f"{uuids.to_text(value)} is no v2")
    return DceFields(
        timestamp=(value >> 64 & 0xFFF) << 16 | value >> 80 & 0xFFFF,
        domain=value >> 48 & 0xFF,
        local_id=value >> 96,
        clock_seq=value >> 56 & 0x3F,
        node=value & (1 << 48) - 1,
    )
