"""What a client has done in this process."""

from __future__ import annotations

from uuidd.core.typed import NamedTuple


class Stats(NamedTuple):
    """What a client has done since its process began there: a fork's child begins at 0.

    *leases* and *blocks* count what the daemon has granted, *fallback_blocks* what took its place.
    *leased* is whether there is a lease now. *last_error* says why a request had no usable answer,
    "" if all had, and *last_error_at* when that was, in Unix seconds.
    """

    leases: int = 0
    blocks: int = 0
    fallback_blocks: int = 0
    leased: bool = False
    last_error: str = ""
    last_error_at: float | None = None

    def plus(self, leases: int = 0, blocks: int = 0, fallback_blocks: int = 0) -> Stats:
        """Return this with more counts."""
        return self._replace(
            leases=self.leases + leases,
            blocks=self.blocks + blocks,
            fallback_blocks=self.fallback_blocks + fallback_blocks,
        )
