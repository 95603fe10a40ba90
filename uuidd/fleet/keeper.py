"""Keeps this host's worker number in a fleet: claims it, renews the claim, and lets it go.

Theory of operation

1. One task asks the engine, one question at a time. Nothing else of the daemon waits for it: only
   Snowflakes look at the fence (core/timeline/fence.py), which the task moves. What to write is
   decided in fleet/claiming.py.
2. A start first asks the engine to confirm the claim of its state under a new token. So of two
   hosts that start with a copy of one state folder, one goes on, and the other takes another
   number. If the engine cannot be asked, or is silent for RESUME_SECONDS, the host goes on without
   it, up to the stored *until*. Then both copies use the same ticks until the engine answers. The
   machine-id prevents that: a state of another one is not used.
3. A number that was claimed is used once the claim is saved. So a host that has made a Snowflake
   goes on with its number after a crash, too.
4. A claim is renewed when half of its window is over, or a little before, so that hosts which
   started together do not all ask at once. Each confirmed write moves the fence to the value that
   was written. After a lost answer the register is read, and written again if it has this host's
   token; what a read shows never moves the fence.
5. A host whose number another one has taken (it was silent for longer than *until* and the hold)
   goes on with it below the confirmed *until*, where it is still its own, and claims another.
6. While all numbers are taken, a host waits for one to be let go or to fall due (waiting.py).
7. A stop first looks whether the engine answers. If so, the state is saved without the claim, and
   then the register says how far this host got, so that another one can have the number at once.
   If not, the claim stays in the state, and the next start goes on with it.
8. When this machine was cloned, its copy has the same claim and the same token. So the claim is
   dropped at once, and another number is claimed. An answer that comes after that counts for
   nothing.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from random import Random
from typing import Any

import trio

from uuidd.core.timeline.timelines import Reading, Timelines
from uuidd.fleet.address import AddressError
from uuidd.fleet.claimant import Claimant
from uuidd.fleet.claiming import Holder
from uuidd.fleet.coordinator import Changed, Coordinator, reason
from uuidd.fleet.finding import AGAIN_SECONDS
from uuidd.fleet.release import Release
from uuidd.fleet.standing import Standing, Terms

RETRY = (0.1, 5.0)
"""Seconds to the next question after one without an answer: the first time, and the most."""

RESUME_SECONDS = 0.5
"""How long a start waits for the engine before it uses the claim of its state, unconfirmed.

Requests for Snowflakes wait longer than that."""

STOP_SECONDS = 0.5
"""How long a stop waits for the task, which may just be asking."""


class Keeper:
    """Keeps the fence of *timelines* by an engine, which *connect* connects to; *name* is its name.

    *read* reads the clock, *save* asks for a save of the state, which holds the claim, and *saved*
    waits for one that begins from then on. *random* decides where in the fleet to begin to look for
    a number.
    """

    def __init__(
        self,
        connect: Callable[[], AbstractAsyncContextManager[Coordinator]],
        terms: Terms,
        timelines: Timelines,
        read: Callable[[], Reading],
        save: Callable[[], None],
        saved: Callable[[], Awaitable[None]],
        holder: Holder,
        *,
        name: str,
        random: Random | None = None,
    ) -> None:
        self._connect = connect
        self._timelines = timelines
        self._read = read
        self._claimant = Claimant(
            terms,
            timelines,
            read,
            save,
            saved,
            holder,
            name=name,
            moved=self._note_moved,
            # It only spreads the hosts over the numbers.
            random=random or Random(secrets.randbits(64)),  # noqa: S311
        )
        self._engine: Coordinator | None = None
        self._going = trio.CancelScope()
        self._left = trio.Event()
        self._moved = trio.Event()
        self._wanted = trio.Event()
        self._release: Release | None = None

    @property
    def standing(self) -> Standing:
        """How the host stands with its number."""
        return self._claimant.standing

    async def run(self) -> None:
        """Keep the number until ``prepare_stop``, and the connection until this is cancelled."""
        try:
            async with self._connect() as self._engine, trio.open_nursery() as nursery:
                nursery.start_soon(self._resume_in_time)
                with self._going:
                    await self._keep(self._engine)
                self._left.set()
                await trio.sleep_forever()
        except AddressError as error:
            # A file that was there at the start is not there any more.
            self._claimant.resume()
            self.standing.say("none", str(error))
        finally:
            self._left.set()

    def dropped(self, until: float) -> None:
        """Claim another number, from the time *until* on: a copy of this machine has the last one.

        The fence is closed already.
        """
        self._claimant.drop(until)
        self._wanted.set()

    async def renewed(self) -> None:
        """Wait until the fence has changed."""
        if self.standing.state == "held":
            # The host slept past the fence. Trio's clock, by which the next look is timed, did too.
            self._wanted.set()
        await self._moved.wait()

    async def _keep(self, engine: Coordinator) -> None:
        retry = RETRY[0]
        while True:
            try:
                pause = await self._claimant.step(engine)
            except Changed:
                # The register is read again.
                self._claimant.forget_found()
                pause = AGAIN_SECONDS
            except Exception as error:
                self._claimant.forget_found()
                self._claimant.resume()
                self.standing.away(reason(error))
                pause, retry = retry, min(2 * retry, RETRY[1])
            else:
                retry = RETRY[0]
                self._claimant.resume()
            self._wanted = trio.Event()
            with trio.move_on_after(pause):
                await self._wanted.wait()

    async def _resume_in_time(self) -> None:
        await trio.sleep(RESUME_SECONDS)
        if not self._going.cancel_called:
            self._claimant.resume()

    async def prepare_stop(self) -> None:
        """End the task, and give up the claim if the engine answers; call it when nobody is served.

        The state that is saved next is without the claim then, and ``release`` has to follow.
        """
        self._going.cancel()
        with trio.move_on_after(STOP_SECONDS):
            await self._left.wait()
        if self._engine is not None and self._left.is_set():
            self._release = Release(self._engine, self._timelines.fence)
            await self._release.prepare(fenced=self._claimant.fenced)

    async def release(self, *, saved: bool) -> None:
        """Let the number go, so that another host can have it; *saved* is whether the state was."""
        if self._release is not None:
            reached = self._timelines.steady.next
            await self._release.write(reached=reached, now=self._read().now, saved=saved)

    def status(self) -> dict[str, Any]:
        """Return what ``status`` shows of the number. Ticks are ints, spans are seconds."""
        meta, fenced = self._claimant.meta, self._claimant.fenced
        return self.standing.status(None if meta is None else meta.id, fenced=fenced)

    def _note_moved(self) -> None:
        self._moved.set()
        self._moved = trio.Event()
