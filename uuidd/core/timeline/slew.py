"""The steady clock, which goes on at half speed after UTC stepped back."""

from __future__ import annotations

MAX_LEAD_SECONDS = 3600
"""The default for the lead over UTC past which nothing is given out."""


class Slew:
    """The steady clock: S = max(UTC, S + elapsed / 2), which never goes back.

    It begins at *begin*, or at *now* if that is later. *elapsed* is a reading, in ticks, of a clock
    that is never set and counts time in suspend too (CLOCK_BOOTTIME). After UTC stepped back S goes
    on at half speed until UTC has caught up.
    """

    __slots__ = ("_from", "_since")

    def __init__(self, begin: int, *, now: int, elapsed: int) -> None:
        self.begin(max(begin, now), elapsed=elapsed)

    def begin(self, tick: int, *, elapsed: int) -> None:
        """Begin again, at *tick*."""
        self._from = tick
        self._since = elapsed

    def read(self, *, now: int, elapsed: int) -> int:
        """Return S when UTC is at *now*."""
        # From where S was UTC last, so that halves that are rounded off do not add up.
        steady = self._from + (elapsed - self._since) // 2
        if now <= steady:
            return steady
        self._from, self._since = now, elapsed
        return now

    def snapshot(self) -> tuple[int, int]:
        """The tick from which S goes on, and the reading of *elapsed* then."""
        return self._from, self._since

    def lift(self, tick: int, *, now: int, elapsed: int) -> None:
        """Go on from *tick*, if that lies past S."""
        if tick > self.read(now=now, elapsed=elapsed):
            self._from, self._since = tick, elapsed
