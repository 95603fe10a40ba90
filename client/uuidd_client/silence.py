"""What one process knows of a daemon that does not answer."""

from __future__ import annotations

HEEDED = 1.0
"""Seconds for which all connections of a process heed what one of them has found."""


class Silence:
    """A daemon's silence: the first connection of a process to find it spares the others a wait.

    Threads may share it: what a race between them loses is one time-out.
    """

    def __init__(self) -> None:
        self._since = self._until = 0.0

    def known(self, now: float) -> bool:
        """Whether some connection has found the daemon silent at *now*, or a moment before."""
        return now < self._until

    def found(self, asked_at: float, now: float) -> float:
        """Note that a request of *asked_at* is not answered; give the seconds of silence so far."""
        if not self.known(now):
            self._since = asked_at
        self._until = now + HEEDED
        return now - self._since

    def over(self) -> None:
        """Note that the daemon was heard."""
        self._until = 0.0
