"""The steady timeline, next to utc, through everything that may happen.

1. The disk holds one of a *set* of states, as in the machine of utc: the last completed save and
   any begun since that may have reached it. A crash loads whichever, and narrows nothing.
2. S is worked out again here from the clocks, the horizon from the states alone.
3. The named exception of P1 is kept out: a state is lost only where what was given leads UTC by
   less than the 20 s.
"""

from __future__ import annotations

from hypothesis import settings, stateful
from hypothesis import strategies as st

from tests.core.disk import FATES, Disk
from tests.core.draws import Draws
from tests.core.switching import take
from tests.judge import Judge, of_block
from uuidd.core.timeline import Block, NoneFree, SteadyBlock
from uuidd.core.timeline.fence import Fence
from uuidd.core.timeline.outcomes import Closed, NeedsSave, TooFarAhead
from uuidd.core.timeline.state import State
from uuidd.core.timeline.steady import LOST_SECONDS, Rollback, Steady
from uuidd.core.timeline.timelines import FAR, Reading, Timelines
from uuidd.core.timeline.utc import Utc
from uuidd.core.timeline.volatile import TOLERANCE

HELD, START = LOST_SECONDS * FAR, 100 * LOST_SECONDS * FAR
SPANS = [0, 1, 2, 9, 1000, TOLERANCE, TOLERANCE + 1, FAR - 1, FAR, HELD]
ELAPSED = st.sampled_from([*SPANS[:6], 3, 17])
STEPS = st.just(0) | st.sampled_from([*SPANS, *(-span for span in SPANS)])
COUNTS = st.sampled_from([1, 1, 2, 7, 1000, 1_000_000])
REACHES = st.sampled_from([1, 2, 1000, TOLERANCE, FAR, HELD])
EDGES = st.sampled_from(["horizon", "next", "mark", "highest"])
Way = tuple[Rollback, int]
"""What a step back does, and the most that steady may lead."""
ROLLBACKS: st.SearchStrategy[Rollback] = st.sampled_from(["slew", "slew", "wait", "refuse"])
WAYS = st.tuples(ROLLBACKS, st.sampled_from([0, 1000, 2 * FAR, 100 * HELD, 100 * HELD]))
NAMES, PICKS = st.sampled_from(["steady", "utc"]), st.integers(0, 5)
SERVED = st.none() | REACHES


class Host(stateful.RuleBasedStateMachine):
    """One host's timelines, through all their lives."""

    def __init__(self) -> None:
        super().__init__()
        self.now, self.elapsed, self.draws = START, 0, Draws()
        self.disk = Disk()
        self.end = self.forgotten = 0
        """Past the last steady tick ever given, and past those from before a loss of the state."""
        self.judge = Judge()
        """Of all that utc ever gave."""

    @stateful.initialize(way=WAYS)
    def first_start(self, way: Way) -> None:
        """A host with no state starts."""
        self._start(None, way, lost=False)

    @stateful.rule(name=NAMES, gone=ELAPSED, count=COUNTS, whole=st.booleans(), reach=SERVED)
    def take(self, name: str, gone: int, count: int, whole: bool, reach: int | None) -> None:
        """A request comes a little later than the last one."""
        self._clocks_to(self.now + gone, gone)
        self._serve(reach, name, count, whole)

    @stateful.rule(gone=ELAPSED, step=STEPS, reach=SERVED, count=COUNTS)
    def step(self, gone: int, step: int, reach: int | None, count: int) -> None:
        """UTC steps ahead or back, and a request comes."""
        self._clocks_to(self.now + gone + step, gone)
        self._serve(reach, "steady", count)

    @stateful.rule(edge=EDGES, off_by=st.integers(-1, 1), by_half=st.booleans(), reach=SERVED)
    def reach_an_edge(self, edge: str, off_by: int, by_half: bool, reach: int | None) -> None:
        """S comes to a tick at which something changes, with UTC or at half speed behind it."""
        tick = self._edge(edge) + off_by
        if by_half:
            gone = max(0, 2 * (tick - self._s()))
            self._clocks_to(min(self.now + gone, tick - TOLERANCE), gone)
        else:
            self._clocks_to(tick, max(0, tick - self.now))
        self._serve(reach)

    @stateful.rule(reach=REACHES, bare=REACHES, fate=st.none() | FATES, count=COUNTS)
    def save(self, reach: int, bare: int, fate: str | None, count: int) -> None:
        """A save gets under way if none is, a request comes, the save ends or hangs."""
        if self.disk.flight is None:
            self._begin_save(reach, bare)
        self._take("steady", count, whole=False)
        if fate is not None:
            self._end_save(fate)
            self._take("steady", count, whole=False)

    @stateful.rule(name=NAMES, count=COUNTS, reach=SERVED)
    def void_saves(self, name: str, count: int, reach: int | None) -> None:
        """The folder of the state is moved away: only a save that is yet to complete counts."""
        self.timelines.void_saves()
        self.disk.limits.append(None)
        self._serve(reach, name, count)

    @stateful.rule(pick=PICKS, lost=st.booleans(), step=STEPS, way=WAYS, reach=SERVED)
    def crash(self, pick: int, lost: bool, step: int, way: Way, reach: int | None) -> None:
        """It dies and starts from what the disk may hold, if anything."""
        if lost:
            self.disk, self.forgotten = Disk(), self.end
        self.now += step
        self._start(self.disk.pick(pick), way)
        self._serve(reach)

    @stateful.rule(fate=FATES, last=FATES, step=STEPS, way=WAYS, reach=SERVED)
    def clean_stop(self, fate: str, last: str, step: int, way: Way, reach: int | None) -> None:
        """It closes, the save in flight ends, the exact marks are saved, and it starts again."""
        self.timelines.close()
        for name in ("steady", "utc"):
            self._take(name, 1, whole=False, closed=True)
        if self.disk.flight is not None:
            self._end_save(fate)
        self._begin_save(HELD, HELD, closed=True)
        self._end_save(last)
        before = self.timelines.steady.next
        self.now += step
        self._start(self.disk.states[-1], way)
        assert last != "completed" or self.timelines.steady.next == before, "ticks were lost"
        self._serve(reach)

    @stateful.invariant()
    def whatever_the_disk_holds_covers_all_that_was_given(self) -> None:
        """A start from any state that the disk may hold begins past every steady tick given."""
        for state in self.disk.states:
            assert self.end <= (self.forgotten if state is None else state.steady)

    @stateful.invariant()
    def the_clock_and_the_horizon_are_as_worked_out(self) -> None:
        """S is what the readings of the clocks make it, and the horizon what the states do."""
        steady = self.timelines.steady
        assert steady.read(now=self.now, elapsed=self.elapsed) == self._s()
        assert steady.horizon == self._limit()
        assert steady.lead(now=self.now, elapsed=self.elapsed) == self._led()

    def _start(self, loaded: State | None, way: Way, lost: bool = True) -> None:
        if loaded is None and lost:
            self.now = max(self.now, self.end - HELD)
        mark = None if loaded is None else loaded.steady
        self.begin = mark if mark is not None else self.now + HELD * lost
        self.rollback, self.max_lead = rollback, most = way
        self.held = mark is None and lost
        self.disk.start(loaded)
        self.twice = 2 * max(mark or 0, self.now) - self.elapsed
        at = Reading(self.now, self.elapsed)
        utc = Utc(loaded, machine="host", now=at.now, random=self.draws)
        steady = Steady(
            mark, now=at.now, elapsed=at.elapsed, lost=lost, rollback=rollback, max_lead=most
        )
        self.timelines = Timelines(utc, steady, fence=Fence(), epoch=0)
        assert steady.next == self.begin

    def _s(self) -> int:
        """What S is: UTC at some reading of this life and half of what elapsed since, the most.

        Those readings count past which something was given since.
        """
        slewed = self.rollback == "slew" and self.timelines.steady.next > self.now
        return (self.twice + self.elapsed) // 2 if slewed else self.now

    def _most_lead(self) -> int:
        """The most by which what is given may lead UTC, and 10 ms for a pause while it was read."""
        return (0 if self.rollback == "refuse" else self.max_lead) + TOLERANCE

    def _led(self) -> int:
        """By how much S, or what was given, leads UTC; what a loss holds back does not."""
        given = 0 if self.held else self.timelines.steady.next - 1
        return max(self._s(), given, self.now) - self.now

    def _clocks_to(self, now: int, gone: int) -> None:
        before = self._s()
        self.now, self.elapsed = max(now, 1), self.elapsed + gone
        read = 2 * self.now - self.elapsed
        bound = self.timelines.steady.next > self.now
        self.twice = max(self.twice, read) if bound else read
        assert self._s() >= before or not bound or self.rollback != "slew"

    def _edge(self, edge: str) -> int:
        marks = {"horizon": self._limit(), "next": self.timelines.steady.next, "mark": self.begin}
        return marks.get(edge, self.end) or self.now

    def _limit(self) -> int:
        """The lowest mark of the last completed save and any that may have come after it."""
        return min(0 if state is None else state.steady for state in self.disk.limits)

    def _begin_save(self, reach: int, bare: int, closed: bool = False) -> None:
        at, steady = Reading(self.now, self.elapsed), self.timelines.steady
        horizon = self._s() + (bare if self._led() >= FAR else reach)
        state = self.timelines.begin_save(at=at, reach=reach, bare_reach=bare)
        assert state.steady == (steady.next if closed else max(steady.next, horizon))
        assert not self.timelines.used
        self.disk.begin(state)

    def _end_save(self, fate: str) -> None:
        self.timelines.end_save(self.disk.end(fate), completed=fate == "completed")

    def _serve(
        self, reach: int | None, name: str = "steady", count: int = 7, whole: bool = False
    ) -> None:
        """A request comes, and with a *reach* it does again once a save with that completed."""
        self._take(name, count, whole)
        if reach is not None:
            if self.disk.flight is not None:
                self._end_save("completed")
            self._begin_save(reach, reach)
            self._end_save("completed")
            self._take(name, count, whole)

    def _take(self, name: str, count: int, whole: bool, closed: bool = False) -> None:
        steady, at = self.timelines.steady, Reading(self.now, self.elapsed)
        before, s = steady.next, self._s()
        try:
            block: Block | SteadyBlock
            if name == "utc":
                block = take(self.timelines.utc, count, now=at.now, whole=whole)
            else:
                block = self.timelines.take_steady(count, at=at, whole=whole)
        except (NoneFree, NeedsSave, TooFarAhead, Closed) as refusal:
            assert steady.next == before, "a refused request moved the lane"
            if name == "steady":
                self._look_at_refusal(refusal, count, whole, closed)
            return
        assert not closed
        assert block.count == count if whole else 1 <= block.count <= count
        last = block.first + block.count - 1
        if isinstance(block, Block):
            self.judge.note(of_block(block))
            return
        assert block.first >= max(self.end, self.begin), "not after all that was given before"
        assert last == s, "not the latest ticks up to S"
        assert last < self._limit(), "given at or past what may be saved"
        assert last - self.now <= self._most_lead()
        self.end, self.held = steady.next, False
        assert self.end == last + 1
        assert self.timelines.used

    def _look_at_refusal(self, refusal: Exception, count: int, whole: bool, closed: bool) -> None:
        """A request is refused for a reason that holds, and for the first that does."""
        steady, s = self.timelines.steady, self._s()
        led = self._led()
        assert isinstance(refusal, Closed) == closed
        assert isinstance(refusal, TooFarAhead) == (led > self._most_lead() and not closed)
        if isinstance(refusal, TooFarAhead):
            assert (refusal.lead, refusal.most + TOLERANCE) == (led, self._most_lead())
        elif isinstance(refusal, NeedsSave):
            assert max(steady.next, self._limit()) <= s
        elif isinstance(refusal, NoneFree):
            assert refusal.wait == steady.next - s + (count - 1 if whole else 0) > 0


def test_the_steady_timeline_keeps_its_promises_through_everything() -> None:
    """Through steps, crashes, failed saves and lost states no tick comes twice, all in order."""
    stateful.run_state_machine_as_test(Host, settings=settings(stateful_step_count=40))
