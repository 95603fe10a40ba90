"""Claims a worker number of a fleet and lengthens the claim: one step at a time.

See keeper.py, which takes the steps, for how it works. What to write to a register is decided in
workers/claiming.py; this asks the engine, and moves the fence after a write that was confirmed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from math import inf
from random import Random
from typing import TypeVar

import trio

from uuidd.core.ids.ticks import TICKS_PER_SECOND
from uuidd.core.timeline.fence import Claim
from uuidd.core.timeline.timelines import Reading, Timelines
from uuidd.server import seeking
from uuidd.server.seeking import Span
from uuidd.server.standing import Standing, Terms
from uuidd.workers import claiming
from uuidd.workers.claiming import Holder
from uuidd.workers.coordinator import Changed, Coordinator, Found
from uuidd.workers.record import Meta, Record, new_token

LOOK_SECONDS = 5.0
"""Between two looks at the clock, or at a fleet that has no number or is not initialised."""

AGAIN_SECONDS = 0.1
"""The most before the fleet is read anew, after other hosts came first."""

SPREAD = 8
"""A claim is renewed up to this part of the window before half of it is over, at random."""

TRIES = 16
"""How many numbers of a list are tried before the fleet is read anew: others try them too."""

SAVE_SECONDS = 2.0
"""How long a number that was claimed waits for the save that holds the claim."""

_Answer = TypeVar("_Answer")


@dataclass(slots=True)
class _Attempt:
    """A claim that was written without an answer so far; the register tells whether it is there."""

    number: int
    token: str
    begin: int


class Claimant:
    """Moves the fence of *timelines* as ``step`` is called, which asks an engine.

    *read* reads the clock, *save* asks for a save of the state, which holds the claim, and *saved*
    waits for one that begins from then on. *random* decides where in the fleet to begin to look for
    a number. *moved* is called after each change of the fence.
    """

    def __init__(
        self,
        terms: Terms,
        timelines: Timelines,
        read: Callable[[], Reading],
        save: Callable[[], None],
        saved: Callable[[], Awaitable[None]],
        holder: Holder,
        *,
        name: str,
        moved: Callable[[], None],
        random: Random,
        token: Callable[[], str] = new_token,
    ) -> None:
        self._terms = terms
        self._timelines = timelines
        self._fence = timelines.fence
        self._read = read
        self._save = save
        self._saved = saved
        self._holder = holder
        self._name = name
        self._moved = moved
        self._random = random
        self._token = token
        self._found: Found | None = None
        self._attempt: _Attempt | None = None
        self._sooner = self._drops = 0
        self._not_before = -inf
        self._unconfirmed = self._fence.claim is not None
        self.meta: Meta | None = None
        self.fenced = False
        self.standing = Standing(self._fence, terms, name, self._steady)
        if self._fence.claim is not None:
            self.standing.resumed(self._fence.claim)

    def drop(self, until: float) -> None:
        """Have no claim any more, and claim another number from the time *until* on."""
        self._drops += 1
        self._not_before = until
        self._found = self._attempt = None
        self._unconfirmed = self.fenced = False
        self.standing.dropped()

    def forget_found(self) -> None:
        """Read the register again before the next write to it."""
        self._found = None

    async def step(self, engine: Coordinator) -> float:
        """Do what is due; return the seconds until there may be more to do.

        Raises Away, Changed or UnreadableError; then it has to be called again after a while.
        """
        if self._timelines.steady.withheld:
            self.standing.say("claiming", self._timelines.steady.withheld)
            return LOOK_SECONDS / 5
        if trio.current_time() < self._not_before:
            return self._not_before - trio.current_time()
        claim = self._fence.claim
        steady = self._steady()
        if claim is not None and not self._unconfirmed and not self.fenced:
            left = claim.until - steady - self._terms.window // 2 - self._sooner
            if left > 0:
                return min(left / TICKS_PER_SECOND, LOOK_SECONDS)
        meta = self.meta or await self._timed(engine.meta())
        if not self._usable(meta):
            return LOOK_SECONDS
        assert meta is not None  # noqa: S101 - one that is missing is not usable
        self.meta = meta
        if claim is not None and claim.namespace != meta.id:
            claim = self._leave(claim)
        if claim is not None and not self.fenced:
            return await self._renew(engine, claim)
        return await self._find(engine, meta)

    def _leave(self, claim: Claim) -> Claim | None:
        """Leave the fleet of *claim*, because the URL names another, or it was made anew."""
        self.standing.left(claim)
        if not self._unconfirmed:
            # It was this fleet's until now, so the number is this host's up to the fence.
            self.fenced = True
            return claim
        self._fence.close()
        self._unconfirmed = False
        return None

    def _usable(self, meta: Meta | None) -> bool:
        claim = self._fence.claim
        if meta is None and claim is not None:
            # A number of a fleet that is made anew must not begin before this host's has ended.
            self.standing.wiped(claim)
            return False
        if meta is None:
            self.standing.uninitialised()
            return False
        if meta.epoch != self._terms.epoch:
            self._fence.close()
            self.standing.of_another_epoch(meta.epoch)
            return False
        return True

    async def _renew(self, engine: Coordinator, claim: Claim) -> float:
        number, attempt = claim.number, self._attempt
        found = self._found or await self._timed(engine.read(number))
        record = None if found is None else found.record
        if found is None:
            self.meta = await self._timed(engine.meta())
            if self.meta is None or self.meta.id != claim.namespace:
                # The next step says what became of the fleet.
                return 0.0
        if attempt is not None and record is not None and record.claim == attempt.token:
            # A lost answer: the new token is in force. Its until is confirmed by the next write.
            claim = replace(claim, token=attempt.token)
            self._attempt, self._unconfirmed = None, False
        elif record is not None and not claiming.is_ours(record, claim):
            copied = self._unconfirmed
            if copied:
                # The other host may have this very claim, of a copy of the state that this host
                # has started with. Then it uses the same ticks.
                self._fence.close()
                self._moved()
            self.fenced, self._unconfirmed, self._attempt, self._found = True, False, None, None
            self.standing.fenced(claim, record, self._holder, copied=copied)
            return 0.0
        if claiming.is_forgotten(record, claim):
            self.standing.forgotten(number)
        steady, at = self._steady(), self._read().now
        until = max(steady + self._terms.window, claim.until)
        if record is None or self._unconfirmed:
            token = attempt.token if attempt is not None else self._token()
            # The same one until it is confirmed, because an earlier write may still arrive.
            self._attempt = _Attempt(number, token, claim.begin)
            written, _ = claiming.claimed(
                record, token=token, until=until, holder=self._holder, now=at
            )
        else:
            written = claiming.renewed(record, until=until, now=at)
        await self._write(engine, number, written, found)
        self._hold(claiming.confirmed(claim.namespace, number, written, claim.begin))
        self.standing.renewals += 1
        return 0.0

    async def _find(self, engine: Coordinator, meta: Meta) -> float:
        """Claim a number; return 0 once there is one."""
        if self._attempt is not None:
            attempt = self._attempt
            found = await self._timed(engine.read(attempt.number))
            if found is not None and found.record.claim == attempt.token:
                at = self._read().now
                until = self._steady() + self._terms.window
                written = claiming.renewed(found.record, until=until, now=at)
                await self._write(engine, attempt.number, written, found)
                await self._take(
                    claiming.confirmed(meta.id, attempt.number, written, attempt.begin)
                )
                return 0.0
            self._attempt = None
        span = Span.of(meta, self._terms)
        numbers = span.from_a_random_place(self._random)
        for where in seeking.PLACES:
            candidates = await self._timed(
                seeking.listed(
                    where,
                    engine,
                    span,
                    numbers,
                    had=self._fence.had,
                    steady=self._steady(),
                    hold=self._terms.hold,
                )
            )
            for number, found in candidates[:TRIES]:
                if await self._claim(engine, meta, number, found):
                    return 0.0
            if len(candidates) > TRIES:
                return self._random.uniform(0, AGAIN_SECONDS)
        self.standing.say(
            "full",
            f"no worker number of {span.low} to {span.high} is free; uuidd workers list"
            f" {self._terms.url} shows who has them",
        )
        return self._random.uniform(1, 2) * LOOK_SECONDS

    async def _claim(
        self, engine: Coordinator, meta: Meta, number: int, found: Found | None
    ) -> bool:
        """Try to claim a number as it was read; return whether it is this host's now."""
        steady = self._steady()
        written, begin = claiming.claimed(
            None if found is None else found.record,
            token=self._token(),
            until=steady + self._terms.window,
            holder=self._holder,
            now=self._read().now,
        )
        if begin > steady + seeking.FAR:
            return False
        self._attempt = _Attempt(number, written.claim, begin)
        try:
            await self._write(engine, number, written, found)
        except Changed:
            # Another host came first.
            self._attempt = None
            return False
        await self._take(claiming.confirmed(meta.id, number, written, begin))
        return True

    async def _write(
        self, engine: Coordinator, number: int, record: Record, found: Found | None
    ) -> None:
        """Write a record over the one that was found, and remember its version."""
        self._found = None
        version = await self._timed(
            engine.write(number, record, None if found is None else found.version)
        )
        self._found, self._attempt = Found(record, version), None

    def _steady(self) -> int:
        at = self._read()
        return self._timelines.steady.read(now=at.now, elapsed=at.elapsed)

    async def _timed(self, question: Awaitable[_Answer]) -> _Answer:
        begun, drops = trio.current_time(), self._drops
        answer = await question
        self.standing.answered(trio.current_time() - begun)
        if drops != self._drops:
            # The claim that was asked about is not this host's alone any more.
            raise Changed
        return answer

    async def _take(self, claim: Claim) -> None:
        """Begin to use a number that was claimed, once a restart would go on with it."""
        self._fence.keep(claim)
        self._fence.had = None
        self.fenced = False
        with trio.move_on_after(SAVE_SECONDS):
            await self._saved()
        self.standing.claimed(claim)
        self._use(claim)

    def _hold(self, claim: Claim) -> None:
        """Use what a renewal has confirmed."""
        self._use(claim)
        # So that a start without the engine goes on up to here.
        self._save()

    def _use(self, claim: Claim) -> None:
        self._fence.hold(claim)
        self._unconfirmed = False
        self.standing.held(claim)
        # Hosts that were started together, as after a power cut, do not all ask at once for ever.
        self._sooner = self._random.randrange(self._terms.window // SPREAD + 1)
        self._moved()
