"""What a client has done in this process."""

from typing import NamedTuple


class Stats(NamedTuple):
    """What a client has done in this process since it began there: a fork's child begins at 0.

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

    def plus(self, other: "Stats") -> "Stats":
        """Return the sum of the counts; the error is the later one."""
        later = max(self, other, key=lambda each: each.last_error_at or 0)
        return Stats(
            self.leases + other.leases,
            self.blocks + other.blocks,
            self.fallback_blocks + other.fallback_blocks,
            self.leased or other.leased,
            later.last_error,
            later.last_error_at,
        )
