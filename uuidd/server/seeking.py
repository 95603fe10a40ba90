"""Which worker numbers of a fleet a host tries to claim, in which order."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Literal

from uuidd.core.ids.ticks import TICKS_PER_SECOND
from uuidd.server.standing import Terms
from uuidd.workers import claiming
from uuidd.workers.coordinator import Coordinator, Found
from uuidd.workers.record import Meta

FAR = 60 * TICKS_PER_SECOND
"""A number whose ticks begin so far ahead was used by a wrong clock: it is left to itself."""

Where = Literal["by hand", "unused", "used"]
PLACES: tuple[Where, ...] = ("by hand", "unused", "used")
"""Where to look: at the number that was set by hand, at those nobody has had, at those let go."""

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


async def listed(
    where: Where,
    engine: Coordinator,
    span: Span,
    numbers: list[int],
    *,
    had: int | None,
    steady: int,
    hold: int,
) -> Candidates:
    """Return those of *numbers* that may be claimed, of one of the three sorts in PLACES.

    *had* is the number that this host was given by hand before, which is its own if it is reserved
    or unused. Of the numbers that are free again, those that can be used at once come first.
    """
    if where == "by hand":
        return await _by_hand(engine, had, span)
    if where == "unused":
        return await _unused(engine, numbers)
    return await _used(engine, numbers, steady=steady, hold=hold)


async def _by_hand(engine: Coordinator, number: int | None, span: Span) -> Candidates:
    if number is None or not span.low <= number <= span.high:
        return []
    found = await engine.read(number)
    return [(number, found)] if found is None or found.record.reserved else []


async def _unused(engine: Coordinator, numbers: list[int]) -> Candidates:
    taken = await engine.taken()
    return [(number, None) for number in numbers if number not in taken]


async def _used(engine: Coordinator, numbers: list[int], *, steady: int, hold: int) -> Candidates:
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
