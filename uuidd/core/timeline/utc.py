"""The utc timeline: ticks of UTC, kept from repeating by generations and a saved horizon."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from uuidd.core.ids.nodes import RandomBits, random_node
from uuidd.core.timeline.generation import (
    GENERATION_BITS,
    GENERATIONS,
    LANE_BITS,
    LANES,
    Generation,
)
from uuidd.core.timeline.leases import Leases, NoLease
from uuidd.core.timeline.outcomes import Block, Closed, NeedsSave, NeedsSwitch
from uuidd.core.timeline.page import Lease
from uuidd.core.timeline.slew import TOLERANCE
from uuidd.core.timeline.state import Horizon, Node, State

COPIED = "the state was copied"
"""The reason of the opening at a start with another product UUID than the state's."""

RENEWED = "the machine was cloned"
"""The reason of the opening after ``renew``."""


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
    a fixed node; the marks are. *node* is the fixed node to use; without one the timeline keeps the
    stored random node, or draws one with *random*. *avoid* returns a clock sequence that another
    program uses now with a fixed node, or None. *floor* is the tick at or past which that program
    has used none; it counts when a fixed node begins. *ring* is the number of generations, which
    are opened in turn. *leases* is where lanes are leased: none before UTC has passed its floor,
    nor before the mark of leases in *loaded*.

    Nothing is given out before the first save completes: call ``begin_save``, write the state that
    it returns, call ``end_save``.

    ``open`` is the open generation of the stored node, or None; ``number`` is its number, or that
    of the last one, and ``horizon`` its horizon. None can be opened before ``none_before``.
    ``volatile`` is the open generation of a node that serves while no state can be kept (RFC 9562,
    6.3, "no stable store"), or None. No short block begins before ``short_next`` unless UTC stepped
    back.
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
        avoid: Callable[[], int | None] = lambda: None,
        floor: int | None = None,
        ring: int = GENERATIONS,
        leases: Leases | None = None,
    ) -> None:
        self._random = random
        self._avoid = avoid
        self.leases = Leases() if leases is None else leases
        if loaded is not None:
            self.leases.floor = max(self.leases.floor, loaded.leases)
        self._machine = machine
        # A start that may not read it keeps it for one that may.
        self._product = product if loaded is None else product or loaded.product
        self._closed = False
        self.open: Generation | None = None
        self.volatile: Generation | None = None
        self.none_before = self._top_at_save = 0
        self.openings = 0
        self._new_openings: list[Opening] = []
        # Earlier runs gave nothing past their end, so short blocks from here on are later.
        self.short_next = now
        copied = loaded is not None and loaded.copied_to(self._product)
        # A state that names another machine, or none, may be in many copies of one image.
        known = loaded is not None and loaded.machine == self._machine and not copied
        if node is None and loaded is not None and known and not loaded.node.fixed:
            node = loaded.node
        self.node = node = node or Node(random_node(random), "random")
        changed = loaded is not None and not node.same_as(loaded.node)
        self.floor = max(now, floor or now) if node.fixed else now
        if loaded is not None and not (changed and node.fixed):
            self.floor = loaded.floor
        self.size = ring
        self.number = random(GENERATION_BITS) % ring if loaded is None else loaded.generation
        self.marks = {} if loaded is None else dict(loaded.marks)
        self.horizon = Horizon()
        past = self.mark(self.number) - now
        if loaded is None:
            self._open_next(now, "no state")
        elif copied:
            self._draw()
            self._open_next(now, COPIED, drawn=True)
        elif changed:
            self._open_next(now, "node changed")
        elif past > 0:
            self._open_next(now, "the saved mark lies past now", back=past)
        else:
            self._open(self.number)

    def take(self, count: int, *, now: int, whole: bool = False) -> Block:
        """Hand out the latest free ticks, at most *count*, or exactly *count* if *whole*.

        None lies past *now*, nor at or past the horizon.

        Raises NoneFree (wait that many ticks), NeedsSave (wait for ``end_save``, or call
        ``use_volatile``), NeedsSwitch (call ``switch``) or Closed; no lane moves then.
        """
        if self._closed:
            raise Closed
        stored, serving = self.open, self.volatile
        if stored is None:
            if serving is None or now >= self.none_before:
                raise NeedsSwitch
        elif now < stored.top - TOLERANCE:
            raise NeedsSwitch
        elif now >= self.horizon.limit:
            if serving is None:
                raise NeedsSave
        elif serving is not None:
            raise NeedsSwitch
        else:
            serving = stored
        if serving is self.volatile and now < serving.top - TOLERANCE:
            # Its ticks may come again, and no mark keeps another generation of it.
            serving = self.volatile = self._drawn()
        # Short blocks rise across a change of the node too, unless UTC stepped back.
        not_before = self.short_next if self.short_next <= now + 1 else 0
        block = serving.take(count, now=now, whole=whole, not_before=not_before)
        if not block.clock_seq & LANES - 1:
            self.short_next = block.first + block.count
        return block

    def switch(self, *, now: int) -> None:
        """Let another generation or node serve, where ``take`` raised NeedsSwitch.

        After UTC stepped back by more than the tolerance, or once a generation is free again, this
        opens the next one. If none can be opened, a volatile node serves. It also leaves a volatile
        node that is no longer needed.
        """
        if self.open is None:
            if now >= self.none_before:
                self._open_next(now, "a generation is free again")
        elif now < self.open.top - TOLERANCE:
            back = self.open.top - now
            self._leave(self.leases.top)
            self.leases.leave_generation()
            self._open_next(now, "UTC stepped back", back=back)
        if self.open is None:
            self.use_volatile("no generation can be opened")
        self.leave_volatile(now=now)

    def lease(self, *, uid: int, now: int) -> Lease | NoLease:
        """Lease a lane of the open generation to a connection of the user *uid*.

        If there is none, that changes nothing.
        """
        if self._closed:
            return NoLease("stopping")
        if self.open is None or self.volatile is not None:
            return NoLease("volatile")
        limit = self.horizon.limit
        return self.leases.grant(self.open, limit, uid=uid, now=now, random=self._random)

    def use_volatile(self, reason: str) -> None:
        """Serve from a fresh random node, never saved, until a save lets the stored one go on."""
        if self.volatile is None:
            self.volatile = self._drawn()
            self._note(self.volatile, reason)

    def renew(self, *, now: int, random: RandomBits) -> None:
        """Leave what a copy of this machine has too: the node or, if it is fixed, the generation.

        All leases and blocks end. A random node and a volatile one are drawn anew. A fixed node
        goes on with a generation that is drawn, 6 bits. *random* replaces the one of the
        constructor, whose bits the copy may have too.

        The stored node gives out nothing before a save completes that has not begun yet.
        """
        self._random = random
        # The copy may have given out all that the disk allows.
        self._leave(max(self.leases.top, self.horizon.highest))
        if not self.node.fixed:
            self.node = Node(random_node(random), "random")
        self._draw()
        self.leases.renew()
        if self.volatile is not None:
            self.volatile = self._drawn()
        self._open_next(now, RENEWED, drawn=True)
        if self.open is None:
            self.use_volatile("no generation can be opened")

    def leave_volatile(self, *, now: int) -> None:
        """Serve from the stored node again, if a volatile one serves and a save has made that so.

        It does nothing as long as the stored node could not serve at *now*.
        """
        if self.volatile is None or self.open is None:
            return
        if self.open.top - TOLERANCE <= now < self.horizon.limit:
            self.volatile = None
            self._note(self.open, "saved again")

    def new_openings(self) -> list[Opening]:
        """The openings since the last call, the first one first."""
        new, self._new_openings = self._new_openings, []
        return new

    def begin_save(self, *, now: int, reach: int) -> State:
        """Return this timeline's part of the state to save, and UTC.

        Its horizon is *reach* ticks past now; exact once closed. The marks count for the horizons
        from here on. One save at a time: ``end_save`` comes before the next.
        """
        marks, leased = dict(self.marks), self.leases.top
        shown = self._top_at_save = 0
        if self.open is not None:
            self._top_at_save = self.open.top
            end = leased if self._closed else max(leased, now + reach)
            mark = marks[self.number] = max(self.open.top, end)
            self.horizon.begin_save(mark)
            # What can be shown to holders once this is saved.
            shown = 0 if self._closed else mark
        leases = self.leases.begin_save(shown, now=now)
        return State(
            self.node,
            self._machine,
            self.number,
            marks,
            self.floor,
            leases=leases,
            product=self._product,
            now=now,
        )

    def end_save(self, state: State, *, completed: bool) -> None:
        """Take note of how the save of *state* ended.

        It counts for the open generation only if it began after that was opened.
        """
        if self.open is not None and self.horizon.in_flight is not None:
            self.horizon.end_save(state.marks[self.number], completed=completed)
        self.leases.end_save(self.horizon.limit)

    def void_saves(self) -> None:
        """Stop using the stored node until a save completes that has not completed yet."""
        self.leases.revoke()
        self.horizon.void()

    def close(self) -> None:
        """Stop for good, so that the next save can hold the exact marks."""
        self._closed = True

    @property
    def used(self) -> bool:
        """Whether anything was given out under the stored node since the last ``begin_save``."""
        if self.open is None:
            return False
        return self.open.top != self._top_at_save or self.leases.used

    def mark(self, number: int) -> int:
        """The tick from which on a generation can be opened: all that it gave out lies before."""
        mark = self.marks.get(number, 0)
        return max(mark, self.floor) if self.node.fixed else mark

    def _open_next(self, now: int, reason: str, *, back: int = 0, drawn: bool = False) -> None:
        """Open the next generation whose mark lies not past *now*, if there is one.

        Unless *drawn* tells that the next was just drawn, the search begins far from another
        program's.
        """
        first, avoided = self.number + 1, self._avoided()
        if avoided is not None and not drawn:
            first = avoided + self.size // 2
        for number in ((first + step) % self.size for step in range(self.size)):
            if self.mark(number) <= now:
                self._note(self._open(number), reason, back)
                return
        # So that requests before that tick need not search again.
        self.none_before = min(self.mark(number) for number in range(self.size))

    def _open(self, number: int) -> Generation:
        """Open the generation *number*, from its mark on, and return it."""
        self.number = number
        self.open = Generation(number, node=self.node.value, begin=self.mark(number))
        return self.open

    def _leave(self, end: int) -> None:
        """Close the open generation. Its mark is *end*, or the end of what it gave out if later."""
        if self.open is not None:
            self.marks[self.number] = max(self.open.top, end)
            self.open = None
            # The next one may give out nothing before it is in a save.
            self.horizon = Horizon()

    def _draw(self) -> None:
        """Draw the generation to open next, but not that of another program.

        Nor one that a copy of this machine uses: it goes on with this one and, after a step of UTC,
        with the next one.
        """
        used = {self.number, (self.number + 1) % self.size, self._avoided()}
        others = [each for each in range(self.size) if each not in used] or [*range(self.size)]
        self.number = (others[self._random(GENERATION_BITS) % len(others)] - 1) % self.size

    def _avoided(self) -> int | None:
        """The generation of another program under a fixed node; None if none is known."""
        used = self._avoid() if self.node.fixed else None
        return None if used is None else used >> LANE_BITS

    def _drawn(self) -> Generation:
        """Return a generation that is random, of a random node: 57 bits in place of a memory."""
        number = self._random(GENERATION_BITS)
        return Generation(number, node=random_node(self._random), begin=0)

    def _note(self, generation: Generation, reason: str, back: int = 0) -> None:
        """Take note of an opening."""
        self.openings += 1
        self._new_openings.append(Opening(reason, generation.number, generation.node, back))
