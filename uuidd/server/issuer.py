"""Gives out blocks: at once where it can, else after a bounded wait."""

from __future__ import annotations

from collections.abc import Callable

import trio

from uuidd.core.ids.timebased import TICKS_PER_SECOND
from uuidd.core.timeline import Block, NoneFree
from uuidd.core.timeline.utc import Closed, NeedsSave, Utc
from uuidd.core.wire.methods import RefusedError
from uuidd.server.limits import ROOM_SECONDS, SAVE_SECONDS
from uuidd.server.saver import Saver

MUST_WAIT = (NoneFree, NeedsSave, Closed)
"""What ``take`` raises when only ``take_soon`` may help."""


class Issuer:
    """Hands out blocks of *timeline*, whose state *saver* saves. *now* reads UTC in ticks."""

    def __init__(self, timeline: Utc, saver: Saver, now: Callable[[], int]) -> None:
        self._timeline = timeline
        self._saver = saver
        self._now = now

    def take(self, count: int, *, whole: bool) -> Block:
        """Give out a block at once. Raises one of MUST_WAIT, and changes nothing."""
        block = self._timeline.take(count, now=self._now(), whole=whole)
        if self._saver.idle:
            self._saver.want()
        return block

    async def take_soon(self, count: int, *, whole: bool) -> Block:
        """Give out a block, waiting for room 0.2 s at most, for a save 0.8 s at most.

        When no save came the timeline turns volatile. Raises RefusedError: ``busy`` when there was
        no room, ``unavailable`` when the daemon is stopping.
        """
        no_room: float | None = None
        no_save = trio.current_time() + SAVE_SECONDS
        while True:
            try:
                return self.take(count, whole=whole)
            except NoneFree as none:
                # From here on: the time that a save took is none that there was no room in.
                no_room = no_room or trio.current_time() + ROOM_SECONDS
                wait = none.wait / TICKS_PER_SECOND
                if trio.current_time() + wait > no_room:
                    raise RefusedError(
                        "busy",
                        f"{count} ticks are not free within {ROOM_SECONDS} s;"
                        " ask for fewer, or again later",
                    ) from None
                await trio.sleep(wait)
            except NeedsSave:
                with trio.move_on_at(no_save):
                    await self._saver.settled()
                if trio.current_time() >= no_save:
                    cause = self._saver.trouble or "it is still under way"
                    self._timeline.turn_volatile(f"no save within {SAVE_SECONDS:g} s ({cause})")
            except Closed:
                raise RefusedError("unavailable", "the daemon is stopping; ask again") from None
