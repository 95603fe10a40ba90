"""The steady clock: UTC that never goes back, and never stands still."""

from __future__ import annotations


class Slew:
    """Reads S = max(UTC, S + elapsed / 2), begun at *begin* if that lies past *now*.

    *elapsed* is a reading, in ticks, of a clock that is never set and counts a suspend too
    (CLOCK_BOOTTIME). After UTC stepped back S goes on at half speed until UTC has caught up.
    """

    __slots__ = ("_from", "_since")

    def __init__(self, begin: int, *, now: int, elapsed: int) -> None:
        self.begin(max(begin, now), elapsed=elapsed)

    def begin(self, tick: int, *, elapsed: int) -> None:
        """Begin anew at *tick*."""
        self._from = tick
        self._since = elapsed

    def read(self, *, now: int, elapsed: int) -> int:
        """Give S when UTC is at *now*."""
        # From where it last was with UTC, lest the halves that are rounded off add up.
        steady = self._from + (elapsed - self._since) // 2
        if now <= steady:
            return steady
        self._from, self._since = now, elapsed
        return now

    def lift(self, tick: int, *, now: int, elapsed: int) -> None:
        """Go on from *tick*, if that lies past S."""
        if tick > self.read(now=now, elapsed=elapsed):
            self._from, self._since = tick, elapsed
