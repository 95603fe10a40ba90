"""The utc timeline: ticks of UTC, kept from repeating by generations and a saved horizon."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from uuidd.core.timeline.block import Block
from uuidd.core.timeline.fence import Claim
from uuidd.core.timeline.generation import GENERATIONS, LANE_BITS, LANES, Generation
from uuidd.core.timeline.horizon import Horizon
from uuidd.core.timeline.leases import Lease, Leases, NoLease
from uuidd.core.timeline.outcomes import Closed, NeedsSave, NeedsSwitch
from uuidd.core.timeline.snapshots import UtcSnapshot
from uuidd.core.timeline.state import NO_EPOCHS, Node, RandomBits, State, random_node
from uuidd.core.timeline.volatile import TOLERANCE, Volatile

RENEWED = "the machine was cloned"
"""The reason of the opening after ``renew``."""

COPIED = "the state was copied"
"""The reason of the opening at a start with another product UUID than the state's."""


class Opening(NamedTuple):
    """A generation, or a volatile node, was opened. *reason* says why, *back* is in ticks."""

    reason: str
    generation: int
    node: int
    back: int


class Utc:
    """The timeline of v1 and v6, begun from the state *loaded*, None if there is none.

    *machine* is the hash of the host's machine-id, *product* that of its product UUID, "" where it
    is not known. With another one than the state's, the node is not kept, nor the generation under
    a fixed node; the marks are. *node* is the fixed node to use; without one the
    timeline keeps the stored random node, or draws one with *random*. *avoid* is a clock sequence
    that another program may be using under the same fixed node. *floor* is the tick at or past
    which that program has used none; it counts when a fixed node begins. *ring* is the number of
    generations. *leases* is where lanes are leased: none before UTC has passed its floor, nor
    before the mark of leases in *loaded*.

    Nothing is given out before the first save completes: call ``begin_save``, write the state that
    it returns, call ``end_save``.
    """

    def __init__(
        self,
        loaded: State | None,
        *,
        machine: str,
        product: str = "",
        now: int,
        random: RandomBits,
        node: Node | None = None,
        avoid: int | None = None,
        floor: int | None = None,
        ring: int = GENERATIONS,
        leases: Leases | None = None,
    ) -> None:
        self._random = random
        self.leases = Leases() if leases is None else leases
        if loaded is not None:
            self.leases.floor = max(self.leases.floor, loaded.leases)
        self._machine = machine
        copied = loaded is not None and loaded.copied_to(product)
        # A start that may not read it keeps it for one that may.
        self._product = product if loaded is None else product or loaded.product
        self._ring = ring
        self._closed = False
        self._volatile: Volatile | None = None
        self._open: Generation | None = None
        self._none_before = 0
        self._top_at_save = 0
        self.openings = 0
        self._new_openings: list[Opening] = []
        # Earlier runs gave nothing past their end, so short blocks from here on are later.
        self._short_next = now
        kept: Node | None = None
        # A state that names another machine, or none, may be in many copies of one image.
        known = loaded is not None and loaded.machine == machine and not copied
        if loaded is not None and known and not loaded.node.fixed:
            kept = loaded.node
        self.node = node or kept or random_node(random)
        changed = loaded is None or not self.node.same_as(loaded.node)
        self._floor = now if loaded is None else loaded.floor
        if changed and self.node.fixed:
            self._floor = max(now, floor or now)
        self._marks = {} if loaded is None else dict(loaded.marks)
        self._horizons = {number: Horizon(mark) for number, mark in self._marks.items()}
        if loaded is None:
            self._number = random(GENERATIONS.bit_length() - 1) % ring
        else:
            self._number = loaded.generation
        self._horizon = self._horizon_of(self._number)
        past = self._mark(self._number) - now
        if loaded is None:
            self._open_next(now, "no state", 0, avoid)
        elif copied:
            # The original goes on with its generation, and with the next one after a step of UTC.
            used = {self._number, self._number if avoid is None else avoid >> LANE_BITS}
            others = [number for number in range(ring) if number not in used]
            drawn = others[random(GENERATIONS.bit_length() - 1) % len(others)]
            self._number = (drawn - 1) % ring
            self._open_next(now, COPIED, 0, None)
        elif changed:
            self._open_next(now, "node changed", 0, avoid)
        elif past > 0:
            self._open_next(now, "the saved mark lies past now", past, avoid)
        else:
            self._open_number(self._number)

    def take(self, count: int, *, now: int, whole: bool = False) -> Block:
        """Hand out the latest free ticks, at most *count*, or exactly *count* if *whole*.

        None lies past *now*, nor at or past the horizon.

        Raises NoneFree (wait that many ticks), NeedsSave (wait for ``end_save``, or call
        ``use_volatile``), NeedsSwitch (call ``switch``) or Closed; no lane moves then.
        """
        if self._closed:
            raise Closed
        serving: Generation | Volatile
        if self._open is None:
            if self._volatile is None or now >= self._none_before:
                raise NeedsSwitch
            serving = self._volatile
        elif now < self._open.top - TOLERANCE:
            raise NeedsSwitch
        elif now >= self._horizon.limit:
            if self._volatile is None:
                raise NeedsSave
            serving = self._volatile
        elif self._volatile is not None:
            raise NeedsSwitch
        else:
            serving = self._open
        # Short blocks rise across a change of the node too, unless UTC stepped back.
        not_before = self._short_next if self._short_next <= now + 1 else 0
        block = serving.take(count, now=now, whole=whole, not_before=not_before)
        if not block.clock_seq & LANES - 1:
            self._short_next = block.first + block.count
        return block

    def switch(self, *, now: int, avoid: int | None = None) -> None:
        """Let another generation or node serve, where ``take`` raised NeedsSwitch.

        After UTC stepped back by more than the tolerance, or once a generation is free again, this
        opens the next one. If none can be opened, a volatile node serves. It also leaves a volatile
        node that is no longer needed. *avoid* is as in the constructor, but of this moment.
        """
        if self._open is None:
            if now >= self._none_before:
                self._open_next(now, "a generation is free again", 0, avoid)
        elif now < self._open.top - TOLERANCE:
            back = self._open.top - now
            self._marks[self._number] = max(self._open.top, self.leases.top)
            self.leases.leave_generation()
            self._open = None
            self._open_next(now, "UTC stepped back", back, avoid)
        if self._open is None:
            self.use_volatile("no generation can be opened")
        self.leave_volatile(now=now)

    def lease(self, *, uid: int, now: int) -> Lease:
        """Lease a lane of the open generation to a connection of the user *uid*.

        Raises NoLease, or Closed, and changes nothing.
        """
        if self._closed:
            raise Closed
        if self._open is None or self._volatile is not None:
            raise NoLease("volatile")
        return self.leases.grant(
            self._open, self._horizon.limit, uid=uid, now=now, random=self._random
        )

    def use_volatile(self, reason: str) -> None:
        """Serve from a fresh random node, never saved, until a save lets the stored one go on."""
        if self._volatile is None:
            self._volatile = Volatile(self._random)
            opened = self._volatile.generation
            self._opened(Opening(reason, opened.number, opened.node, 0))

    def renew(self, *, now: int, random: RandomBits, avoid: int | None = None) -> None:
        """Leave what a copy of this machine has too: the node or, if it is fixed, the generation.

        All leases and blocks end. A random node and a volatile one are drawn anew. A fixed node
        goes on with a generation that is drawn, 6 bits, but is not that of *avoid*. *random*
        replaces the one of the constructor, whose bits the copy may have too.

        The stored node gives out nothing before a save completes that has not begun yet.
        """
        self._random = random
        if self._open is not None:
            # The copy may have given out all that the disk allows.
            reached = self._horizon.highest
            self._marks[self._number] = max(self._open.top, self.leases.top, reached)
        self.leases.renew()
        self._open = None
        if not self.node.fixed:
            self.node = random_node(random)
        first = random(GENERATIONS.bit_length() - 1) % self._ring
        if self.node.fixed and avoid is not None and first == avoid >> LANE_BITS:
            first += 1
        self._number = (first - 1) % self._ring
        for horizon in self._horizons.values():
            horizon.void()
        if self._volatile is not None:
            self._volatile = Volatile(random)
        self._open_next(now, RENEWED, 0, None)
        if self._open is None:
            self.use_volatile("no generation can be opened")

    def leave_volatile(self, *, now: int) -> None:
        """Serve from the stored node again, if a volatile one serves and a save has made that so.

        It does nothing as long as the stored node could not serve at *now*.
        """
        if self._volatile is None or self._open is None:
            return
        if self._open.top - TOLERANCE <= now < self._horizon.limit:
            self._volatile = None
            self._opened(Opening("saved again", self._number, self.node.value, 0))

    def new_openings(self) -> list[Opening]:
        """The openings since the last call, the first one first."""
        new, self._new_openings = self._new_openings, []
        return new

    def begin_save(
        self,
        *,
        now: int,
        reach: int,
        steady: int = 0,
        epochs: Mapping[int, int] = NO_EPOCHS,
        worker: int | Claim | None = None,
    ) -> State:
        """Return the state to save. Its horizon is *reach* ticks past now; exact once closed.

        *steady*, the steady timeline's mark, and the *epochs* and the *worker* number of Snowflakes
        are saved along.
        The marks count for the horizons from here on. One save at a time: ``end_save`` comes before
        the next.
        """
        marks = dict(self._marks)
        if self._open is not None:
            top = max(self._open.top, self.leases.top)
            marks[self._number] = top if self._closed else max(top, now + reach)
        # What can be shown to holders once this is saved.
        shown = 0 if self._closed or self._open is None else marks[self._number]
        leases = self.leases.begin_save(shown, now=now)
        state = State(
            self.node,
            self._machine,
            self._number,
            marks,
            self._floor,
            steady,
            epochs,
            leases,
            worker,
            self._product,
        )
        self._top_at_save = 0 if self._open is None else self._open.top
        for number, mark in marks.items():
            self._horizon_of(number).begin_save(mark)
        return state

    def end_save(self, state: State, *, completed: bool) -> None:
        """Take note of how the save of *state* ended."""
        for number, mark in state.marks.items():
            self._horizon_of(number).end_save(mark, completed=completed)
        self.leases.end_save(self._horizon.limit)

    def void_saves(self) -> None:
        """Stop using the stored node until a save completes that has not completed yet."""
        self.leases.revoke()
        for horizon in self._horizons.values():
            horizon.void()

    def close(self) -> None:
        """Stop for good, so that the next save can hold the exact marks."""
        self._closed = True

    def snapshot(self) -> UtcSnapshot:
        """All that decides what is given out next, to look at or to restore. It is not a copy."""
        return UtcSnapshot(
            self.node,
            self._number,
            self._floor,
            self._marks,
            self._horizons,
            self._none_before,
            self._short_next,
            self._open,
            self.volatile,
            self._closed,
        )

    def restore(self, snapshot: UtcSnapshot) -> None:
        """Go on from where another timeline of the same ring was."""
        self.node, self._number, self._floor = snapshot[:3]
        self._marks, self._horizons = snapshot.marks, snapshot.horizons
        self._none_before, self._short_next = snapshot.none_before, snapshot.short_next
        self._open, self._closed = snapshot.generation, snapshot.closed
        opened = snapshot.volatile
        self._volatile = None if opened is None else Volatile(self._random, opened)
        self._horizon = self._horizon_of(self._number)

    @property
    def used(self) -> bool:
        """Whether anything was given out under the stored node since the last ``begin_save``."""
        if self._open is None:
            return False
        return self._open.top != self._top_at_save or self.leases.used

    @property
    def generation(self) -> Generation | None:
        """The open generation of the stored node, to look at; None if none can be opened."""
        return self._open

    @property
    def volatile(self) -> Generation | None:
        """The open generation of the volatile node, to look at; None while there is none."""
        return None if self._volatile is None else self._volatile.generation

    @property
    def horizon(self) -> int:
        """The tick at which the open generation stops until the next save."""
        return self._horizon.limit

    def _mark(self, number: int) -> int:
        mark = self._marks.get(number, 0)
        return max(mark, self._floor) if self.node.fixed else mark

    def _open_next(self, now: int, reason: str, back: int, avoid: int | None) -> None:
        first = self._number + 1
        if self.node.fixed and avoid is not None:
            first = (avoid >> LANE_BITS) + self._ring // 2
        for number in ((first + step) % self._ring for step in range(self._ring)):
            if self._mark(number) <= now:
                self._open_number(number)
                self._opened(Opening(reason, number, self.node.value, back))
                return
        # So that requests before that tick need not search the ring again.
        self._none_before = min(self._mark(number) for number in range(self._ring))

    def _open_number(self, number: int) -> None:
        self._number = number
        self._horizon = self._horizon_of(number)
        self._open = Generation(number, node=self.node.value, begin=self._mark(number))

    def _opened(self, opening: Opening) -> None:
        self.openings += 1
        self._new_openings.append(opening)

    def _horizon_of(self, number: int) -> Horizon:
        """The horizon of a generation; one that is in no save yet may give out nothing."""
        return self._horizons.setdefault(number, Horizon())
