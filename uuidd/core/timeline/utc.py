"""The utc timeline: ticks of UTC, kept from repeating by generations and a saved horizon."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from uuidd.core.ids.nodes import RandomBits, random_node
from uuidd.core.timeline.generation import GENERATION_BITS, GENERATIONS, LANES, Generation
from uuidd.core.timeline.leases import Leases, NoLease
from uuidd.core.timeline.outcomes import Block, Closed, NeedsSave, NeedsSwitch
from uuidd.core.timeline.page import Lease
from uuidd.core.timeline.ring import Ring
from uuidd.core.timeline.slew import TOLERANCE
from uuidd.core.timeline.state import Node, State

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
    a fixed node; the marks are. *node* is the fixed node to use; without one the
    timeline keeps the stored random node, or draws one with *random*. *avoid* is as in ``Ring``.
    *floor* is the tick at or past which that program has used none; it counts when a fixed node
    begins. *ring* is the number of generations. *leases* is where lanes are leased: none before UTC
    has passed its floor, nor before the mark of leases in *loaded*.

    Nothing is given out before the first save completes: call ``begin_save``, write the state that
    it returns, call ``end_save``.

    ``ring`` holds the generations of the stored node. ``volatile`` is the open generation of a node
    that serves while no state can be kept (RFC 9562, 6.3, "no stable store"), or None. No short
    block begins before *short_next* unless UTC stepped back.
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
        self.leases = Leases() if leases is None else leases
        if loaded is not None:
            self.leases.floor = max(self.leases.floor, loaded.leases)
        self._machine = machine
        # A start that may not read it keeps it for one that may.
        self._product = product if loaded is None else product or loaded.product
        self._closed = False
        self.volatile: Generation | None = None
        self.openings = 0
        self._new_openings: list[Opening] = []
        # Earlier runs gave nothing past their end, so short blocks from here on are later.
        self.short_next = now
        copied = loaded is not None and loaded.copied_to(self._product)
        # A state that names another machine, or none, may be in many copies of one image.
        known = loaded is not None and loaded.machine == self._machine and not copied
        if node is None and loaded is not None and known and not loaded.node.fixed:
            node = loaded.node
        node = node or Node(random_node(random), "random")
        begin = max(now, floor or now) if node.fixed else now
        if loaded is None:
            drawn = random(GENERATION_BITS) % ring
            self.ring = Ring(node, drawn, marks={}, floor=begin, size=ring, avoid=avoid)
            self._open_next(now, "no state")
            return
        changed = not node.same_as(loaded.node)
        if not (changed and node.fixed):
            begin = loaded.floor
        number = loaded.generation
        self.ring = Ring(node, number, marks=loaded.marks, floor=begin, size=ring, avoid=avoid)
        past = self.ring.mark(number) - now
        if copied:
            self.ring.draw(random)
            self._open_next(now, COPIED, drawn=True)
        elif changed:
            self._open_next(now, "node changed")
        elif past > 0:
            self._open_next(now, "the saved mark lies past now", back=past)
        else:
            self.ring.open_number(number)

    def take(self, count: int, *, now: int, whole: bool = False) -> Block:
        """Hand out the latest free ticks, at most *count*, or exactly *count* if *whole*.

        None lies past *now*, nor at or past the horizon.

        Raises NoneFree (wait that many ticks), NeedsSave (wait for ``end_save``, or call
        ``use_volatile``), NeedsSwitch (call ``switch``) or Closed; no lane moves then.
        """
        if self._closed:
            raise Closed
        ring, serving = self.ring, self.volatile
        if ring.open is None:
            if serving is None or now >= ring.none_before:
                raise NeedsSwitch
        elif now < ring.open.top - TOLERANCE:
            raise NeedsSwitch
        elif now >= ring.horizon.limit:
            if serving is None:
                raise NeedsSave
        elif serving is not None:
            raise NeedsSwitch
        else:
            serving = ring.open
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
        ring = self.ring
        if ring.open is None:
            if now >= ring.none_before:
                self._open_next(now, "a generation is free again")
        elif now < ring.open.top - TOLERANCE:
            back = ring.open.top - now
            ring.leave(self.leases.top)
            self.leases.leave_generation()
            self._open_next(now, "UTC stepped back", back=back)
        if ring.open is None:
            self.use_volatile("no generation can be opened")
        self.leave_volatile(now=now)

    def lease(self, *, uid: int, now: int) -> Lease | NoLease:
        """Lease a lane of the open generation to a connection of the user *uid*.

        If there is none, that changes nothing.
        """
        if self._closed:
            return NoLease("stopping")
        ring = self.ring
        if ring.open is None or self.volatile is not None:
            return NoLease("volatile")
        limit = ring.horizon.limit
        return self.leases.grant(ring.open, limit, uid=uid, now=now, random=self._random)

    def use_volatile(self, reason: str) -> None:
        """Serve from a fresh random node, never saved, until a save lets the stored one go on."""
        if self.volatile is None:
            self.volatile = self._drawn()
            self._opened(self.volatile, reason)

    def renew(self, *, now: int, random: RandomBits) -> None:
        """Leave what a copy of this machine has too: the node or, if it is fixed, the generation.

        All leases and blocks end. A random node and a volatile one are drawn anew. A fixed node
        goes on with a generation that is drawn, 6 bits. *random* replaces the one of the
        constructor, whose bits the copy may have too.

        The stored node gives out nothing before a save completes that has not begun yet.
        """
        self._random = random
        self.ring.renew(self.leases.top, random)
        self.leases.renew()
        if self.volatile is not None:
            self.volatile = self._drawn()
        self._open_next(now, RENEWED, drawn=True)
        if self.ring.open is None:
            self.use_volatile("no generation can be opened")

    def leave_volatile(self, *, now: int) -> None:
        """Serve from the stored node again, if a volatile one serves and a save has made that so.

        It does nothing as long as the stored node could not serve at *now*.
        """
        ring = self.ring
        if self.volatile is None or ring.open is None:
            return
        if ring.open.top - TOLERANCE <= now < ring.horizon.limit:
            self.volatile = None
            self._opened(ring.open, "saved again")

    def new_openings(self) -> list[Opening]:
        """The openings since the last call, the first one first."""
        new, self._new_openings = self._new_openings, []
        return new

    def begin_save(self, *, now: int, reach: int) -> State:
        """Return this timeline's part of the state to save, and UTC.

        Its horizon is *reach* ticks past now; exact once closed. The marks count for the horizons
        from here on. One save at a time: ``end_save`` comes before the next.
        """
        ring, leased = self.ring, self.leases.top
        marks = ring.begin_save(leased if self._closed else max(leased, now + reach))
        # What can be shown to holders once this is saved.
        shown = 0 if self._closed or ring.open is None else marks[ring.number]
        leases = self.leases.begin_save(shown, now=now)
        return State(
            ring.node,
            self._machine,
            ring.number,
            marks,
            ring.floor,
            leases=leases,
            product=self._product,
            now=now,
        )

    def end_save(self, state: State, *, completed: bool) -> None:
        """Take note of how the save of *state* ended."""
        self.ring.end_save(state.marks, completed=completed)
        self.leases.end_save(self.ring.horizon.limit)

    def void_saves(self) -> None:
        """Stop using the stored node until a save completes that has not completed yet."""
        self.leases.revoke()
        self.ring.void_saves()

    def close(self) -> None:
        """Stop for good, so that the next save can hold the exact marks."""
        self._closed = True

    @property
    def node(self) -> Node:
        """The stored node."""
        return self.ring.node

    @property
    def used(self) -> bool:
        """Whether anything was given out under the stored node since the last ``begin_save``."""
        return self.ring.open is not None and (self.ring.used or self.leases.used)

    def _open_next(self, now: int, reason: str, *, back: int = 0, drawn: bool = False) -> None:
        if opened := self.ring.open_next(now, drawn=drawn):
            self._opened(opened, reason, back)

    def _drawn(self) -> Generation:
        """Return a generation that is random, of a random node: 57 bits in place of a memory."""
        number = self._random(GENERATION_BITS)
        return Generation(number, node=random_node(self._random), begin=0)

    def _opened(self, generation: Generation, reason: str, back: int = 0) -> None:
        self.openings += 1
        self._new_openings.append(Opening(reason, generation.number, generation.node, back))
