"""UTC that steps back: how far is waited out, and the steady clock, which goes on at half speed."""

from __future__ import annotations

TOLERANCE = 100_000
"""How far UTC may step back without another generation: 10 ms, in ticks.

Waiting that long costs less than a generation, and time daemons step UTC by a few milliseconds
every day.
"""

MAX_LEAD_SECONDS = 3600
"""The default for the lead over UTC past which nothing is given out."""


class Slew:
    """The steady clock: S = max(UTC, S + elapsed / 2), which never goes back.

    It begins at *begin*, or at *now* if that is later. *elapsed* is a reading, in ticks, of a clock
    that is never set and counts time in suspend too (CLOCK_BOOTTIME). After UTC stepped back S goes
    on at half speed until UTC has caught up. It went on from *tick* when *elapsed* was *since*.
    """

    __slots__ = ("since", "tick")

    def __init__(self, begin: int, *, now: int, elapsed: int) -> None:
        self.begin(max(begin, now), elapsed=elapsed)

    def begin(self, tick: int, *, elapsed: int) -> None:
        """Begin again, at *tick*."""
        self.tick = tick
        self.since = elapsed

    def read(self, *, now: int, elapsed: int) -> int:
        """Return S when UTC is at *now*."""
        # From where S was UTC last, so that halves that are rounded off do not add up.
        steady = self.tick + (elapsed - self.since) // 2
        if now <= steady:
            return steady
        self.tick, self.since = now, elapsed
        return now

    def lift(self, tick: int, *, now: int, elapsed: int) -> None:
        """Go on from *tick*, if that lies past S."""
        if tick > self.read(now=now, elapsed=elapsed):
            self.tick, self.since = tick, elapsed
