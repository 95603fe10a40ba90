"""The utc timeline through everything that may happen, and P1 on all that it ever gave out.

1. A ring of 1 to 4 generations wraps around within an example; clock steps are drawn around the
   tolerance, and to the tick before, at and after every mark, horizon and highest next.
2. The disk holds one of a *set* of states: the last completed save, and any begun since of which
   nobody knows whether they reached it. A crash loads any of them, and narrows
   nothing: what one start reads from the page cache, a power cut may still take back.
3. What the limit is, and what a state must cover, is worked out again here from the states alone.
4. Two random nodes are never the same here; a fixed one comes back. The named exception of P1 is
   kept out: a fixed node that was in use before the state was lost comes back only with a clock
   past all that it gave.
"""

from __future__ import annotations

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
from tests.judge import Judge, of_block
from uuidd.core.ids.nodes import MULTICAST
from uuidd.core.timeline import LANES, Block, Generation, NoneFree
from uuidd.core.timeline.outcomes import Closed, NeedsSave
from uuidd.core.timeline.state import Node, State
from uuidd.core.timeline.utc import Utc
from uuidd.core.timeline.volatile import TOLERANCE

START = 10 * TOLERANCE
RING = 4
STORED = Node(0xFFFF | MULTICAST, "random")
FIXED = (Node(0x00163E000001, "mac eth0"), Node(0x00163E000002, "given"))
FIXED_VALUES = {node.value for node in FIXED}

AHEAD = st.sampled_from([0, 1, 1, 2, 7, 1000, TOLERANCE])
COUNTS = st.sampled_from([1, 1, 2, 3, 10, 1000, TOLERANCE, TOLERANCE + 1, 3 * TOLERANCE])
REACHES = st.sampled_from([1, 2, 10, 1000, TOLERANCE - 1, TOLERANCE, TOLERANCE + 1, 3 * TOLERANCE])
STEPS = st.sampled_from(
    [1, 2, 9, 1000, TOLERANCE - 1, TOLERANCE, TOLERANCE + 1, 2 * TOLERANCE, 4 * TOLERANCE]
)
EDGES = st.sampled_from(["horizon", "mark", "top", "tolerance", "floor", "highest"])
OFF_BY = st.integers(-1, 1)
PICKS = st.integers(0, 7)
KEEP = "keep"
NODES = st.sampled_from([KEEP, KEEP, KEEP, None, *FIXED])


class Timeline(RuleBasedStateMachine):
    """One host's utc timeline, through all its lives."""

    utc: Utc

    def __init__(self) -> None:
        super().__init__()
        self.judge = Judge()
        self.ends: dict[tuple[int, int], int] = {}
        """Past the last tick given since the state was last lost, by node and generation."""
        self.forgotten: dict[int, int] = {}
        """The same of fixed nodes, by node, from before the state was last lost."""
        self.disk = Disk()
        self.configured: Node | None = None
        self.volatile_nodes: set[int] = set()
        self.now = START
        self.short_end = 0
        """Past the last short block, as long as UTC did not step back."""

    @initialize(
        numbers=st.tuples(st.integers(0, 1023), st.sampled_from([1, 5])),
        ring=st.integers(1, RING),
        configured=st.sampled_from([None, None, *FIXED]),
        marks=st.none()
        | st.dictionaries(
            st.integers(0, RING - 1),
            st.sampled_from([1, START - TOLERANCE, START - 1, START, START + 1, START + TOLERANCE]),
            max_size=RING,
        ),
    )
    def first_start(
        self,
        numbers: tuple[int, int],
        ring: int,
        configured: Node | None,
        marks: dict[int, int] | None,
    ) -> None:
        """A host with no state, or with one that an earlier life left, starts."""
        self.draws = Draws(*numbers)
        self.ring = ring
        self.configured = configured
        if marks is not None:
            kept = {number: mark for number, mark in marks.items() if number < ring}
            self.disk = Disk(State(configured or STORED, "host", 0, kept, 0, 0))
        self._start(self.disk.pick(0))

    # --- requests

    @rule(ahead=AHEAD, count=COUNTS, whole=st.booleans())
    def take(self, ahead: int, count: int, whole: bool) -> None:
        """A request comes a little later than the last one."""
        self._clock_to(self.now + ahead)
        self._take(count, whole)

    @rule(count=COUNTS)
    def take_short_and_whole(self, count: int) -> None:
        """Two requests come at one tick."""
        self._take(count, False)
        self._take(count, True)

    @rule()
    def use_volatile(self) -> None:
        """The daemon waits for a save no longer."""
        self.utc.use_volatile("storage hangs")
        assert self.utc.volatile is not None

    # --- the clock

    @rule(ticks=STEPS)
    def clock_forward(self, ticks: int) -> None:
        """Time passes, or UTC steps ahead."""
        self._clock_to(self.now + ticks)

    @rule(ticks=STEPS)
    def clock_back(self, ticks: int) -> None:
        """UTC steps back."""
        self._clock_to(self.now - ticks)

    @rule(edge=EDGES, off_by=OFF_BY, pick=PICKS)
    def clock_to_an_edge(self, edge: str, off_by: int, pick: int) -> None:
        """UTC stands on, or one off, a tick at which something changes."""
        self._clock_to(self._edge(edge, pick) + off_by)

    # --- saves

    @precondition(lambda self: self.disk.flight is None)
    @rule(reach=REACHES)
    def save(self, reach: int) -> None:
        """A save is begun and completes before anything else happens."""
        self._begin_save(reach)
        self._end_save("completed")

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

    @rule(count=COUNTS, whole=st.booleans())
    def void_saves(self, count: int, whole: bool) -> None:
        """The folder of the state is moved away: only a save that is yet to complete counts."""
        self.utc.void_saves()
        self.disk.limits.append(None)
        self._take(count, whole)

    # --- several at once, since a turn round the ring takes many

    @rule(ticks=STEPS, reach=REACHES, count=COUNTS, whole=st.booleans())
    def clock_back_and_go_on(self, ticks: int, reach: int, count: int, whole: bool) -> None:
        """UTC steps back, a request comes, its save completes, it is served."""
        self._clock_to(self.now - ticks)
        self._take(count, whole)
        self._save_and_take(reach, count, whole)

    @rule(ahead=AHEAD, reach=REACHES, count=COUNTS, whole=st.booleans())
    def idle_and_go_on(self, ahead: int, reach: int, count: int, whole: bool) -> None:
        """The horizon passes, a request comes, its save completes, it is served."""
        self._clock_to(max(self.now, self._edge("horizon", 0)) + ahead)
        self._take(count, whole)
        self._save_and_take(reach, count, whole)

    @rule(ahead=AHEAD, reach=REACHES, counts=st.tuples(COUNTS, COUNTS, COUNTS))
    def hang_and_go_on(self, ahead: int, reach: int, counts: tuple[int, int, int]) -> None:
        """The horizon passes, no save completes in time, one does later; requests all along."""
        self._take(counts[0], False)
        self._clock_to(max(self.now, self._edge("horizon", 0)) + ahead)
        self.use_volatile()
        self._take(counts[1], False)
        self._clock_to(self.now + ahead)
        self._save_and_take(reach, counts[2], False)

    @precondition(lambda self: self.disk.flight is None)
    @rule(
        reaches=st.lists(REACHES, min_size=1, max_size=3),
        fate=FATES,
        under_way=st.booleans(),
        off_by=OFF_BY,
        count=COUNTS,
    )
    def save_and_run_to_the_horizon(
        self, reaches: list[int], fate: str, under_way: bool, off_by: int, count: int
    ) -> None:
        """Saves with nearer and farther horizons end somehow, or not yet; UTC gets there."""
        for reach in reaches:
            if self.disk.flight is not None:
                self._end_save(fate)
            self._begin_save(reach)
        if not under_way:
            self._end_save(fate)
        self._clock_to(max(self.now, self._edge("horizon", 0) + off_by))
        self._take(count, False)

    # --- the ends of a life

    @rule(pick=PICKS, ticks=st.just(0) | STEPS | STEPS.map(int.__neg__), node=NODES)
    def crash(self, pick: int, ticks: int, node: Node | str | None) -> None:
        """The daemon dies, a save under way or not, and starts from what the disk holds."""
        self._clock_to(self.now + ticks)
        self._start(self.disk.pick(pick), node)

    @rule(edge=EDGES, off_by=OFF_BY, pick=PICKS, node=NODES, reach=REACHES, count=COUNTS)
    def crash_and_go_on(
        self, edge: str, off_by: int, pick: int, node: Node | str | None, reach: int, count: int
    ) -> None:
        """It dies and serves again after UTC moved to where something changes."""
        self._clock_to(self._edge(edge, pick) + off_by)
        self._start(self.disk.pick(pick), node)
        self._save_and_take(reach, count, True)

    @rule(fate=FATES, last_fate=FATES, pick=PICKS, ticks=st.just(0) | STEPS, node=NODES)
    def clean_stop(
        self, fate: str, last_fate: str, pick: int, ticks: int, node: Node | str | None
    ) -> None:
        """It closes, the save in flight ends, the exact marks are saved, and it starts again."""
        self.utc.close()
        self._refused_when_closed()
        if self.disk.flight is not None:
            self._end_save(fate)
        self._begin_save(None)
        self._refused_when_closed()
        self._end_save(last_fate)
        self._clock_to(self.now + ticks)
        self._start(self.disk.pick(pick), node)

    @rule(ticks=st.just(0) | STEPS, node=NODES, then=NODES, reach=REACHES, count=COUNTS)
    def lose_the_state(
        self, ticks: int, node: Node | str | None, then: Node | str | None, reach: int, count: int
    ) -> None:
        """The state is torn or gone at the next start; a new one is saved, and the node changed."""
        for (value, _), end in self.ends.items():
            self.forgotten[value] = max(end, self.forgotten.get(value, 0))
        self.ends = {}
        self.disk = Disk()
        self._clock_to(self.now - ticks)
        self._start(None, node)
        self._save_and_take(reach, count, True)
        self._start(self.disk.pick(0), then)
        self._save_and_take(reach, count, True)

    # --- what holds at every moment

    @invariant()
    def whatever_the_disk_holds_covers_all_that_was_given(self) -> None:
        """A start from any state the disk may hold now begins past every tick that it could repeat.

        A random node can only come back out of the state that holds it, a fixed one under any:
        then the state's floor, if it holds that node, or else its marks alone must cover it.
        """
        for state in self.disk.states:
            for (node, number), end in self.ends.items():
                if state is None:
                    raise AssertionError(f"{number} of {node:x} was used, {end}, but never saved")
                if node == state.node.value or node in FIXED_VALUES:
                    floored = state.node.fixed and node == state.node.value
                    mark = state.marks.get(number, 0)
                    assert end <= max(mark, state.floor if floored else 0), (
                        f"{number} of {node:x} was used up to {end}, past {state}"
                    )

    @invariant()
    def no_volatile_node_is_saved(self) -> None:
        """A node that no state may hold is not on the disk."""
        for state in self.disk.states:
            assert state is None or state.node.value not in self.volatile_nodes

    # --- how it is done

    def _start(self, loaded: State | None, node: Node | str | None = KEEP) -> None:
        if not isinstance(node, str):
            self.configured = node
        fixed = self.configured
        if fixed is not None and (loaded is None or loaded.node.value != fixed.value):
            self._clock_to(max(self.now, self.forgotten.get(fixed.value, 0)))
        self.disk.start(loaded)
        self.opened: Generation | None = None
        self.short_end = min(self.short_end, self.now)
        self.utc = Utc(
            loaded,
            machine="host",
            now=self.now,
            random=self.draws,
            node=self.configured,
            ring=self.ring,
        )
        assert fixed is None or self.utc.node == fixed
        assert self.utc.volatile is None
        self._look_at_what_is_open()

    def _clock_to(self, now: int) -> None:
        now = max(now, 1)
        if now < self.now:
            self.short_end = 0
        self.now = now

    def _edge(self, edge: str, pick: int) -> int:
        opened = self.utc.generation
        marks = [
            mark for state in self.disk.states if state for _, mark in sorted(state.marks.items())
        ] or [self.now]
        match edge:
            case "horizon":
                return self._limit(opened.number) if opened else self.now
            case "mark":
                return marks[pick % len(marks)]
            case "top":
                return opened.top if opened else self.now
            case "tolerance":
                return opened.top - TOLERANCE if opened else self.now - TOLERANCE
            case "floor":
                return max((state.floor for state in self.disk.states if state), default=self.now)
            case _:
                return max(self.ends.values(), default=self.now)

    def _limit(self, number: int) -> int:
        """The lowest mark in the last completed save and every one that may have come after it."""
        return min(state.marks.get(number, 0) if state else 0 for state in self.disk.limits)

    def _begin_save(self, reach: int | None) -> None:
        """Begin a save, the last exact one if *reach* is None."""
        opened = self.utc.generation
        state = self.utc.begin_save(now=self.now, reach=0 if reach is None else reach)
        assert state.node == self.utc.node
        for (node, number), end in self.ends.items():
            if node == state.node.value:
                floor = state.floor if state.node.fixed else 0
                assert end <= max(state.marks.get(number, 0), floor)
        if opened is not None:
            assert state.generation == opened.number
            ahead = opened.top if reach is None else max(opened.top, self.now + reach)
            assert state.marks[opened.number] == ahead
        self.disk.begin(state)

    def _end_save(self, fate: str) -> None:
        self.utc.end_save(self.disk.end(fate), completed=fate == "completed")

    def _save_and_take(self, reach: int, count: int, whole: bool) -> None:
        if self.disk.flight is not None:
            self._end_save("completed")
        self._begin_save(reach)
        self._end_save("completed")
        self._take(count, whole)

    def _refused_when_closed(self) -> None:
        before = self._nexts(self.utc.generation), self._nexts(self.utc.volatile)
        try:
            self.utc.take(1, now=self.now)
        except Closed:
            after = self._nexts(self.utc.generation), self._nexts(self.utc.volatile)
            assert after == before
            return
        raise AssertionError("a closed timeline gave out ticks")

    @staticmethod
    def _nexts(generation: Generation | None) -> tuple[Generation, list[int]] | None:
        if generation is None:
            return None
        return generation, [lane.next for lane in generation.lanes]

    def _take(self, count: int, whole: bool) -> None:
        stored, volatile = self._nexts(self.utc.generation), self._nexts(self.utc.volatile)
        try:
            block = take(self.utc, count, now=self.now, whole=whole)
        except (NoneFree, NeedsSave) as refusal:
            self._look_at_what_is_open()
            self._look_at_refusal(refusal, count, whole, stored, volatile)
            return
        self._look_at_what_is_open()
        self._look_at_grant(block, count, whole)

    def _look_at_refusal(
        self,
        refusal: NoneFree | NeedsSave,
        count: int,
        whole: bool,
        stored: tuple[Generation, list[int]] | None,
        volatile: tuple[Generation, list[int]] | None,
    ) -> None:
        """P6: no lane moved. And a wait is no longer than it need be."""
        for before, after in (stored, self.utc.generation), (volatile, self.utc.volatile):
            if before is not None and before[0] is after:
                now_at = self._nexts(after)
                assert now_at is not None
                assert now_at[1] == before[1], "a refused request moved a lane"
        if isinstance(refusal, NoneFree):
            short = count == 1 or not whole
            assert 1 <= refusal.wait <= TOLERANCE + (0 if short else count)
        else:
            opened = self.utc.generation
            assert opened is not None
            assert self._limit(opened.number) <= self.now

    def _look_at_grant(self, block: Block, count: int, whole: bool) -> None:
        end, (number, lane) = block.first + block.count, divmod(block.clock_seq, LANES)
        assert 1 <= block.count <= count
        assert block.first >= 0
        assert end - 1 <= self.now, "P2: a tick past now"
        assert end - 1 == self.now, "P3: not the latest ticks"
        if whole:
            assert block.count == count
        if whole and count > 1:
            assert lane > 0
        else:
            assert lane == 0
            assert block.first >= self.short_end, "P4: a short block went back"
            self.short_end = end
        if block.node == self.utc.node.value:
            assert self.utc.volatile is None
            assert number < self.ring
            assert end <= self._limit(number), "given at or past what may be saved"
            self.ends[block.node, number] = max(end, self.ends.get((block.node, number), 0))
        else:
            assert self.utc.volatile is not None
            assert (
                self.utc.generation is None or self._limit(self.utc.generation.number) <= self.now
            )
            assert block.node & MULTICAST
            self.volatile_nodes.add(block.node)
        self.judge.note(of_block(block))

    def _look_at_what_is_open(self) -> None:
        """A generation is opened at its mark, not past now, and is not held on to past a step."""
        for opening in self.utc.new_openings():
            assert opening.generation >= 0
            assert opening.back >= 0
        opened, volatile = self.utc.generation, self.utc.volatile
        if volatile and (opened is None or self._limit(opened.number) <= self.now):
            assert self.now >= volatile.top - TOLERANCE
        if opened is None:
            return
        if opened is not self.opened:
            self.opened = opened
            assert opened.begin <= self.now, "opened before its mark"
            assert opened.begin >= self.ends.get((self.utc.node.value, opened.number), 0)
        assert self.now >= opened.top - TOLERANCE


def test_the_utc_timeline_keeps_its_promises_through_everything() -> None:
    """Through steps, crashes, failed saves, new nodes and turns of the ring, no tick twice."""
    run_state_machine_as_test(Timeline, settings=settings(stateful_step_count=40))
