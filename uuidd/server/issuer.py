"""Gives out blocks: at once where it can, else after a bounded wait."""

from __future__ import annotations

from collections.abc import Callable

import trio

from uuidd.core.ids.timebased import TICKS_PER_SECOND
from uuidd.core.timeline import Block, NoneFree, SteadyBlock
from uuidd.core.timeline.steady import Ahead
from uuidd.core.timeline.timelines import Reading, Timelines
from uuidd.core.timeline.utc import Closed, NeedsSave
from uuidd.core.wire.methods import RefusedError
from uuidd.server.limits import ROOM_SECONDS, SAVE_SECONDS
from uuidd.server.saver import Saver

MUST_WAIT = (NoneFree, NeedsSave, Closed, Ahead)
"""What ``take`` raises when only ``take_soon`` may help, or can say why not."""


class Issuer:
    """Hands out blocks of *timelines*, whose state *saver* saves. *read* reads the clock."""

    def __init__(self, timelines: Timelines, saver: Saver, read: Callable[[], Reading]) -> None:
        self._timelines = timelines
        self._saver = saver
        self._read = read

    def take(self, timeline: str, count: int, whole: bool) -> Block | SteadyBlock:
        """Give out a block at once. Raises one of MUST_WAIT, and changes nothing."""
        block = self._timelines.take(timeline, count, at=self._read(), whole=whole)
        if self._saver.idle:
            self._saver.want()
        return block

    @property
    def worker(self) -> int | None:
        """The host's machine number for Snowflakes."""
        return self._timelines.worker

    async def take_soon(self, timeline: str, count: int, whole: bool) -> Block | SteadyBlock:
        """Give out a block, waiting for room 0.2 s at most, for a save or for UTC 0.8 s at most.

        When no save came utc turns volatile. Raises RefusedError: ``busy`` when there was no room,
        ``unavailable`` when the daemon is stopping and, of steady, when no save came or it is too
        far ahead of UTC.
        """
        begun = trio.current_time()
        no_room: float | None = None
        while True:
            try:
                return self.take(timeline, count, whole)
            except NoneFree as none:
                # From here on: the time that a save took is none that there was no room in.
                no_room = no_room or trio.current_time() + ROOM_SECONDS
                wait = none.wait / TICKS_PER_SECOND
                held = self._held() if timeline == "steady" else ""
                if trio.current_time() + wait > (begun + SAVE_SECONDS if held else no_room):
                    raise _no_room(count, held) from None
                await trio.sleep(wait)
            except NeedsSave:
                with trio.move_on_at(begun + SAVE_SECONDS):
                    await self._saver.settled()
                if trio.current_time() >= begun + SAVE_SECONDS:
                    self._do_without_save(timeline)
            except Ahead as ahead:
                raise RefusedError("unavailable", _ahead(ahead)) from None
            except Closed:
                raise RefusedError("unavailable", "the daemon is stopping; ask again") from None

    def _held(self) -> str:
        """Give why the steady timeline stands still, "" if it does not."""
        steady, at = self._timelines.steady, self._read()
        if steady.held_until > at.now:
            seconds = (steady.held_until - at.now) / TICKS_PER_SECOND
            return (
                f"the state was lost, so steady ids begin in {seconds:.1f} s, past all that may"
                " have been given out before"
            )
        lead = steady.lead(now=at.now, elapsed=at.elapsed)
        if steady.rollback == "wait" and lead > 0:
            return f"UTC stepped back, and steady ids wait {lead / TICKS_PER_SECOND:.3f} s for it"
        return ""

    def _do_without_save(self, timeline: str) -> None:
        cause = self._saver.trouble or "it is still under way"
        if timeline == "utc":
            self._timelines.utc.turn_volatile(f"no save within {SAVE_SECONDS:g} s ({cause})")
            return
        raise RefusedError(
            "unavailable",
            f"the state could not be saved within {SAVE_SECONDS:g} s ({cause}), and steady ids wait"
            " for that; it is tried on and on",
        )


def _no_room(count: int, held: str) -> RefusedError:
    if held:
        return RefusedError("unavailable", held)
    return RefusedError(
        "busy", f"{count} ticks are not free within {ROOM_SECONDS} s; ask for fewer, or again later"
    )


def _ahead(ahead: Ahead) -> str:
    lead = f"the steady timeline is {ahead.lead / TICKS_PER_SECOND:.3f} s ahead of UTC"
    if not ahead.most:
        return f"{lead}, which stepped back, and --rollback refuse gives nothing until UTC is there"
    return (
        f"{lead}, and --max-lead is {ahead.most / TICKS_PER_SECOND:g} s; it is on again once UTC"
        " is there, or after uuidd --reset-steady"
    )
