"""What the fields of several kinds of id have in common."""

from __future__ import annotations

from functools import lru_cache

from uuidd.core.ids import times
from uuidd.core.ids.nodes import MULTICAST
from uuidd.core.ids.ticks import TICKS_PER_MS, TimeField

Fields = dict[str, int | str]

ORDER = (
    "version",
    "variant",
    "time",
    "timestamp",
    "clock_seq",
    "node",
    "datacenter",
    "worker",
    "sequence",
    "payload",
    "machine",
    "domain",
    "local_id",
    "family",
    "host",
    "custom_a",
    "custom_b",
    "custom_c",
    "random",
    "tick",
    "uuid",
    "node_is",
    "base",
    "full_on",
)
"""All names of fields, in the order in which those that a kind has are told."""


def time(field: TimeField, raw: int) -> Fields:
    """Give the time that a field's value tells, in RFC 3339 with all its digits, and the value."""
    return {"time": times.text(field.tick(raw), field.unit), "timestamp": raw}


@lru_cache(maxsize=64)
def full_on(field: TimeField) -> str:
    """Give the day on which a time field is full."""
    return times.day(field.end)


def tick(rest: int) -> Fields:
    """Give the tick in the millisecond, nothing when *rest* is none: another made the id."""
    return {"tick": rest} if rest < TICKS_PER_MS else {}


def node_is(node: int) -> str:
    """Give where a node comes from, as its multicast bit says."""
    return "random" if node & MULTICAST else "a network address"
