"""A source: what a cutter cuts ids from. channel.py says what belongs to it."""

from __future__ import annotations

from uuidd.core.ids.places import Origin
from uuidd.core.typed import NamedTuple


class Source(NamedTuple):
    """The places from *first* to *end*, as long as UTC is at *since* or later, and before *until*.

    Of a *lane* those are there that UTC has reached, whatever *end* is. Its ids have *origin*, and
    UUIDs are marked *safe* or not. It ends as ``life.Watch`` says.
    """

    first: int
    end: int
    since: int
    until: int
    origin: Origin
    safe: bool
    lane: bool
    horizon: memoryview
    token: memoryview
    value: int
