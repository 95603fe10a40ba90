"""A host's timelines and leases through everything that may happen, with the product's constants.

The small worlds visit every state, but of a few ticks. Here UTC steps around the tolerance, and to
the tick before, at and after each at which something changes.

1. Holders read UTC, the horizon and their token in a page, and use ticks, with pauses in between.
   They go on after their connection ended, and with the page of a daemon that is gone.
2. The disk holds one of a *set* of states (``disk``). A crash loads any of them, and narrows
   nothing: what one start reads from the page cache, a power cut may still take back.
3. What the horizons are, and what a state must cover, is worked out again here from the states.
4. A tick of a leased lane is used once, under any generation or node, since steady ids hold the
   lane alone. Blocks of utc are looked at by their clock sequence.
5. What is kept out is the exception of P1: a state is lost only while UTC is 20 s, or less, behind
   all that was given out, or that holders were shown.
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
from tests.core.host import take
from tests.judge import Judge, Span, of_block
from uuidd.core.ids.ticks import TICKS_PER_SECOND
from uuidd.core.timeline.fence import Fence
from uuidd.core.timeline.generation import LANES
from uuidd.core.timeline.leases import Leases
from uuidd.core.timeline.outcomes import Block, Closed, NeedsSave, NoneFree, TooFarAhead
from uuidd.core.timeline.page import HORIZON_AT, PAGE_WORDS, TOKENS_AT, Lease
from uuidd.core.timeline.slew import TOLERANCE
from uuidd.core.timeline.state import State
from uuidd.core.timeline.steady import LOST_SECONDS, Rollback, Steady
from uuidd.core.timeline.timelines import FAR, Reading, Timelines
from uuidd.core.timeline.utc import Utc

LOST = LOST_SECONDS * TICKS_PER_SECOND
START = 100 * LOST
AROUND = [1, 2, 9, 1000, TOLERANCE - 1, TOLERANCE, TOLERANCE + 1, 3 * TOLERANCE]
STEPS = st.sampled_from([*AROUND, FAR, LOST])
REACHES = st.sampled_from([*AROUND, FAR, LOST])
COUNTS = st.sampled_from([1, 2, 10, TOLERANCE + 1, 10**7])
EDGES = st.sampled_from(["now", "now", "horizon", "horizon", "next", "floor", "old horizon", "top"])
OFF_BY = st.integers(-2, 1)
PICKS = st.integers(0, 7)
ROLLBACKS: st.SearchStrategy[Rollback] = st.sampled_from(["slew", "slew", "wait", "refuse"])
MOST_LEADS = st.sampled_from([1000, 2 * FAR, 100 * LOST, 100 * LOST])
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
        self.ends: dict[tuple[int, int], int] = {}
        """Past the last tick of blocks since the state was last lost, by node and generation."""
        self.used: dict[int, int] = {}
        """Past the last tick of leases since then, by generation."""
        self.end = 0
        """Past the last tick of leases, ever."""
        self.shown = 0
        self.steady_end = self.forgotten = 0
        """Past the last steady tick given, and past those from before the state was last lost."""
        self.short_end = 0
        """Past the last short block, as long as UTC did not step back."""
        self.now = START
        self.elapsed = 0

    @initialize(
        first=st.integers(0, 3), ring=st.integers(1, 3), rollback=ROLLBACKS, most=MOST_LEADS
    )
    def first_start(self, first: int, ring: int, rollback: Rollback, most: int) -> None:
        """A host with no state starts."""
        self.draws = Draws(first)
        self.ring, self.rollback, self.most = ring, rollback, most
        self._start(None)
        self._save(1000)

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
        self._take_utc(count, whole)
        self._take_steady(count, whole)

    @rule()
    def use_volatile(self) -> None:
        """The daemon waits for a save no longer."""
        self.timelines.utc.use_volatile("storage hangs")

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
        """The folder of the state is moved away: only a save that is yet to complete counts."""
        self.timelines.void_saves()
        self.disk.limits.append(None)

    # --- the clock

    @rule(ticks=STEPS)
    def clock_forward(self, ticks: int) -> None:
        """Time passes."""
        self.elapsed += ticks
        self._clock_to(self.now + ticks)

    @rule(ticks=STEPS, noticed=st.booleans())
    def clock_back(self, ticks: int, noticed: bool) -> None:
        """UTC steps back; the daemon may not notice, or not yet."""
        self._clock_to(self.now - ticks)
        if noticed:
            self.timelines.step_back(ticks, at=self._at)

    @rule(edge=EDGES, off_by=OFF_BY, pick=PICKS)
    def clock_to_an_edge(self, edge: str, off_by: int, pick: int) -> None:
        """UTC stands on, or one off, a tick at which something changes."""
        self._clock_to(self._edge(edge, pick) + off_by)

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
        count=COUNTS,
    )
    def run_to_the_horizon(
        self, reaches: list[int], fate: str, under_way: bool, late: bool, off_by: int, count: int
    ) -> None:
        """Saves with nearer and farther horizons end somehow, or not yet; who may gets there."""
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
        self._clock_to(max(self.now, self._limit_of_open() + off_by))
        self.take(count, False)

    @rule(pick=PICKS, reach=REACHES, count=COUNTS)
    def hang_up_and_lease_the_lane_again(self, pick: int, reach: int, count: int) -> None:
        """A lane is freed and leased again after its rest, and both holders go on."""
        if not self.connected:
            return
        former = self.connected[pick % len(self.connected)]
        self.hang_up(pick)
        self._clock_to(max(self.now, former.page[HORIZON_AT]))
        self._lease(0)
        self._save(reach)
        self._all_use([former, *self.holders], count)

    @rule(ticks=STEPS, reach=REACHES, noticed=st.booleans(), count=COUNTS, whole=st.booleans())
    def step_back_and_go_on(
        self, ticks: int, reach: int, noticed: bool, count: int, whole: bool
    ) -> None:
        """UTC steps back, another generation may open, and holders of both go on."""
        self.take(1, False)
        self.clock_back(ticks, noticed)
        self.take(1, whole)
        self._save(reach)
        self.take(count, whole)
        self._lease(0)
        self._all_use(self.holders, count)

    # --- the ends of a life

    @rule(pick=PICKS, step=st.just(0) | STEPS | STEPS.map(int.__neg__), reach=REACHES)
    def crash(self, pick: int, step: int, reach: int) -> None:
        """The daemon dies, a save under way or not, and starts from what the disk holds."""
        self._clock_to(self.now + step)
        self._restart(self.disk.pick(pick))
        self._save(reach)
        self.take(10, False)
        self._lease(0)
        self._all_use(self.holders, 10)

    @rule(fate=FATES, pick=PICKS, step=st.just(0) | STEPS | STEPS.map(int.__neg__), edge=EDGES)
    def clean_stop(self, fate: str, pick: int, step: int, edge: str) -> None:
        """The daemon saves exact marks while holders go on, and starts again."""
        self.timelines.close()
        with suppress(Closed):
            raise AssertionError(take(self.timelines.utc, 1, now=self.now))
        with suppress(Closed):
            raise AssertionError(self.timelines.take_steady(1, at=self._at))
        if self.disk.flight is not None:
            self._end_save(fate)
        self.read_and_use(pick, edge, -1, 1)
        self._begin_save(LOST, closed=True)
        self.read_and_use(pick + 1, edge, -1, 1)
        self._end_save(fate)
        self._clock_to(self.now + step)
        self._restart(self.disk.pick(pick))

    @rule()
    def lose_the_state(self) -> None:
        """The state is gone at the next start."""
        self._lose()

    # --- what holds at every moment

    @invariant()
    def whatever_the_disk_holds_covers_all_that_was_used(self) -> None:
        """In each state, the mark of each generation, of leases and of steady lies past it."""
        for state in self.disk.states:
            marks = {} if state is None else state.marks
            assert self.steady_end <= (self.forgotten if state is None else state.steady)
            for (node, number), end in self.ends.items():
                assert state is not None
                assert node != state.node.value or end <= marks.get(number, 0)
            for number, end in self.used.items():
                assert state is not None
                assert end <= min(marks.get(number, 0), state.leases)

    # --- how it is done

    @property
    def _at(self) -> Reading:
        return Reading(self.now, self.elapsed)

    def _clock_to(self, now: int) -> None:
        now = max(now, 1)
        if now < self.now:
            self.short_end = 0
        self.now = now

    def _restart(self, loaded: State | None) -> None:
        if loaded is None:
            self._lose()
        else:
            self._start(loaded)

    def _lose(self) -> None:
        self._clock_to(
            max(self.now, *(end - LOST for end in (self.shown, self.end, self.steady_end)))
        )
        for holder in self.holders:
            holder.state_lost = True
        self.ends, self.used = {}, {}
        self.forgotten = self.steady_end
        self.disk = Disk()
        self._start(None, lost=True)

    def _start(self, loaded: State | None, *, lost: bool = False) -> None:
        self.disk.start(loaded)
        self.connected = []
        self.page = [0] * PAGE_WORDS
        self.short_end = min(self.short_end, self.now)
        utc = Utc(
            loaded,
            machine="host",
            now=self.now,
            random=self.draws,
            ring=self.ring,
            leases=Leases(self.page),
        )
        steady = Steady(
            None if loaded is None else loaded.steady,
            now=self.now,
            elapsed=self.elapsed,
            lost=lost,
            rollback=self.rollback,
            max_lead=self.most,
        )
        self.timelines = Timelines(utc, steady, fence=Fence(), epoch=0, lost=lost)
        self.timelines.release(at=self._at)

    def _limit(self, number: int) -> int:
        """The lowest mark in the last completed save and every one that may have come after it."""
        return min(state.marks.get(number, 0) if state else 0 for state in self.disk.limits)

    def _limit_of_open(self) -> int:
        opened = self.timelines.utc.ring.open
        return self.now if opened is None else self._limit(opened.number)

    def _take_utc(self, count: int, whole: bool) -> None:
        utc = self.timelines.utc
        try:
            block = take(utc, count, now=self.now, whole=whole)
        except NoneFree:
            return
        except NeedsSave:
            assert self._limit_of_open() <= self.now
            return
        self.judge.note(of_block(block))
        end, (number, lane) = block.first + block.count, divmod(block.clock_seq, LANES)
        self._look_at_size(block.count, count, whole)
        assert end - 1 == self.now, "P2, P3: not the latest ticks up to now"
        if not lane:
            assert block.first >= self.short_end, "P4: a short block went back"
            self.short_end = end
        if utc.volatile is None:
            self._look_at_stored(block, number, end)
        else:
            assert block.node == utc.volatile.node != utc.node.value

    def _look_at_stored(self, block: Block, number: int, end: int) -> None:
        opened = self.timelines.utc.ring.open
        assert opened is not None
        assert opened.begin <= self.now
        assert self.now >= opened.top - TOLERANCE
        assert end <= self._limit(number), "given at or past what may be saved"
        self.ends[block.node, number] = max(end, self.ends.get((block.node, number), 0))

    @staticmethod
    def _look_at_size(given: int, count: int, whole: bool) -> None:
        assert given == count if whole else 1 <= given <= count

    def _take_steady(self, count: int, whole: bool) -> None:
        steady = self.timelines.steady
        before, s = steady.next, steady.read(now=self.now, elapsed=self.elapsed)
        limit = min(0 if state is None else state.steady for state in self.disk.limits)
        lead = (0 if self.rollback == "refuse" else self.most) + TOLERANCE
        far = steady.lead(now=self.now, elapsed=self.elapsed) > lead
        try:
            block = self.timelines.take_steady(count, at=self._at, whole=whole)
        except (NoneFree, NeedsSave, TooFarAhead) as refusal:
            self._look_at_refusal(refusal, moved=steady.next != before, far=far)
            return
        end = block.first + block.count
        self.judge.note(Span("lane 0", block.first, end))
        self._look_at_size(block.count, count, whole)
        assert block.first >= self.steady_end, "not after all that was given before"
        assert end - 1 == s, "not the latest ticks up to S"
        assert end <= limit, "given at or past what may be saved"
        assert s - self.now <= lead
        self.steady_end = end

    @staticmethod
    def _look_at_refusal(refusal: Exception, *, moved: bool, far: bool) -> None:
        assert not moved, "a refused request moved the lane"
        assert isinstance(refusal, TooFarAhead) == far

    def _lease(self, uid: int) -> None:
        for _ in range(2):
            lease = self.timelines.lease(at=self._at, uid=uid)
            if isinstance(lease, Lease):
                break
            # Most often it is a matter of time.
            self.now += lease.wait
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
            number = lease.clock_seq // LANES
            self.used[number] = max(end, self.used.get(number, 0))

    def _edge(self, edge: str, pick: int) -> int:
        opened = self.timelines.utc.ring.open
        match edge:
            case "horizon":
                return self.page[HORIZON_AT] or self._limit_of_open()
            case "next" if self.holders:
                return self.holders[pick % len(self.holders)].last + 1
            case "floor":
                return self.timelines.utc.leases.floor
            case "old horizon" if self.holders:
                return self.holders[0].page[HORIZON_AT]
            case "top" if opened is not None:
                return opened.top - TOLERANCE * (pick % 2)
            case _:
                return self.now

    def _save(self, reach: int) -> None:
        if self.disk.flight is not None:
            self._end_save("completed")
        self._begin_save(reach)
        self._end_save("completed")

    def _begin_save(self, reach: int, *, closed: bool = False) -> None:
        utc, steady = self.timelines.utc, self.timelines.steady
        state = self.timelines.begin_save(at=self._at, reach=reach, bare_reach=0)
        assert utc.volatile is None or utc.volatile.node != state.node.value
        assert not self.timelines.used
        if closed:
            assert state.steady == steady.next
        self.disk.begin(state)

    def _end_save(self, fate: str) -> None:
        self.timelines.end_save(self.disk.end(fate), completed=fate == "completed")
        self.shown = max(self.shown, self.page[HORIZON_AT])


def test_a_host_keeps_its_promises_through_everything() -> None:
    """Through pauses, hang-ups, steps, crashes, stops and failed saves, no tick comes twice."""
    run_state_machine_as_test(Host, settings=settings(stateful_step_count=40))
