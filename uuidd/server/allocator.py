"""Gives out blocks: at once if possible, otherwise after a bounded wait.

Theory of operation

1. ``take`` gives out a block at once if that is possible. Nearly all requests end here. Otherwise
   the try has raised NotNow, and has changed nothing.
2. ``take`` then yields what to wait for, and tries again, until it has a block or refuses. Each
   subclass of NotNow says what has to happen before the next try: enough time has to pass
   (NoneFree), the user's account has to recover (OverShare), a save has to complete (NeedsSave).
3. Each wait is bounded. For free ticks it is ROOM_SECONDS, for a save or for UTC SAVE_SECONDS. A
   request that asks not to wait is refused as `must_wait` after SOON_SECONDS at most.
4. When no save comes in time, utc goes on with a volatile node, which needs no state. Steady has
   nothing like it, and is refused.
5. Shares keep users apart: one for single ticks of utc, one for whole blocks of utc, which come
   from other lanes, and one for steady. A user may have only so many requests waiting.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Generator
from dataclasses import dataclass
from functools import partial
from math import inf

import trio

from uuidd.core.ids.ticks import TICKS_PER_SECOND
from uuidd.core.timeline.generation import BLOCK_LANES
from uuidd.core.timeline.outcomes import (
    Block,
    Closed,
    NeedsSave,
    NeedsSwitch,
    NoneFree,
    NoNumber,
    NotNow,
    SteadyBlock,
    TooFarAhead,
)
from uuidd.core.timeline.timelines import Reading, Timelines
from uuidd.core.wire.methods import SAVE_SECONDS, RefusedError
from uuidd.server import events
from uuidd.server.fairness import OverShare, Pause, Shares, counting
from uuidd.server.saver import Saver
from uuidd.server.settings import ROOM_SECONDS, SOON_SECONDS, Limits

NO_NUMBER = (
    "this uuidd has no worker number, so it makes no Snowflakes; start it with --worker N, 0 to"
    " 1023, another on each host"
)

MOST_WAITING = 1024
"""Requests of one user that wait at the same time. Those that wait for a save all end with it, so
there may be more of them than of those that wait for ticks, which wake up again and again."""

LEAST_WAIT = 0.001
"""The shortest wait, in seconds, of a user whose share is used up."""


@dataclass(eq=False)
class Allocator:
    """Gives out blocks of *timelines*, whose state *saver* saves. *read* reads the clock.

    Each block is for a user, *uid*. While users want more ticks than there are, all have the same
    share of them. *renewed* waits until the fence of the worker number has changed, or is None.
    """

    _timelines: Timelines
    _saver: Saver
    _read: Callable[[], Reading]
    _limits: Limits
    _renewed: Callable[[], Awaitable[None]] | None

    def __post_init__(self) -> None:
        self._short, self._whole, self._steady = Shares(1), Shares(BLOCK_LANES - 1), Shares(1)
        # The requests of each user that wait for anything, and those that wait for ticks.
        self._waiting: Counter[int] = Counter()
        self._for_ticks: Counter[int] = Counter()

    def take(
        self,
        timeline: str,
        count: int,
        whole: bool,
        wait: bool = True,
        *,
        uid: int,
        in_turn: bool = False,
    ) -> Generator[Pause, None, Block | SteadyBlock]:
        """Give out a block, after 0.2 s of waiting for free ticks and 0.8 s for the rest, at most.

        When no save completes in time, utc goes on with a volatile node. Raises RefusedError:
        ``busy`` when not enough ticks became free, or at once when too many of the user's requests
        wait already, and ``unavailable`` when the daemon is stopping.
        Steady is ``unavailable`` too when no save completes in time (at once, if the last one has
        already failed for as long), when it is too far ahead of UTC, and while it is withheld.
        Snowflakes are refused too while there is no worker number for them, with ``no_worker_id``
        if there never was one, and else with ``unavailable``, after 0.8 s if there may soon be one.
        Without *wait* the error is ``must_wait`` instead of any wait of more than 0.05 s; then
        nothing was given out and nothing has changed. With *in_turn* the caller goes on in a turn
        of the user after a wait.
        """
        try:
            return self._take(timeline, count, whole, uid)
        except NotNow as first:
            # Without what it would keep in memory.
            none = first.with_traceback(None)
        waiting, most, what = self._waiting, MOST_WAITING, ""
        if isinstance(none, NoneFree):
            waiting, most, what = self._for_ticks, self._limits.waiting_per_uid, " for free ticks"
        if waiting[uid] >= most:
            raise _busy(f"uid {uid} has {most} requests waiting{what}, the most one user may have")
        with counting(self._waiting, uid):
            block = yield from self._waited_for(none, timeline, count, whole, uid, wait)
        if in_turn:
            yield None
        return block

    def _take(self, timeline: str, count: int, whole: bool, uid: int) -> Block | SteadyBlock:
        at = self._read()
        if at.elapsed >= self._saver.check_at:
            self._saver.check(at.elapsed)
        utc, shares = self._timelines.utc, self._steady
        if timeline == "utc":
            shares = self._whole if whole and count > 1 else self._short
        if shares.contended:
            shares.check(uid, at=at.elapsed)
        block: Block | SteadyBlock | None = None
        while block is None:
            try:
                if timeline == "utc":
                    block = utc.take(count, now=at.now, whole=whole)
                else:
                    fenced = timeline == "snowflake"
                    block = self._timelines.take_steady(count, at=at, whole=whole, fenced=fenced)
            except NeedsSwitch:
                utc.switch(now=at.now)
                events.openings(utc)
            except NoneFree:
                shares.draw(uid, asked=count, given=0, at=at.elapsed)
                raise
        if shares.contended or block.count < count:
            shares.draw(uid, asked=count, given=block.count, at=at.elapsed)
        shares.last = uid
        if self._saver.idle:
            self._saver.want()
        return block

    def _waited_for(
        self, none: NotNow, timeline: str, count: int, whole: bool, uid: int, wait: bool
    ) -> Generator[Pause, None, Block | SteadyBlock]:
        """Give out a block as ``take``, whose first try raised *none*."""
        now = trio.current_time()
        late = now + SAVE_SECONDS
        soon = inf if wait else now + SOON_SECONDS
        no_room: float | None = None
        while True:
            if isinstance(none, NoneFree):
                # Counted from here on: the time that a save took does not count as a lack of ticks.
                no_room = no_room or now + ROOM_SECONDS
                pause = none.wait / TICKS_PER_SECOND
                if isinstance(none, OverShare):
                    pause = max(pause, LEAST_WAIT)
                held = self._held(timeline)
                if now + pause > (late if held else no_room):
                    raise RefusedError("unavailable", held) if held else _no_room(none, count, uid)
                if now + pause > soon:
                    raise _must_wait(held or _room(none, count, uid, pause))
                with counting(self._for_ticks, uid):
                    yield partial(trio.sleep, pause)
            elif isinstance(none, NeedsSave):
                until = late
                if timeline != "utc" and self._saver.unsaved_since is not None:
                    # Other requests have already waited for it in vain, so this one need not.
                    until = min(until, self._saver.unsaved_since + SAVE_SECONDS)
                # Checked only now, after a try: a save may have succeeded at the last moment.
                if now >= until:
                    self._do_without_save(timeline)
                elif now >= soon:
                    raise _must_wait(self._unsaved())
                else:
                    yield partial(self._saver.settled_by, min(until, soon))
            elif isinstance(none, NoNumber):
                if self._renewed is None or now >= late:
                    raise self._no_number()
                if now >= soon:
                    raise _must_wait(self._timelines.fence.why)
                yield partial(_by, min(late, soon), self._renewed)
            else:
                raise _never(none)
            try:
                return self._take(timeline, count, whole, uid)
            except NotNow as again:
                none = again.with_traceback(None)
            now = trio.current_time()

    def _held(self, timeline: str) -> str:
        """Return why a timeline stands still, "" if it does not."""
        if timeline == "utc":
            return ""
        steady, fence, at = self._timelines.steady, self._timelines.fence, self._read()
        if steady.held_until > at.now:
            seconds = (steady.held_until - at.now) / TICKS_PER_SECOND
            return (
                f"the state was lost, so the steady kinds begin in {seconds:.1f} s, after all ids"
                " that may have been given out before"
            )
        lead = steady.lead(now=at.now, elapsed=at.elapsed) / TICKS_PER_SECOND
        if steady.rollback == "wait" and lead > 0:
            return f"UTC was set back, and the steady kinds wait {lead:.3f} s for it to catch up"
        ahead = fence.begin - steady.read(now=at.now, elapsed=at.elapsed)
        if timeline == "snowflake" and ahead > 0:
            return (
                f"worker number {fence.number} was used up to {ahead / TICKS_PER_SECOND:.3f} s"
                " ahead of this host's clock, and Snowflakes begin then; all other kinds go on"
            )
        return ""

    def _no_number(self) -> RefusedError:
        """Return why no Snowflakes can be made, though the steady timeline has ticks."""
        fence = self._timelines.fence
        code = "no_worker_id" if fence.number is None else "unavailable"
        return RefusedError(code, fence.why or NO_NUMBER)

    def _unsaved(self) -> str:
        """Return what keeps the state from being saved."""
        if cause := self._saver.trouble:
            return f"the state could not be saved ({cause}), and the daemon tries again"
        return f"a save of the state has taken {self._saver.under_way_seconds:.2f} s so far"

    def _do_without_save(self, timeline: str) -> None:
        """Let a volatile node serve; raise why that is not possible for a steady timeline."""
        late = f"within {SAVE_SECONDS:g} s ({self._saver.trouble or 'it is still under way'})"
        if timeline != "utc":
            raise RefusedError(
                "unavailable",
                f"the state could not be saved {late}, and v7, Snowflakes and the other steady"
                " kinds need this first; the daemon keeps trying",
            )
        self._timelines.utc.use_volatile(f"no save {late}")
        events.openings(self._timelines.utc)


async def _by(deadline: float, event: Callable[[], Awaitable[None]]) -> None:
    """Wait for *event*, but not past *deadline*."""
    with trio.move_on_at(deadline):
        await event()


def _never(none: NotNow) -> RefusedError:
    """Return why there is no block for which to wait."""
    why = "the daemon is stopping; try again" if isinstance(none, Closed) else str(none)
    if isinstance(none, TooFarAhead):
        lead, most = none.lead / TICKS_PER_SECOND, none.most / TICKS_PER_SECOND
        why = f"the steady timeline is {lead:.3f} s ahead of UTC, " + (
            f"and --max-lead is {most:g} s; it resumes when UTC catches up, or after uuidd"
            " --reset-steady"
            if most
            else "which was set back, and --rollback refuse gives out nothing until UTC catches up"
        )
    return RefusedError("unavailable", why)


def _no_room(none: NoneFree, count: int, uid: int) -> RefusedError:
    if isinstance(none, OverShare):
        return _busy(f"uid {uid} has used up its share of the ticks, one of {none.parts}")
    return _busy(f"{count} ticks will not be free within {ROOM_SECONDS} s")


def _room(none: NoneFree, count: int, uid: int, pause: float) -> str:
    if isinstance(none, OverShare):
        return f"uid {uid} has used up its share of the ticks, and has some again in {pause:.3f} s"
    return f"{count} ticks will be free in {pause:.3f} s"


def _must_wait(cause: str) -> RefusedError:
    return RefusedError("must_wait", f"{cause}; ask again with wait")


def _busy(cause: str) -> RefusedError:
    return RefusedError("busy", f"{cause}; ask for fewer, or try again later")
