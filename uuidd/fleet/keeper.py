"""Keeps this host's worker number in a fleet: claims it, renews the claim, and lets it go.

Theory of operation

1. One coroutine goes round: it waits until its claim is due, reads the namespace, and renews the
   claim, or claims a number if it has none. The claim of a state is due at once. It asks the engine
   one question at a time, and after one without an answer it begins anew. Nothing else of the
   daemon waits for it: only Snowflakes look at the fence (core/timeline/fence.py), which the
   coroutine moves. What to write is decided in rules.py.
2. A start first asks the engine to confirm the claim of its state under a new token. So of two
   hosts that start with a copy of one state folder, one goes on, and the other takes another
   number; with the old token both would renew it. If the engine cannot be asked, or is silent for
   RESUME_SECONDS, the host goes on without it, up to the stored *until*. Then both copies use the
   same ticks until the engine answers. The machine-id prevents that: a state of another one is not
   used.
3. A number that was claimed is used once the claim is saved. So a host that has made a Snowflake
   goes on with its number after a crash, too; otherwise it would make none while the engine is
   down.
4. A claim is due when half of its window is over, or a little before, so that hosts which started
   together do not all ask at once. Until then the host has no connection. The register is read, and
   written if it has this host's token, also after a lost answer. Each confirmed write moves the
   fence to the value that was written. What a read shows never moves the fence, for that write may
   be an older one.
5. A host whose number another one has taken (it was silent for longer than *until* and the hold)
   goes on with it below the confirmed *until*, where it is still its own, and claims another. It
   closes the fence at once if the other may have started with a copy of its state, which has the
   same *until*.
6. While all numbers are taken, a host looks at all registers again and again, until one was let go
   or is due. The more registers there are, the longer it waits between two looks: if hundreds of
   hosts looked at a thousand registers each second, the engine would have no time for renewals.
7. A stop first looks whether the engine answers. If so, the state is saved without the claim, and
   then the register says how far this host got, so that another one can have the number at once.
   Were the register written first, the next start could go on with a number of another host. If the
   engine does not answer, the claim stays in the state, and the next start goes on with it.
8. When this machine was cloned, its copy has the same claim and the same token, also of a claim
   that is still to be confirmed. So the claim is dropped at once, and the coroutine is cancelled,
   which then claims another number. An answer that has come by then counts for nothing: it would
   open the fence again.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import replace
from math import inf
from random import Random
from typing import Any, TypeVar

import trio

from uuidd.core.ids import times
from uuidd.core.ids.ticks import TICKS_PER_SECOND
from uuidd.core.timeline.fence import Claim
from uuidd.core.timeline.timelines import Reading, Timelines
from uuidd.fleet import rules
from uuidd.fleet.address import Address, Fleet
from uuidd.fleet.engines import Changed
from uuidd.fleet.record import Holder, Meta, Record, new_token
from uuidd.fleet.registers import Registers, connect
from uuidd.fleet.standing import Standing
from uuidd.refused import Refused

RETRY = (0.1, 5.0)
"""Seconds to the next question after one without an answer: the first time, and the most.

After other hosts came first, it is up to the first of them."""

RESUME_SECONDS = 0.5
"""How long a start waits for the engine before it uses the claim of its state, unconfirmed.

Requests for Snowflakes wait longer than that."""

LOOK_SECONDS = 5.0
"""Between two looks at the clock, or at a fleet that is not initialised."""

UNTRUSTED_SECONDS = 1.0
"""Between two looks at a clock that is not trusted."""

SPREAD = 8
"""A claim is renewed up to this part of the window before half of it is over, at random."""

SAVE_SECONDS = 2.0
"""How long a number that was claimed waits for the save that holds the claim."""

TRIES = 4
"""How many numbers are tried before all registers are read, which others may change meanwhile.

In most fleets one of the first is free."""

FULL_SECONDS = (1.0, 2.0)
"""Between two looks at a full fleet of up to FEW registers, at random."""

FEW = 64
"""For each so many registers in a full fleet, a host waits FULL_SECONDS between two looks."""

STOP_SECONDS = 1.0
"""How long a stop waits to learn whether the engine answers, also what was just asked."""

WRITE_SECONDS = 1.5
"""How long it waits for the release."""

_Answer = TypeVar("_Answer")

log = logging.getLogger("uuidd")


class Keeper:
    """Keeps the fence of *timelines* for *holder*, by a register of *fleet*.

    *read* reads the clock, *save* asks for a save of the state, which holds the claim, and *saved*
    waits for one that begins from then on. *random* decides where in the fleet to begin to look for
    a number, and spreads the hosts over time.
    """

    def __init__(
        self,
        fleet: Fleet,
        timelines: Timelines,
        read: Callable[[], Reading],
        save: Callable[[], None],
        saved: Callable[[], Awaitable[None]],
        holder: Holder,
        *,
        connect: Callable[[Address], AbstractAsyncContextManager[Registers]] = connect,
        random: Random | None = None,
    ) -> None:
        self._fleet = fleet
        self._window = int(fleet.window * TICKS_PER_SECOND)
        self._connect = connect
        self._timelines = timelines
        self._fence = timelines.fence
        self._read = read
        self._save = save
        self._saved = saved
        self._holder = holder
        # It only spreads the hosts over the numbers.
        self._random = random or Random()  # noqa: S311
        # The claim until another host has its number, and the tick at which to renew it, which is
        # None before a write of it was confirmed.
        self._claim = self._fence.claim
        self._due: int | None = None
        # A claim that was written without an answer so far: the register tells if it is there.
        self._attempt: Claim | None = None
        self._retry = RETRY[0]
        self._not_before = -inf
        self._work, self._round, self._left = trio.CancelScope(), trio.CancelScope(), trio.Event()
        # Who waits for the fence, and the coroutine while it pauses.
        self._moved, self._pausing = trio.lowlevel.ParkingLot(), trio.lowlevel.ParkingLot()
        self._release: tuple[Claim, Record] | None = None
        self.standing = Standing(self._fence, fleet, self._steady)

    async def run(self) -> None:
        """Keep the number until ``prepare_stop``, and the connection until this is cancelled."""
        try:
            async with (
                self._connect(self._fleet.address) as self._registers,
                trio.open_nursery() as nursery,
            ):
                nursery.start_soon(self._resume_in_time)
                with self._work:
                    while True:
                        with trio.CancelScope() as self._round:
                            pause = await self._go_round()
                            with trio.move_on_after(pause):
                                await self._pausing.park()
                self._left.set()
                await trio.sleep_forever()
        except Refused as refused:
            # A file that was there at the start is not there any more.
            self._resume()
            self.standing.say("none", str(refused))

    def dropped(self, until: float) -> None:
        """Claim another number, from the time *until* on: a copy of this machine has the last one.

        The fence is closed already.
        """
        self._round.cancel()
        self._not_before = until
        self._lose()
        self.standing.say(
            "claiming", "this machine was cloned, and another worker number is being claimed"
        )

    async def renewed(self) -> None:
        """Wait until the fence has changed."""
        if self.standing.state == "held":
            # The host slept past the fence. Trio's clock, by which the next look is timed, did too.
            self._pausing.unpark_all()
        await self._moved.park()

    async def prepare_stop(self) -> None:
        """End the coroutine, and give up the claim if the engine answers.

        Call it when nobody is served. The state that is saved next is without the claim then, and
        ``release`` has to follow. A number that another host has is given up in any case.
        """
        self._work.cancel()
        with trio.move_on_after(STOP_SECONDS):
            await self._left.wait()
            if (claim := self._claim) is not None:
                try:
                    found = await self._registers.read(claim.number)
                except Exception as error:
                    log.debug("no answer at the stop: %s", error)
                    return
                if found is not None and rules.is_ours(found, claim):
                    self._release = claim, found
            self._fence.close()
            self._lose()

    async def release(self, *, saved: bool) -> None:
        """Let the number go, so that another host can have it; *saved* is whether the state was.

        Nothing is written if it was not: the state that still stands has the claim, and the next
        start may go on with it.
        """
        if self._release is None:
            return
        claim, found = self._release
        if not saved:
            log.warning("not released: worker=%d (the state could not be saved)", claim.number)
            return
        reached = self._timelines.steady.next
        record = rules.released(found, claim, reached=reached, now=self._read().now)
        why = f"no answer within {WRITE_SECONDS:g} s"
        with trio.move_on_after(WRITE_SECONDS):
            try:
                await self._registers.write(claim.number, record, found)
                log.info("released: worker=%d until=%s", claim.number, times.text(record.until))
                return
            except Changed:
                why = "its register has changed"
            except Exception as error:
                why = str(error)
        log.warning("not released: worker=%d (%s)", claim.number, why)

    def status(self) -> dict[str, Any]:
        """Return what ``status`` shows of the number. Ticks are ints, spans are seconds."""
        return self.standing.status(lost=self._claim is None)

    # --- the coroutine

    async def _go_round(self) -> float:
        """Claim a number, or renew the claim if that is due; return the pause after that."""
        try:
            if self._due is None:
                await trio.sleep_until(self._not_before)
                if withheld := self._timelines.steady.withheld:
                    self.standing.say("claiming", withheld)
                    return UNTRUSTED_SECONDS
            elif (left := self._due - self._steady()) > 0:
                self._registers.rest()
                return min(left / TICKS_PER_SECOND, LOOK_SECONDS)
            if (meta := await self._namespace()) is None:
                return LOOK_SECONDS
            if self._claim is None:
                return await self._find(meta)
            await self._renew(self._claim)
            return 0.0
        except Changed:
            return self._random.uniform(0, RETRY[0])
        except Exception as error:
            self._resume()
            self.standing.away(str(error))
            pause, self._retry = self._retry, min(2 * self._retry, RETRY[1])
            return pause

    async def _namespace(self) -> Meta | None:
        """Return the namespace, None if there is none that this daemon can be in.

        A claim of another namespace is left.
        """
        meta = await self._ask(self._registers.meta())
        if meta is None:
            self._resume()
            self.standing.without_namespace()
            return None
        if meta.epoch != self._timelines.epoch:
            self._fence.close()
            self._lose()
            self.standing.of_another_epoch(meta.epoch, self._timelines.epoch)
            return None
        if self._claim is not None and self._claim.namespace != meta.id:
            # The URL names another fleet, or it was made anew.
            self.standing.left(self._claim)
            self._lose()
        self.standing.namespace = meta.id
        return meta

    async def _renew(self, claim: Claim) -> None:
        """Write a later *until*; the first time after a start, under a new token."""
        attempt, is_first = self._attempt, self._due is None
        record = await self._ask(self._registers.read(claim.number))
        if attempt is not None and rules.is_ours(record, attempt):
            # A lost answer: the new token is in force. Its until is confirmed by the next write.
            claim = attempt
        elif record is not None and not rules.is_ours(record, claim):
            self.standing.fenced(claim, record, self._holder, copied=is_first)
            self._lose()
            return
        if record is None or record.until < claim.until:
            self.standing.forgotten(claim.number)
        if record is None or is_first:
            # The same token until it is confirmed, because an earlier write may still arrive.
            claim = replace(claim, token=new_token() if attempt is None else attempt.token)
        claim = await self._write(claim, record)
        if self._fence.number is None:
            self.standing.began("resumed", claim)
        self._use(claim)
        # So that a start without the engine goes on up to here.
        self._save()
        self.standing.renewals += 1

    def _lose(self) -> None:
        """Use the number up to the fence only, and claim another."""
        if self._due is None:
            # Another host may have this very claim, of a copy of the state that this host has
            # started with. Then it uses the same ticks.
            self._fence.close()
        self._claim = self._attempt = self._due = None

    async def _find(self, meta: Meta) -> float:
        """Claim a number, if one is free; return the pause after that. Raises Changed."""
        if (attempt := self._attempt) is not None:
            found = await self._ask(self._registers.read(attempt.number))
            if rules.is_ours(found, attempt):
                await self._take(attempt, found)
                return 0.0
            self._attempt = None
        low, high = max(meta.low, self._fleet.low), min(meta.high, self._fleet.high)
        span, hold = range(low, high + 1), int(self._fleet.hold * TICKS_PER_SECOND)
        numbers, had = self._random.sample(span, len(span)), self._fence.had
        if had is None and self.standing.state != "full":
            guesses = [(number, None) for number in numbers[:TRIES]]
            if await self._take_one(meta, guesses):
                return 0.0
        registers = await self._ask(self._registers.all())
        free = rules.candidates(registers, numbers, steady=self._steady(), hold=hold, had=had)
        if await self._take_one(meta, free[:TRIES]):
            return 0.0
        if free:
            # Others came first, or the fleet was made anew.
            raise Changed
        self.standing.full(low, high, rules.next_due(registers, numbers, hold=hold))
        self._retry = RETRY[0]
        return self._random.uniform(*FULL_SECONDS) * max(1, len(registers) / FEW)

    async def _take_one(self, meta: Meta, tried: Sequence[rules.Candidate]) -> bool:
        """Claim the first number that is still as it was read; return whether there is one."""
        for number, found in tried:
            with suppress(Changed):
                await self._take(rules.begun(meta.id, number, new_token(), found), found)
                return True
        return False

    async def _take(self, claim: Claim, found: Record | None) -> None:
        """Claim a number, and begin to use it once a restart would go on with it."""
        claim = await self._write(claim, found)
        self._fence.keep(claim)
        self._fence.had = None
        with trio.move_on_after(SAVE_SECONDS):
            await self._saved()
        await trio.lowlevel.checkpoint_if_cancelled()
        self.standing.began("claimed", claim)
        self._use(claim)

    async def _write(self, claim: Claim, found: Record | None) -> Claim:
        """Write *claim* for a window from now over what was *found*; return what is confirmed."""
        now, until = self._read().now, self._steady() + self._window
        written = rules.written(found, claim, until=until, holder=self._holder, now=now)
        self._attempt = claim
        await self._ask(self._registers.write(claim.number, written, found))
        self._claim = claim = rules.confirmed(claim, written)
        self._attempt, self._retry = None, RETRY[0]
        # Hosts that were started together, as after a power cut, do not all ask at once for ever.
        sooner = self._random.randrange(self._window // SPREAD + 1)
        self._due = claim.until - self._window // 2 - sooner
        return claim

    def _use(self, claim: Claim) -> None:
        """Move the fence to what a write has confirmed."""
        self._fence.hold(claim)
        self.standing.held(claim)
        self._moved.unpark_all()

    async def _resume_in_time(self) -> None:
        await trio.sleep(RESUME_SECONDS)
        self._resume()

    def _resume(self) -> None:
        """Use the claim of the state, if it is not confirmed yet: the engine may be silent."""
        if self._claim is not None and self._due is None and self._fence.number is None:
            self._fence.hold(self._claim)
            self.standing.began("resumed", self._claim)
            self._moved.unpark_all()

    async def _ask(self, question: Awaitable[_Answer]) -> _Answer:
        """Return an answer of the registers, unless this machine was cloned meanwhile."""
        begun = trio.current_time()
        answer = await question
        await trio.lowlevel.checkpoint_if_cancelled()
        self.standing.answered(trio.current_time() - begun)
        return answer

    def _steady(self) -> int:
        """Return the tick of the steady clock."""
        at = self._read()
        return self._timelines.steady.read(now=at.now, elapsed=at.elapsed)
