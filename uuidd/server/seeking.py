"""Which worker numbers of a fleet a host tries to claim, in which order."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from uuidd.core.ids.ticks import TICKS_PER_SECOND
from uuidd.server.standing import Terms
from uuidd.workers import claiming
from uuidd.workers.coordinator import Coordinator, Found
from uuidd.workers.record import Meta

FAR = 60 * TICKS_PER_SECOND
"""A number whose ticks begin so far ahead was used by a wrong clock: it is left to itself."""

Candidates = list[tuple[int, Found | None]]
"""Numbers, each with its register as it was read; None for one that nobody has had."""


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


async def used(engine: Coordinator, numbers: list[int], *, steady: int, hold: int) -> Candidates:
    """Return those that are free again, those that can be used at once before the others."""
    read = await engine.registers()
    founds = {
        number: found
        for number, found in read.items()
        if isinstance(found, Found) and found.record.until <= steady + FAR
    }
    order = claiming.in_order(
        {number: found.record for number, found in founds.items()},
        [number for number in numbers if number in founds],
        steady=steady,
        hold=hold,
    )
    return [(number, founds[number]) for number in order]
