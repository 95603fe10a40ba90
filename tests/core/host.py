"""The timelines of a host, for tests of their rules: a test says when a save begins, and ends.

Where a function takes *at*, that is UTC, or a reading of both clocks.
"""

from __future__ import annotations

from tests.core.draws import Draws
from uuidd.core.ids.nodes import MULTICAST
from uuidd.core.ids.ticks import TICKS_PER_SECOND
from uuidd.core.timeline.fence import Fence
from uuidd.core.timeline.leases import Leases
from uuidd.core.timeline.outcomes import Block, NeedsSwitch
from uuidd.core.timeline.page import HORIZON_AT, PAGE_WORDS, TOKENS_AT, Lease
from uuidd.core.timeline.state import Node, State
from uuidd.core.timeline.steady import Steady
from uuidd.core.timeline.timelines import Reading, Timelines
from uuidd.core.timeline.utc import Utc

NOW = 1_000_000_000_000
REACH = 1_000_000
BARE_REACH = TICKS_PER_SECOND
UID = 1000
EPOCH = 1_600_000_000_000
STORED = Node(7 | MULTICAST, "random")
GIVEN = Node(99 | MULTICAST, "given")


def take(utc: Utc, count: int, *, now: int, whole: bool = False) -> Block:
    """Take a block; where the timeline asks for a switch, switch once and take again."""
    try:
        return utc.take(count, now=now, whole=whole)
    except NeedsSwitch:
        utc.switch(now=now)
    return utc.take(count, now=now, whole=whole)


def reading(at: Reading | int) -> Reading:
    """Return a reading; without one of the other clock, that stands at zero."""
    return Reading(at, 0) if isinstance(at, int) else at


class Host(Timelines):
    """A host whose page is in its hands, so that tests see what holders see."""

    def __init__(
        self,
        loaded: State | None = None,
        *,
        at: Reading | int = NOW,
        node: Node | None = None,
        avoid: int | None = None,
        floor: int = 0,
        fence: Fence | None = None,
        lost: bool = False,
        saved: bool = True,
    ) -> None:
        now, elapsed = reading(at)
        self.page = [0] * PAGE_WORDS
        leases = Leases(self.page)
        leases.floor = floor
        utc = Utc(
            loaded,
            machine="host",
            now=now,
            random=Draws(),
            node=node,
            avoid=lambda: avoid,
            leases=leases,
        )
        mark = loaded.steady if loaded else None if lost else 0
        steady = Steady(mark, now=now, elapsed=elapsed, lost=lost)
        super().__init__(utc, steady, fence=fence or Fence(), epoch=EPOCH)
        if saved:
            self.save(at)

    @property
    def horizon(self) -> int:
        """The horizon that holders see."""
        return self.page[HORIZON_AT]

    @property
    def tokens(self) -> dict[int, int]:
        """The tokens that holders see, by lane."""
        return {lane: token for lane, token in enumerate(self.page[TOKENS_AT:]) if token}

    @property
    def number(self) -> int:
        """The number of the open generation."""
        assert self.utc.open is not None
        return self.utc.open.number

    def begun(self, at: Reading | int = NOW, reach: int = REACH) -> State:
        """Let a save get under way."""
        return self.begin_save(at=reading(at), reach=reach, bare_reach=BARE_REACH)

    def ended(self, state: State, *, completed: bool = True) -> State:
        """Let the save end."""
        self.end_save(state, completed=completed)
        return state

    def save(self, at: Reading | int = NOW, reach: int = REACH) -> State:
        """Let a save complete."""
        return self.ended(self.begun(at, reach))

    def set_back(self, back: int = 0) -> int:
        """Let UTC be set back from NOW; return how many leases ended."""
        return self.step_back(back, at=Reading(NOW - back, 0))

    def take_utc(self, count: int, at: Reading | int = NOW, *, whole: bool = False) -> Block:
        """Take a block of utc."""
        return take(self.utc, count, now=reading(at).now, whole=whole)

    def steady_ticks(
        self, count: int, at: Reading | int = NOW, *, whole: bool = False, fenced: bool = False
    ) -> tuple[int, int]:
        """Take a block of steady: its first tick and its count."""
        block = self.take_steady(count, at=reading(at), whole=whole, fenced=fenced)
        return block.first, block.count

    def leased(self, at: Reading | int = NOW, uid: int = UID) -> Lease:
        """Lease a lane."""
        lease = self.lease(at=reading(at), uid=uid)
        assert isinstance(lease, Lease), lease
        return lease
