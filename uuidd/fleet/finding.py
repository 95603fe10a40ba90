"""Finds a worker number that is free in a fleet, and claims it."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from uuidd.core.timeline.fence import Claim, Fence
from uuidd.fleet import claiming, seeking
from uuidd.fleet.claiming import Holder
from uuidd.fleet.coordinator import Changed, Coordinator, Found
from uuidd.fleet.questions import Attempt, Questions
from uuidd.fleet.record import Meta, new_token
from uuidd.fleet.seeking import Candidates, Span
from uuidd.fleet.standing import Standing, Terms
from uuidd.fleet.waiting import Waiting

AGAIN_SECONDS = 0.1
"""The most before the fleet is read anew, after other hosts came first."""

TRIES = 16
"""How many numbers of a list are tried before the fleet is read anew: others try them too."""


class Finder:
    """Claims a number for *holder*, and waits for one while all are taken.

    *random* decides where in the fleet to begin to look.
    """

    def __init__(
        self,
        questions: Questions,
        fence: Fence,
        terms: Terms,
        standing: Standing,
        holder: Holder,
        *,
        random: Random,
        token: Callable[[], str] = new_token,
    ) -> None:
        self._questions = questions
        self._fence = fence
        self._terms = terms
        self._standing = standing
        self._holder = holder
        self._random = random
        self._token = token
        self._waiting = Waiting(questions, random)
        self._told: int | None = None

    async def find(self, engine: Coordinator, meta: Meta) -> Claim | float:
        """Return a new claim that a write has confirmed, or the seconds until the next try."""
        if (claim := await self._attempted(engine, meta)) is not None:
            return claim
        span = Span.of(meta, self._terms)
        if self._told is not None:
            number, self._told = self._told, None
            if (claim := await self._claim_told(engine, meta, number, span)) is not None:
                return claim
        else:
            found = await self._look(engine, meta, span)
            if found is not None:
                return found
        self._told, pause = await self._waiting.wait(engine)
        return pause

    async def _look(self, engine: Coordinator, meta: Meta, span: Span) -> Claim | float | None:
        """Look at all numbers; return None if all are taken."""
        numbers = span.from_a_random_place(self._random)
        asked = self._questions.timed
        by_hand = await asked(seeking.by_hand(engine, self._fence.had, span))
        if (found := await self._try(engine, meta, by_hand)) is not None:
            return found
        unused = await asked(seeking.unused(engine, numbers))
        if (found := await self._try(engine, meta, unused)) is not None:
            return found
        registers = await asked(engine.registers())
        hold = self._terms.hold
        used = seeking.used(registers, numbers, steady=self._questions.steady(), hold=hold)
        if (found := await self._try(engine, meta, used)) is not None:
            return found
        due = seeking.next_due(registers, numbers, hold=hold)
        self._standing.full(span, due)
        self._waiting.looked(due)
        return None

    async def _try(
        self, engine: Coordinator, meta: Meta, candidates: Candidates
    ) -> Claim | float | None:
        """Try to claim one of some numbers; return None if all are taken by now."""
        for number, found in candidates[:TRIES]:
            claim = await self._claim(engine, meta, number, found)
            if claim is not None:
                return claim
        return self._random.uniform(0, AGAIN_SECONDS) if len(candidates) > TRIES else None

    async def _claim_told(
        self, engine: Coordinator, meta: Meta, number: int, span: Span
    ) -> Claim | None:
        """Claim the number that may be free now; return None if it is not, or no more."""
        if not span.low <= number <= span.high:
            return None
        found = await self._questions.timed(engine.read(number))
        steady, hold = self._questions.steady(), self._terms.hold
        if found is None or not claiming.is_free(found.record, steady=steady, hold=hold):
            return None
        return await self._claim(engine, meta, number, found)

    async def _attempted(self, engine: Coordinator, meta: Meta) -> Claim | None:
        """Return a claim whose write had no answer, once another write has confirmed it."""
        attempt = self._questions.attempt
        if attempt is None:
            return None
        found = await self._questions.timed(engine.read(attempt.number))
        if found is None or found.record.claim != attempt.token:
            self._questions.attempt = None
            return None
        until = self._questions.steady() + self._terms.window
        written = claiming.renewed(found.record, until=until, now=self._questions.now())
        await self._questions.write(engine, attempt.number, written, found)
        return claiming.confirmed(meta.id, attempt.number, written, attempt.begin)

    async def _claim(
        self, engine: Coordinator, meta: Meta, number: int, found: Found | None
    ) -> Claim | None:
        """Try to claim a number as it was read; return None if another host came first."""
        steady = self._questions.steady()
        written, begin = claiming.claimed(
            None if found is None else found.record,
            token=self._token(),
            until=steady + self._terms.window,
            holder=self._holder,
            now=self._questions.now(),
        )
        if begin > steady + seeking.FAR:
            return None
        self._questions.attempt = Attempt(number, written.claim, begin)
        try:
            await self._questions.write(engine, number, written, found)
        except Changed:
            self._questions.attempt = None
            return None
        return claiming.confirmed(meta.id, number, written, begin)
