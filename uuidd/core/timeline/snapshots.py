"""All that decides what the timelines give out next, to look at and to restore."""

from __future__ import annotations

from collections.abc import MutableSequence
from typing import NamedTuple

from uuidd.core.timeline.generation import Generation
from uuidd.core.timeline.horizon import Horizon
from uuidd.core.timeline.state import Node


class UtcSnapshot(NamedTuple):
    """All that decides what a ``Utc`` gives out next. See the fields of ``State`` for most.

    What its leases do next is in a ``LeasesSnapshot``.
    """

    node: Node
    number: int
    floor: int
    marks: dict[int, int]
    horizons: dict[int, Horizon]
    none_before: int
    short_next: int
    generation: Generation | None
    volatile: Generation | None
    closed: bool


class SteadySnapshot(NamedTuple):
    """All that decides what a ``Steady`` gives out next.

    S went on from the tick *slewed_from* when *elapsed* ticks of CLOCK_BOOTTIME had gone by.
    """

    next: int
    slewed_from: int
    elapsed: int
    held_until: int
    saved: int
    in_flight: int | None
    closed: bool


class LeasesSnapshot(NamedTuple):
    """All that decides what a ``Leases`` grants and shows next."""

    page: MutableSequence[int] | memoryview
    users: dict[int, int]
    rests: dict[int, tuple[int, int]]
    reach: int
    floor: int
    top: int
    used: bool
