"""Which worker numbers of a fleet a host tries to claim, in which order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

from uuidd.core.ids.ticks import TICKS_PER_SECOND
from uuidd.fleet import claiming
from uuidd.fleet.coordinator import Coordinator, Found
from uuidd.fleet.record import Meta
from uuidd.fleet.standing import Terms

FAR = 60 * TICKS_PER_SECOND
"""A number whose ticks begin so far ahead was used by a wrong clock: it is left to itself."""

Candidates = list[tuple[int, Found | None]]
"""Numbers, each with its register as it was read; None for one that nobody has had."""

Registers = Mapping[int, Found | str]
"""All registers, as ``Coordinator.registers`` returns them."""


@dataclass(frozen=True, slots=True)
class Due:
    """A *number* that is free at a *tick*, unless its *host* renews it before."""

    tick: int
    number: int
    host: str


@dataclass(frozen=True, slots=True)
class Span:
    """The numbers that a host may have: those of the fleet, and of its own options."""

    low: int
    high: int

    @classmethod
    def of(cls, meta: Meta, terms: Terms) -> Span:
        """Return what both allow; it may be empty."""
        return cls(max(meta.low, terms.low), min(meta.high, terms.high))

    def from_a_random_place(self, random: Random) -> list[int]:
        """Return all numbers: hosts that start together must not all begin with the same one."""
        numbers = list(range(self.low, self.high + 1))
        start = random.randrange(len(numbers)) if numbers else 0
        return numbers[start:] + numbers[:start]


async def by_hand(engine: Coordinator, number: int | None, span: Span) -> Candidates:
    """Return the *number* that this host was given by hand before, if it is reserved or unused."""
    if number is None or not span.low <= number <= span.high:
        return []
    found = await engine.read(number)
    return [(number, found)] if found is None or found.record.reserved else []


async def unused(engine: Coordinator, numbers: list[int]) -> Candidates:
    """Return those that nobody has had."""
    taken = await engine.taken()
    return [(number, None) for number in numbers if number not in taken]


def used(founds: Registers, numbers: list[int], *, steady: int, hold: int) -> Candidates:
    """Return those that are free again, those that can be used at once before the others."""
    near = {
        number: found
        for number, found in founds.items()
        if isinstance(found, Found) and found.record.until <= steady + FAR
    }
    order = claiming.in_order(
        {number: found.record for number, found in near.items()},
        [number for number in numbers if number in near],
        steady=steady,
        hold=hold,
    )
    return [(number, near[number]) for number in order]


def next_due(founds: Registers, numbers: list[int], *, hold: int) -> Due | None:
    """Return the one of *numbers*, all of them taken, that is free first if nobody renews it."""
    dues = []
    for number in numbers:
        found = founds.get(number)
        if isinstance(found, Found) and not found.record.reserved:
            record = found.record
            # One that was let go is left to itself only while its ticks begin too far ahead.
            due = record.until + (hold + 1 if record.held else -FAR)
            dues.append(Due(due, number, record.host))
    return min(dues, key=lambda each: each.tick, default=None)
