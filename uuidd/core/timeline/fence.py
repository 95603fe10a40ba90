"""The fence of a worker number: the ticks for which it is this host's, and nobody else's.

Theory of operation

1. Two hosts that make Snowflakes with one number must not use the same tick. A number that was set
   by hand (``--worker N``) is this host's for all ticks. A number that is shared in a fleet has a
   *register* in an engine, such as etcd, and a host *claims* it for the ticks from *begin* to
   *until*.
2. The host uses a tick only in that span, which a write to the register has confirmed. So what the
   register holds as *until* is a tick at or past which nothing was given out with the number, and
   the next holder begins there. This needs no common clock, and no session that has to end in time.
3. Only a write that the engine has confirmed moves *until*, to the very value that was written. A
   write whose answer was lost may be in force: then the register is ahead of this host, never
   behind.
4. A restart goes on with the stored claim without asking the engine, from its own steady mark on:
   at or past that mark it has given out nothing.
5. Before a clean stop writes to the register how far it got, it saves a state without the claim.
   Otherwise the next start could go on with a claim that was let go.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

FOREVER = 1 << 60
"""A tick past all others: 60 bits hold the time of a v1."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A host's claim to worker *number*, for the ticks from *begin* to before *until*.

    *namespace* is the id of the fleet's registers. *token* names this claim and no other.
    """

    namespace: str
    number: int
    token: str
    begin: int
    until: int

    def resumed(self, mark: int) -> Claim:
        """Return the claim for a restart whose steady timeline begins at *mark*."""
        return replace(self, begin=max(self.begin, mark))


class Shared(NamedTuple):
    """Worker *number*, which was set by hand, and which a clone of this machine has too."""

    number: int


Kept = int | Claim | Shared | None
"""What a state keeps: a number that was set by hand, a claim, or a number that is used no more."""


class Fence:
    """The worker *number* of this host, None for none, and the ticks that Snowflakes may have.

    They are *begin* and later, and before *until*, as *claim* has them, unless it is only kept for
    the state so far. *why* says, while there is no number or the span is over, what a refusal has
    to say. *had* is a number that was set by hand before: the state keeps it until the host has
    claimed one. *shared* is one that a clone has too: the state keeps it until there is another
    number, so that no restart makes Snowflakes of it.
    """

    __slots__ = ("begin", "claim", "had", "number", "shared", "until", "why")

    def __init__(
        self,
        number: int | None = None,
        *,
        why: str = "",
        had: int | None = None,
        shared: Shared | None = None,
    ) -> None:
        self.had = had
        self.shared = shared
        self.claim: Claim | None = None
        self.number = number
        self.begin = 0
        self.until = FOREVER if number is not None else 0
        self.why = why

    def keep(self, claim: Claim) -> None:
        """Let the state hold *claim*, which a write has confirmed, before its span is used."""
        self.claim = claim

    def hold(self, claim: Claim) -> None:
        """Use the span of *claim*, which a write has confirmed or the state has stored."""
        self.claim = claim
        self.number, self.begin, self.until = claim.number, claim.begin, claim.until

    def close(self) -> None:
        """Have no number any more: nothing is given out with it after this."""
        self.claim = None
        self.number, self.begin, self.until = None, 0, 0

    def share(self) -> None:
        """Have no number any more, because a clone of this machine has the same."""
        if self.number is not None:
            self.shared = Shared(self.number)
        self.close()

    @property
    def kept(self) -> Kept:
        """What the state has to keep of it."""
        if self.claim is not None:
            return self.claim
        if self.number is not None:
            return self.number
        return self.had if self.shared is None else self.shared

    def covers(self, first: int, count: int) -> bool:
        """Whether Snowflakes may have all of these ticks."""
        return self.begin <= first and first + count <= self.until
