"""Claims a worker number of a fleet and lengthens the claim: one step at a time.

See keeper.py, which takes the steps, for how it works. What to write to a register is decided in
fleet/claiming.py; this asks the engine, and moves the fence after a write that was confirmed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from math import inf
from random import Random

import trio

from uuidd.core.ids.ticks import TICKS_PER_SECOND
from uuidd.core.timeline.fence import Claim
from uuidd.core.timeline.timelines import Reading, Timelines
from uuidd.fleet import claiming
from uuidd.fleet.claiming import Holder
from uuidd.fleet.coordinator import Coordinator
from uuidd.fleet.finding import Finder
from uuidd.fleet.questions import Attempt, Questions
from uuidd.fleet.record import Meta, new_token
from uuidd.fleet.standing import Standing, Terms

LOOK_SECONDS = 5.0
"""Between two looks at the clock, or at a fleet that is not initialised."""

SPREAD = 8
"""A claim is renewed up to this part of the window before half of it is over, at random."""

SAVE_SECONDS = 2.0
"""How long a number that was claimed waits for the save that holds the claim."""


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
        self._save = save
        self._saved = saved
        self._holder = holder
        self._moved = moved
        self._random = random
        self._token = token
        self._questions = Questions(timelines, read)
        self._sooner = 0
        self._not_before = -inf
        self._unconfirmed = self._fence.claim is not None
        self.meta: Meta | None = None
        self.fenced = False
        self.standing = Standing(self._fence, terms, name, self._questions.steady)
        self._questions.answered = self.standing.answered
        self._finder = Finder(
            self._questions,
            self._fence,
            terms,
            self.standing,
            holder,
            random=random,
            token=token,
        )

    def resume(self) -> None:
        """Use the claim of the state, if it is not confirmed yet: the engine may be silent."""
        claim = self._fence.claim
        if self._unconfirmed and claim is not None and self._fence.number is None:
            self._fence.hold(claim)
            self.standing.resumed(claim)
            self._moved()

    def drop(self, until: float) -> None:
        """Have no claim any more, and claim another number from the time *until* on."""
        self._questions.drop()
        self._not_before = until
        self._unconfirmed = self.fenced = False
        self.standing.dropped()

    def forget_found(self) -> None:
        """Read the register again before the next write to it."""
        self._questions.found = None

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
        steady = self._questions.steady()
        if claim is not None and not self._unconfirmed and not self.fenced:
            left = claim.until - steady - self._terms.window // 2 - self._sooner
            if left > 0:
                return min(left / TICKS_PER_SECOND, LOOK_SECONDS)
        meta = self.meta
        if meta is None or claim is None:
            meta = await self._questions.timed(engine.meta())
        if not self._usable(meta):
            return LOOK_SECONDS
        assert meta is not None  # noqa: S101 - one that is missing is not usable
        self.meta = meta
        if claim is not None and claim.namespace != meta.id:
            claim = self._leave(claim)
        if claim is not None and not self.fenced:
            return await self._renew(engine, claim)
        new = await self._finder.find(engine, meta)
        if not isinstance(new, Claim):
            return new
        await self._take(new)
        return 0.0

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
        number, attempt = claim.number, self._questions.attempt
        found = self._questions.found or await self._questions.timed(engine.read(number))
        record = None if found is None else found.record
        if found is None:
            self.meta = await self._questions.timed(engine.meta())
            if self.meta is None or self.meta.id != claim.namespace:
                # The next step says what became of the fleet.
                return 0.0
        if attempt is not None and record is not None and record.claim == attempt.token:
            # A lost answer: the new token is in force. Its until is confirmed by the next write.
            claim = replace(claim, token=attempt.token)
            self._questions.attempt, self._unconfirmed = None, False
        elif record is not None and not claiming.is_ours(record, claim):
            copied = self._unconfirmed
            if copied:
                # The other host may have this very claim, of a copy of the state that this host
                # has started with. Then it uses the same ticks.
                self._fence.close()
                self._moved()
            self.fenced, self._unconfirmed = True, False
            self._questions.attempt = self._questions.found = None
            self.standing.fenced(claim, record, self._holder, copied=copied)
            return 0.0
        if claiming.is_forgotten(record, claim):
            self.standing.forgotten(number)
        steady, at = self._questions.steady(), self._questions.now()
        until = max(steady + self._terms.window, claim.until)
        if record is None or self._unconfirmed:
            token = attempt.token if attempt is not None else self._token()
            # The same one until it is confirmed, because an earlier write may still arrive.
            self._questions.attempt = Attempt(number, token, claim.begin)
            written, _ = claiming.claimed(
                record, token=token, until=until, holder=self._holder, now=at
            )
        else:
            written = claiming.renewed(record, until=until, now=at)
        await self._questions.write(engine, number, written, found)
        new = claiming.confirmed(claim.namespace, number, written, claim.begin)
        if self._fence.number is None:
            self.standing.resumed(new)
        self._hold(new)
        self.standing.renewals += 1
        return 0.0

    async def _take(self, claim: Claim) -> None:
        """Begin to use a number that was claimed, once a restart would go on with it."""
        self._fence.keep(claim)
        self._fence.had = None
        self.fenced = False
        with trio.move_on_after(SAVE_SECONDS), self._questions.undropped():
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
