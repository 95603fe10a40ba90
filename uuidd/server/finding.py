"""Finds a worker number that is free in a fleet, and claims it."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from uuidd.core.timeline.fence import Claim, Fence
from uuidd.server import seeking
from uuidd.server.questions import Attempt, Questions
from uuidd.server.seeking import Span
from uuidd.server.standing import Standing, Terms
from uuidd.workers import claiming
from uuidd.workers.claiming import Holder
from uuidd.workers.coordinator import Changed, Coordinator, Found
from uuidd.workers.record import Meta, new_token

FULL_SECONDS = 5.0
"""From a look at a fleet that has no number to the next: so much, or up to twice as much."""

AGAIN_SECONDS = 0.1
"""The most before the fleet is read anew, after other hosts came first."""

TRIES = 16
"""How many numbers of a list are tried before the fleet is read anew: others try them too."""


class Finder:
    """Claims a number for *holder*. *random* decides where in the fleet to begin to look."""

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

    async def find(self, engine: Coordinator, meta: Meta) -> Claim | float:
        """Return a new claim that a write has confirmed, or the seconds until the next look."""
        if (claim := await self._attempted(engine, meta)) is not None:
            return claim
        span = Span.of(meta, self._terms)
        numbers = span.from_a_random_place(self._random)
        for where in seeking.PLACES:
            candidates = await self._questions.timed(
                seeking.listed(
                    where,
                    engine,
                    span,
                    numbers,
                    had=self._fence.had,
                    steady=self._questions.steady(),
                    hold=self._terms.hold,
                )
            )
            for number, found in candidates[:TRIES]:
                claim = await self._claim(engine, meta, number, found)
                if claim is not None:
                    return claim
            if len(candidates) > TRIES:
                return self._random.uniform(0, AGAIN_SECONDS)
        self._standing.say(
            "full",
            f"no worker number of {span.low} to {span.high} is free; uuidd workers list"
            f" {self._terms.url} shows who has them",
        )
        return self._random.uniform(1, 2) * FULL_SECONDS

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
