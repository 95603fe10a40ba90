"""Answers the news that this machine was cloned: nothing is shared with the copy after it.

Theory of operation

1. Two copies of a running machine have the same memory: the same node, generation, claim, tokens
   and random bits, here and in all clients. What renews the daemon's part is ``Timelines.renew``;
   the clients' part ends by the page, whose epoch that moves on.
2. It is done at once, in the task that hears of the clone, before anything else is given out. The
   save comes after it, and nothing is given out from the new node before that has completed.
3. A false alarm must not cost more than a true one, and there may be many. So one renewal in SPAN
   is saved. Those that come sooner are joined: they renew the memory, which costs no save, and a
   volatile node serves until the next saved one, when SPAN is over.
4. The kernel's random generator may be the copy's too until the kernel has heard of the clone. So
   the clocks are mixed into what is drawn here, and each further signal draws anew.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator
from functools import partial
from math import inf
from typing import Any, NamedTuple

import trio

from uuidd.core.timeline.timelines import Reading, Timelines
from uuidd.core.wire.methods import SAVE_SECONDS, RefusedError
from uuidd.fleet.fences import shared_with_a_clone
from uuidd.server import events
from uuidd.server.entropy import Entropy, of_this_moment
from uuidd.server.fairness import Pause
from uuidd.server.saver import Saver

SPAN = 10.0
"""Seconds in which at most one renewal is saved: as often as a busy daemon saves anyway."""

FIXED = (
    "; the node is fixed, so the v1 and v6 of two clones differ in 6 bits only, and Flakes may"
    " be the same"
)
"""What the log adds with a fixed node, which no renewal changes."""

BY_HAND = "renew"
"""What ``status`` says of a clone that was told by a request."""

log = logging.getLogger("uuidd")


class Renewed(NamedTuple):
    """What a renewal did: how many *leases* it ended, and whether it is *saved* already."""

    leases: int
    saved: bool


class Clones:
    """Renews *timelines*, whose state *saver* saves, and drops what *entropy* has read ahead.

    *read* reads the clock. With *go_on*, a worker number that was set by hand is kept. *dropped* is
    called after each renewal, which drops a claimed number, with the time on trio's clock before
    which no other one is to be claimed.

    *noticed* counts the signals, *saved* the renewals that were saved, and *last_by* names the last
    signal.
    """

    def __init__(
        self,
        timelines: Timelines,
        saver: Saver,
        read: Callable[[], Reading],
        entropy: Entropy,
        *,
        go_on: bool,
        dropped: Callable[[float], None],
    ) -> None:
        self._timelines = timelines
        self._saver = saver
        self._read = read
        self._entropy = entropy
        self._go_on = go_on
        self._dropped = dropped
        self._joined = trio.Event()
        self._saved_at = self._last_at = -inf
        self.noticed = self.saved = 0
        self.last_by = ""

    async def run(self) -> None:
        """Save the renewals that were joined, when SPAN is over, until it is cancelled."""
        while True:
            await self._joined.wait()
            await trio.sleep_until(self._saved_at + SPAN)
            # A signal may just have come that was saved.
            if self._joined.is_set() and trio.current_time() >= self._saved_at + SPAN:
                self._renew(joined=False)
                events.openings(self._timelines.utc)

    def notice(self, by: str) -> int:
        """Share nothing any longer with a copy of this machine; return how many leases ended.

        *by* names the signal.
        """
        self.noticed += 1
        self.last_by, self._last_at = by, trio.current_time()
        joined = trio.current_time() < self._saved_at + SPAN
        again = joined and self._joined.is_set()
        ended = self._renew(joined=joined)
        if again:
            # However many signals come, the log does not grow by more than this.
            self._timelines.utc.new_openings()
        else:
            log.warning(
                "this machine was cloned again within 10 s: signal=%s leases_ended=%d%s"
                if joined
                else "this machine was cloned: signal=%s leases_ended=%d%s",
                by,
                ended,
                FIXED if self._timelines.utc.node.fixed else "",
            )
            events.openings(self._timelines.utc)
        return ended

    def renew(self) -> Generator[Pause, None, Renewed]:
        """Renew as if a signal had come, and wait until that is saved, or for SAVE_SECONDS.

        Raises RefusedError, ``unavailable``, if it could not be saved: it is done all the same, and
        the daemon keeps trying.
        """
        ended = self.notice(BY_HAND)
        if self._joined.is_set():
            return Renewed(ended, saved=False)
        deadline = trio.current_time() + SAVE_SECONDS
        while self._unsaved and trio.current_time() < deadline:
            yield partial(self._saver.settled_by, deadline)
        if self._unsaved:
            cause = self._saver.trouble or "the save is still under way"
            raise RefusedError(
                "unavailable",
                f"renewed, but the state could not be saved within {SAVE_SECONDS:g} s ({cause});"
                " the daemon keeps trying",
            )
        return Renewed(ended, saved=True)

    def status(self) -> dict[str, Any]:
        """Return what ``status`` shows of clones. Spans are seconds."""
        age = trio.current_time() - self._last_at
        return {
            "noticed": self.noticed,
            "renewed": self.saved,
            "last_by": self.last_by,
            "last_age": round(age, 3) if self.noticed else None,
            "after_clone": "go-on" if self._go_on else "refuse",
        }

    @property
    def _unsaved(self) -> bool:
        """Whether nothing is given out under the stored node before a save completes."""
        return not self._timelines.utc.ring.horizon.limit

    def _renew(self, *, joined: bool) -> int:
        fence = self._timelines.fence
        number, claimed = fence.number, fence.claim is not None
        self._entropy.drop()
        ended = self._timelines.renew(
            at=self._read(),
            random=Entropy(of_this_moment).bits,
            go_on=self._go_on,
            unsaved=joined,
        )
        if joined:
            self._joined.set()
        else:
            self._joined = trio.Event()
            self._saved_at = trio.current_time()
            self.saved += 1
            self._saver.begin_again()
        # Also without a claim, for a write that claims one may be under way.
        self._dropped(self._saved_at + SPAN if joined else self._saved_at)
        if not claimed and number is not None and fence.number is None:
            fence.why = shared_with_a_clone(number)
            log.error("Snowflakes are refused: %s", fence.why)
        return ended
