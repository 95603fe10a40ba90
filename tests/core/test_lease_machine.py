"""Leases beside blocks through everything that may happen, and P1 on all that was ever used.

1. Holders read UTC, the horizon and their token in a page, and use ticks, with pauses in between.
   They go on after their connection ended, and with the page of a daemon that is gone.
2. What the disk holds, and how UTC steps, is as in ``test_timeline_machine``. The daemon may notice
   a step back or not.
3. A tick of a leased lane is used once, under any generation or node, since steady ids hold the
   lane alone. Blocks of utc are looked at by their clock sequence.
4. What is kept out is the exception of P1: a state is lost only while UTC is 20 s, or less, behind
   all that holders were shown.
"""

from __future__ import annotations

from contextlib import suppress

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tests.core.disk import FATES, Disk
from tests.core.draws import Draws
from tests.core.switching import take
from tests.core.test_timeline_machine import PICKS, REACHES, START, STEPS
from tests.judge import Judge, Span, of_block
from uuidd.core.ids.ticks import TICKS_PER_SECOND
from uuidd.core.timeline import LANES, NoneFree
from uuidd.core.timeline.fence import Fence
from uuidd.core.timeline.leases import Leases, NoLease
from uuidd.core.timeline.outcomes import NeedsSave, TooFarAhead
from uuidd.core.timeline.page import HORIZON_AT, PAGE_WORDS, TOKENS_AT, Lease
from uuidd.core.timeline.state import State
from uuidd.core.timeline.steady import LOST_SECONDS, Steady
from uuidd.core.timeline.timelines import Reading, Timelines
from uuidd.core.timeline.utc import Utc

LOST = LOST_SECONDS * TICKS_PER_SECOND
COUNTS = st.sampled_from([1, 2, 10, 10**7])
EDGES = st.sampled_from(["now", "now", "horizon", "horizon", "next", "floor", "old horizon"])
OFF_BY = st.integers(-2, 1)
HOLDERS = 6


class Holder:
    """A process with a lease, and *read*: UTC, where it found its token after that."""

    def __init__(self, lease: Lease, page: list[int]) -> None:
        self.lease = lease
        self.page = page
        self.last = lease.begin - 1
        self.read: int | None = None
        self.state_lost = False


class Host(RuleBasedStateMachine):
    """A host with leases, through all lives of its daemon."""

    timelines: Timelines
    page: list[int]

    def __init__(self) -> None:
        super().__init__()
        self.judge = Judge()
        self.disk = Disk()
        self.holders: list[Holder] = []
        self.connected: list[Holder] = []
        self.used: list[tuple[int, int]] = []
        """The generation and the end of each run used since the state was last lost."""
        self.end = 0
        self.shown = 0
        self.steady_end = 0
        self.now = START
        self.elapsed = 0

    @initialize(first=st.integers(0, 3), ring=st.integers(1, 3))
    def first_start(self, first: int, ring: int) -> None:
        """A host with no state starts."""
        self.draws = Draws(first)
        self.ring = ring
        self._start(None)
        self._save(STEP)

    # --- the daemon

    @rule(uid=st.integers(0, 1))
    def lease(self, uid: int) -> None:
        """A client asks for a lease."""
        self._lease(uid)

    @rule(pick=PICKS)
    def hang_up(self, pick: int) -> None:
        """A connection ends; its holder may not know."""
        if self.connected:
            holder = self.connected.pop(pick % len(self.connected))
            self.timelines.utc.leases.release(holder.lease)

    @rule(pick=PICKS)
    def lease_again(self, pick: int) -> None:
        """A client asks for another lease over the same connection."""
        self.hang_up(pick)
        self._lease(0)

    @rule(count=COUNTS, whole=st.booleans())
    def take(self, count: int, whole: bool) -> None:
        """A client asks for blocks of both timelines."""
        with suppress(NoneFree, NeedsSave):
            self.judge.note(of_block(take(self.timelines.utc, count, now=self.now, whole=whole)))
        try:
            block = self.timelines.take_steady(count, at=self._at, whole=whole)
        except (NoneFree, NeedsSave, TooFarAhead):
            return
        self.steady_end = block.first + block.count
        self.judge.note(Span("lane 0", block.first, self.steady_end))

    @rule(reach=REACHES)
    def save(self, reach: int) -> None:
        """A save completes; one that was under way ends before."""
        self._save(reach)

    @precondition(lambda self: self.disk.flight is None)
    @rule(reach=REACHES)
    def begin_save(self, reach: int) -> None:
        """A save gets under way."""
        self._begin_save(reach)

    @precondition(lambda self: self.disk.flight is not None)
    @rule(fate=FATES)
    def end_save(self, fate: str) -> None:
        """A save completes, or fails: with the old state on disk, the new one, or either."""
        self._end_save(fate)

    @rule()
    def void_saves(self) -> None:
        """The folder of the state is moved away."""
        self.timelines.void_saves()

    # --- the clock

    @rule(ticks=STEPS)
    def clock_forward(self, ticks: int) -> None:
        """Time passes, or UTC steps ahead."""
        self.now += ticks
        self.elapsed += ticks

    @rule(ticks=STEPS, noticed=st.booleans())
    def clock_back(self, ticks: int, noticed: bool) -> None:
        """UTC steps back; the daemon may not notice, or not yet."""
        self.now = max(self.now - ticks, 1)
        if noticed:
            self.timelines.step_back(ticks, at=self._at)

    @rule(edge=EDGES, off_by=OFF_BY, pick=PICKS)
    def clock_to_an_edge(self, edge: str, off_by: int, pick: int) -> None:
        """UTC stands on, or one off, a tick at which something changes."""
        self.now = max(self._edge(edge, pick) + off_by, 1)

    # --- holders

    @rule(pick=PICKS, edge=EDGES, off_by=OFF_BY)
    def read(self, pick: int, edge: str, off_by: int) -> None:
        """A holder reads UTC, which is anywhere, and its page, and pauses."""
        if self.holders:
            self._read(self.holders[pick % len(self.holders)], self._edge(edge, pick) + off_by)

    @rule(pick=PICKS, count=COUNTS)
    def use(self, pick: int, count: int) -> None:
        """A holder goes on, and uses what it has found that it may."""
        if self.holders:
            self._use(self.holders[pick % len(self.holders)], count)

    @rule(pick=PICKS, edge=EDGES, off_by=OFF_BY, count=COUNTS)
    def read_and_use(self, pick: int, edge: str, off_by: int, count: int) -> None:
        """A holder does both without a pause."""
        self.read(pick, edge, off_by)
        self.use(pick, count)

    # --- several at once, since each alone seldom does anything

    @rule(
        reaches=st.lists(REACHES, max_size=2),
        fate=FATES,
        under_way=st.booleans(),
        late=st.booleans(),
        off_by=OFF_BY,
    )
    def lease_and_use_to_the_horizon(
        self, reaches: list[int], fate: str, under_way: bool, late: bool, off_by: int
    ) -> None:
        """Saves with nearer and farther horizons end somehow, or not yet; a holder gets there."""
        if not late:
            self._lease(0)
        for reach in reaches:
            if self.disk.flight is not None:
                self._end_save(fate)
            self._begin_save(reach)
        if self.disk.flight is not None and not under_way:
            self._end_save(fate)
        if late:
            self._lease(0)
        self.read_and_use(len(self.holders) - 1, "horizon", off_by, 10**7)

    @rule(pick=PICKS, reach=REACHES, count=COUNTS)
    def hang_up_and_lease_the_lane_again(self, pick: int, reach: int, count: int) -> None:
        """A lane is freed and leased again after its rest, and both holders go on."""
        if not self.connected:
            return
        former = self.connected[pick % len(self.connected)]
        self.hang_up(pick)
        self.now = max(self.now, former.page[HORIZON_AT])
        self._lease(0)
        self._save(reach)
        self._all_use([former, *self.holders], count)

    @rule(ticks=STEPS, reach=REACHES, noticed=st.booleans(), count=COUNTS)
    def step_back_and_go_on(self, ticks: int, reach: int, noticed: bool, count: int) -> None:
        """UTC steps back, another generation may open, and holders of both go on."""
        self.take(1, False)
        self.clock_back(ticks, noticed)
        self.take(1, False)
        self._save(reach)
        self._lease(0)
        self._all_use(self.holders, count)

    # --- the ends of a life

    @rule(pick=PICKS, step=st.just(0) | STEPS | STEPS.map(int.__neg__), reach=REACHES)
    def crash(self, pick: int, step: int, reach: int) -> None:
        """The daemon dies, a save under way or not, and starts from what the disk holds."""
        self.now = max(self.now + step, 1)
        self._restart(self.disk.pick(pick))
        self._save(reach)
        self._lease(0)
        self._all_use(self.holders, 10)

    @rule(fate=FATES, pick=PICKS, step=st.just(0) | STEPS | STEPS.map(int.__neg__), edge=EDGES)
    def clean_stop(self, fate: str, pick: int, step: int, edge: str) -> None:
        """The daemon saves exact marks while holders go on, and starts again."""
        self.timelines.close()
        if self.disk.flight is not None:
            self._end_save(fate)
        self.read_and_use(pick, edge, -1, 1)
        self._begin_save(0)
        self.read_and_use(pick + 1, edge, -1, 1)
        self._end_save(fate)
        self.now = max(self.now + step, 1)
        self._restart(self.disk.pick(pick))

    @rule()
    def lose_the_state(self) -> None:
        """The state is gone at the next start."""
        self._lose()

    # --- what holds at every moment

    @invariant()
    def whatever_the_disk_holds_covers_all_that_was_used(self) -> None:
        """Both the mark of leases and that of the generation lie past it, in each state."""
        for state in self.disk.states:
            for number, end in self.used:
                assert state is not None
                assert end <= min(state.marks.get(number, 0), state.leases)

    # --- how it is done

    @property
    def _at(self) -> Reading:
        return Reading(self.now, self.elapsed)

    def _restart(self, loaded: State | None) -> None:
        if loaded is None:
            self._lose()
        else:
            self._start(loaded)

    def _lose(self) -> None:
        self.now = max(self.now, self.shown - LOST, self.end - LOST)
        for holder in self.holders:
            holder.state_lost = True
        self.used = []
        self.disk = Disk()
        self._start(None, floor=self.now + LOST)

    def _start(self, loaded: State | None, floor: int = 0) -> None:
        self.disk.start(loaded)
        self.connected = []
        self.page = [0] * PAGE_WORDS
        utc = Utc(
            loaded,
            machine="host",
            now=self.now,
            random=self.draws,
            ring=self.ring,
            leases=Leases(floor, self.page),
        )
        # Its mark is exact here, so that it seldom keeps lanes from being leased.
        steady = Steady(self.steady_end, now=self.now, elapsed=self.elapsed)
        self.timelines = Timelines(utc, steady, fence=Fence(), epoch=0)

    def _lease(self, uid: int) -> None:
        for _ in range(2):
            try:
                lease = self.timelines.lease(at=self._at, uid=uid)
            except NoLease as refusal:
                # Most often it is a matter of time.
                self.now += refusal.wait
                continue
            break
        else:
            return
        assert lease.begin <= max(self.now, self.page[HORIZON_AT])
        holder = Holder(lease, self.page)
        self.connected.append(holder)
        self.holders.append(holder)
        # A holder that is forgotten does nothing more. Those with a connection are kept.
        for old in self.holders[:-HOLDERS]:
            if old not in self.connected:
                self.holders.remove(old)

    def _read(self, holder: Holder, utc: int) -> None:
        # Not where it could use nothing, which would be no test.
        utc = min(utc, holder.page[HORIZON_AT] - 1)
        token = holder.page[TOKENS_AT + holder.lease.lane]
        if utc > holder.last and token == holder.lease.token:
            holder.read = utc

    def _all_use(self, holders: list[Holder], count: int) -> None:
        for holder in holders:
            self._read(holder, self.page[HORIZON_AT])
            self._use(holder, count)

    def _use(self, holder: Holder, count: int) -> None:
        if holder.read is None:
            return
        first, end = max(holder.last + 1, holder.read - count + 1), holder.read + 1
        holder.last, holder.read = holder.read, None
        if first >= end:
            return
        lease = holder.lease
        self.end = max(self.end, end)
        self.judge.note(Span((lease.node, lease.clock_seq), first, end))
        self.judge.note(Span(f"lane {lease.lane}", first, end))
        if not holder.state_lost:
            self.used.append((lease.clock_seq // LANES, end))

    def _edge(self, edge: str, pick: int) -> int:
        match edge:
            case "horizon":
                return self.page[HORIZON_AT]
            case "next" if self.holders:
                return self.holders[pick % len(self.holders)].last + 1
            case "floor":
                return self.timelines.utc.leases.floor
            case "old horizon" if self.holders:
                return self.holders[0].page[HORIZON_AT]
            case _:
                return self.now

    def _save(self, reach: int) -> None:
        if self.disk.flight is not None:
            self._end_save("completed")
        self._begin_save(reach)
        self._end_save("completed")

    def _begin_save(self, reach: int) -> None:
        self.disk.begin(self.timelines.begin_save(at=self._at, reach=reach, bare_reach=0))

    def _end_save(self, fate: str) -> None:
        self.timelines.end_save(self.disk.end(fate), completed=fate == "completed")
        self.shown = max(self.shown, self.page[HORIZON_AT])


STEP = 1000


def test_leases_keep_their_promises_through_everything() -> None:
    """Through pauses, hang-ups, steps, crashes, stops and failed saves, no tick is used twice."""
    run_state_machine_as_test(Host, settings=settings(stateful_step_count=40))
