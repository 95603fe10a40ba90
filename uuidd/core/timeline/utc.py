"""The utc timeline: ticks of UTC, kept from repeating by generations and a saved horizon."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from uuidd.core.timeline.block import Block
from uuidd.core.timeline.epochs import NO_EPOCHS
from uuidd.core.timeline.generation import GENERATIONS, LANE_BITS, LANES, Generation
from uuidd.core.timeline.horizon import Horizon
from uuidd.core.timeline.outcomes import Closed, NeedsSave
from uuidd.core.timeline.state import Node, RandomBits, State, random_node
from uuidd.core.timeline.volatile import TOLERANCE, Volatile


class Opening(NamedTuple):
    """That another generation, or a volatile node, was opened, and why. *back* is in ticks."""

    reason: str
    generation: int
    node: int
    back: int


class Utc:
    """The timeline of v1 and v6, begun from the state *loaded* (None: there is none).

    *node* is the fixed node to use; None takes the stored random one, or draws one. *random*
    gives random bits. *avoid* gives a clock sequence that another program may be using under the
    same node, or None; it is asked at each opening under a fixed node. *floor* gives the tick at or
    past which such a program has used none, or None; it is asked when a fixed node begins. *tell*
    hears of each opening. *ring* is how many generations there are.

    Nothing is given out before the first save completes: call ``begin_save``, write what it gives,
    call ``end_save``.
    """

    def __init__(
        self,
        loaded: State | None,
        *,
        machine: str,
        now: int,
        random: RandomBits,
        node: Node | None = None,
        avoid: Callable[[], int | None] = lambda: None,
        floor: Callable[[], int | None] = lambda: None,
        tell: Callable[[Opening], None] = lambda _: None,
        ring: int = GENERATIONS,
    ) -> None:
        self._random = random
        self._machine = machine
        self._avoid = avoid
        self._tell = tell
        self._ring = ring
        self._closed = False
        self._volatile: Volatile | None = None
        self._open: Generation | None = None
        self._none_before = 0
        self._top_at_save = 0
        self.openings = 0
        # Earlier runs gave nothing past their end, so short grants from here on are later.
        self._short_next = now
        if loaded is None:
            self.node = node or random_node(random)
            self._marks: dict[int, int] = {}
            self._horizons: dict[int, Horizon] = {}
            self._floor = max(now, (floor() if self.node.fixed else None) or now)
            self._number = random(GENERATIONS.bit_length() - 1) % ring
            self._horizon = self._horizon_of(self._number)
            self._open_next(now, "no state", 0)
            return
        # A state from before the host's machine-id was known may be in many copies of one image.
        same = not loaded.node.fixed and loaded.machine == machine
        kept = loaded.node if same else None
        self.node = node or kept or random_node(random)
        changed = (self.node.value, self.node.fixed) != (loaded.node.value, loaded.node.fixed)
        self._marks = dict(loaded.marks)
        self._horizons = {number: Horizon(mark) for number, mark in loaded.marks.items()}
        self._floor = loaded.floor
        if changed and self.node.fixed:
            self._floor = max(now, floor() or now)
        self._number = loaded.generation
        self._horizon = self._horizon_of(self._number)
        past = self._mark(self._number) - now
        if changed:
            self._open_next(now, "node changed", 0)
        elif past > 0:
            self._open_next(now, "the saved mark lies past now", past)
        else:
            self._open_number(self._number)

    def take(self, count: int, *, now: int, whole: bool = False) -> Block:
        """Give out the latest free ticks, at most *count*, or exactly *count* if *whole*.

        None lies past *now*, nor at or past the horizon. When UTC stepped back by more than the
        tolerance the next generation is opened first.

        Raises NoneFree (wait that many ticks), NeedsSave (wait for ``end_save``, or turn
        volatile) or Closed; no lane moves then.
        """
        if self._closed:
            raise Closed
        serving: Generation | Volatile | None = self._open
        if self._open is None or now < self._open.top - TOLERANCE:
            serving = self._turn(now)
        if serving is None and self._volatile is None:
            self.turn_volatile("no generation can be opened")
        if serving is None or now >= self._horizon.limit:
            serving = self._volatile
        if serving is None:
            raise NeedsSave
        # What short grants have reached holds whichever node serves, unless UTC stepped back.
        not_before = self._short_next if self._short_next <= now + 1 else 0
        block = serving.take(count, now=now, whole=whole, not_before=not_before)
        if not block.clock_seq & LANES - 1:
            self._short_next = block.first + block.count
        if self._volatile is not None and serving is not self._volatile:
            self._leave_volatile()
        return block

    def turn_volatile(self, reason: str) -> None:
        """Serve from a fresh random node, never saved, until a save lets the stored one go on."""
        if self._volatile is None:
            self._volatile = Volatile(self._random)
            opened = self._volatile.generation
            self._opened(Opening(reason, opened.number, opened.node, 0))

    def begin_save(
        self, *, now: int, lead: int, steady: int = 0, epochs: Mapping[int, int] = NO_EPOCHS
    ) -> State:
        """Give the state to save, with a horizon of *lead* ticks past now; exact marks once closed.

        *steady*, the steady timeline's mark, and the *epochs* of Snowflakes are saved along.
        The marks count for the horizons from here on. One save at a time: ``end_save`` comes before
        the next.
        """
        marks = dict(self._marks)
        if self._open is not None:
            top = self._open.top
            marks[self._number] = top if self._closed else max(top, now + lead)
        state = State(self.node, self._machine, self._number, marks, self._floor, steady, epochs)
        self._top_at_save = 0 if self._open is None else self._open.top
        for number, mark in marks.items():
            self._horizon_of(number).begin_save(mark)
        return state

    def end_save(self, state: State, *, completed: bool) -> None:
        """Take note of how the save of *state* ended."""
        for number, mark in state.marks.items():
            self._horizon_of(number).end_save(mark, completed=completed)

    def settle(self, *, now: int) -> None:
        """Leave a volatile node that a save has made needless, without waiting for a request."""
        if self._volatile is None or self._open is None:
            return
        if self._open.top - TOLERANCE <= now < self._horizon.limit:
            self._leave_volatile()

    def void_saves(self) -> None:
        """Give out nothing under the stored node before a save that is yet to complete."""
        for horizon in self._horizons.values():
            horizon.void()

    def close(self) -> None:
        """Give out nothing more, so that the next save can hold the exact marks."""
        self._closed = True

    @property
    def used(self) -> bool:
        """Whether anything was given out under the stored node since the last ``begin_save``."""
        return self._open is not None and self._open.top != self._top_at_save

    @property
    def generation(self) -> Generation | None:
        """What is open of the stored node, to look at; None when no generation could be opened."""
        return self._open

    @property
    def volatile(self) -> Generation | None:
        """What is open of the volatile node; None while the stored one serves."""
        return None if self._volatile is None else self._volatile.generation

    @property
    def horizon(self) -> int:
        """The tick at which the open generation stops until the next save."""
        return self._horizon.limit

    def _mark(self, number: int) -> int:
        mark = self._marks.get(number, 0)
        return max(mark, self._floor) if self.node.fixed else mark

    def _turn(self, now: int) -> Generation | None:
        """Leave the open generation, if there is one, for the next that may be opened."""
        reason, back = "a generation is free again", 0
        if self._open is not None:
            reason = "UTC stepped back"
            back = self._open.top - now
            self._marks[self._number] = self._open.top
            self._open = None
        elif now < self._none_before:
            return None
        self._open_next(now, reason, back)
        return self._open

    def _open_next(self, now: int, reason: str, back: int) -> None:
        first = self._number + 1
        used = self._avoid() if self.node.fixed else None
        if used is not None:
            first = (used >> LANE_BITS) + self._ring // 2
        for number in ((first + step) % self._ring for step in range(self._ring)):
            if self._mark(number) <= now:
                self._open_number(number)
                self._opened(Opening(reason, number, self.node.value, back))
                return
        # So that a later request need not search the ring to hear the same.
        self._none_before = min(self._mark(number) for number in range(self._ring))

    def _open_number(self, number: int) -> None:
        self._number = number
        self._horizon = self._horizon_of(number)
        self._open = Generation(number, node=self.node.value, begin=self._mark(number))

    def _leave_volatile(self) -> None:
        self._volatile = None
        self._opened(Opening("saved again", self._number, self.node.value, 0))

    def _opened(self, opening: Opening) -> None:
        self.openings += 1
        self._tell(opening)

    def _horizon_of(self, number: int) -> Horizon:
        """The horizon of a generation; one that no save has told of yet may give out nothing."""
        return self._horizons.setdefault(number, Horizon())
