"""Every state that a small host can come to, with the product's timelines.

How it works

1. The product's timelines run over a few ticks. UTC is an argument of every call, so at each call
   it has any value of its range, whatever it was before. CLOCK_BOOTTIME goes on by 0 to 2 ticks at
   each. ``TOLERANCE``, and the 20 s after a lost state, are a few ticks too while this runs.
2. What bears on what happens next is written as bytes: hosts with the same bytes are one
   (``exploring``).
3. States that differ in names alone are one: generations are counted from the open one on, random
   nodes are named in order, CLOCK_BOOTTIME counts from where S last was UTC.
4. The disk holds one of a *set* of states: the last completed save, and any begun since, each of
   which may have reached the disk or not. A crash finds any one of them, or one that cannot be
   read. A start does not narrow the set: a power cut may still take back what the start read from
   the page cache.
5. For each clock sequence, a state keeps the end of what was given out, in place of all spans, so
   that a state is small. ``tests.judge`` compares a block with the span from 0 to that end. A
   generation that is no longer open has one end for all its lanes. That asks for more than P1.
6. Random nodes are always new, and one that neither memory nor disk holds is forgotten. The
   exceptions of P1 are kept out: after a lost state a fixed node comes back only with UTC past all
   that it gave out before, and the state is lost only where steady led UTC by 20 s at most.

``python -m tests.core.small_world --help`` says how to look further than the tests do.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from tests.core import exploring
from tests.core.exploring import (
    FIRST,
    NONE,
    Disk,
    OutOfBounds,
    World,
    freeze_ring,
    freeze_steady,
)
from tests.core.host import take
from tests.judge import Repeated, Span, compare, of_block
from uuidd.core.ids.nodes import MULTICAST, NODE_BITS
from uuidd.core.timeline.fence import Fence
from uuidd.core.timeline.generation import LANE_BITS, LANES
from uuidd.core.timeline.leases import Leases
from uuidd.core.timeline.outcomes import Closed, NeedsSave, NoneFree, TooFarAhead
from uuidd.core.timeline.page import TOKENS_AT
from uuidd.core.timeline.state import Node, State
from uuidd.core.timeline.steady import Rollback, Steady
from uuidd.core.timeline.timelines import Reading, Timelines
from uuidd.core.timeline.utc import Utc

GIVEN = Node(MULTICAST, "given")
"""The fixed node."""

FIXED, UNNAMED = 200, 250
"""The number of the fixed node, and of one that has none yet."""

REACH = 1
"""The reach of utc's saves. UTC has any value at each, so a longer reach gives no other marks.
"""

FAR = 2
"""From this lead of steady on, saves add nothing to it: the bare reach is 0 here."""


@dataclass(frozen=True)
class Bounds(exploring.Bounds):
    """How large the world is, beside what all worlds have.

    At most *lanes* lanes of a generation serve whole blocks. *nodes* are the nodes that a start may
    be told to use, ``random`` or ``given``. *avoid* lets libuuid's clock file name any generation,
    or none. At most *renewals* times the host is renewed, as after it was cloned.

    Two simplifications let more happen here than on a host. Without *order*, each short block may
    be the first one, or may have to lie past now. Without *volatile*, the volatile node is drawn
    again at each move.
    """

    ring: int = 4
    lanes: int = 1
    restarts: int = 2
    failures: int = 1
    tolerance: int = 0
    nodes: tuple[str, ...] = ("random",)
    avoid: bool = False
    utc: bool = True
    steady: bool = False
    volatile: bool = False
    order: bool = False
    renewals: int = 0
    rollback: Rollback = "slew"
    max_lead: int = 100
    held: int = 2


class Move(NamedTuple):
    """What may happen to a host, at which UTC, and after how much of CLOCK_BOOTTIME."""

    what: str
    now: int = FIRST
    gone: int = 0
    asked: int = 0
    number: int = 0
    """A generation drawn, one that is avoided (from 1 on, 0 for none), or a reach."""
    found: int = 0
    """Which of the states that the disk may hold."""
    node: str = ""


class Host(exploring.Host):
    """A host, and what was given out."""

    def __init__(self, bounds: Bounds) -> None:
        super().__init__(bounds)
        self.bounds = bounds
        self.renewals = 0
        self.ends: dict[tuple[int, int], list[int]] = {}
        """Past the last tick given, of each lane, by node and generation."""
        self.steady_end = 0
        self.forgotten = 0
        """Past the last tick given under the fixed node before the state was lost."""
        self.nodes = 0
        self.drawn = 0
        self.used: int | None = None

    def random(self, bits: int) -> int:
        """Return a fresh node, or the generation that the move draws."""
        if bits == NODE_BITS:
            self.nodes += 1
            return self.nodes
        return self.drawn

    # --- what may happen to it

    def moves(self) -> Iterator[Move]:
        """Return all that may happen next."""
        bounds = self.bounds
        if self.closed:
            if bounds.utc:
                for now in bounds.readings:
                    yield Move("take", now, asked=1)
            for now, gone in self._readings():
                yield Move("take steady", now, gone, 1)
        else:
            if bounds.utc:
                for avoided in self._avoided(self.timelines.utc.node.fixed):
                    for now in bounds.readings:
                        yield Move("take", now, asked=1, number=avoided)
                        yield Move("take", now, asked=2, number=avoided)
                        yield Move("take whole", now, asked=2, number=avoided)
                        if not bounds.order:
                            yield Move("take, held back", now, asked=1, number=avoided)
                if self.timelines.utc.volatile is None:
                    yield Move("turn volatile")
            for now, gone in self._readings():
                yield Move("take steady", now, gone, 1)
                yield Move("take steady", now, gone, 2)
                yield Move("take steady whole", now, gone, 2)
            if bounds.moved:
                yield Move("void saves")
            if self.renewals < bounds.renewals:
                yield from self._renewals(self.timelines.utc.node.fixed)
            yield Move("close")
        yield from self._moves_of_saves()
        if self.restarts < bounds.restarts:
            for node in bounds.nodes:
                yield from self._restarts(node)

    def _renewals(self, fixed: bool) -> Iterator[Move]:
        for now, gone in self._readings() or ((now, 0) for now in self.bounds.readings):
            for drawn in range(self.bounds.ring if fixed else 1):
                yield Move("renew", now, gone, number=drawn)

    def _moves_of_saves(self) -> Iterator[Move]:
        if self.disk.flight is not None:
            yield from map(Move, self.ends_of_save(self.bounds.failures))
            return
        if not self.bounds.steady:
            for now in self.bounds.readings:
                yield Move("begin save", now, number=REACH)
        for now, gone in self._readings():
            yield Move("begin save", now, gone, number=1)
            yield Move("begin save", now, gone, number=2)

    def _restarts(self, node: str) -> Iterator[Move]:
        for now in self.bounds.readings:
            for avoided in self._avoided(node == "given"):
                for found, state in enumerate(self.disk.states):
                    for drawn in self._draws(state):
                        number = drawn * (self.bounds.ring + 1) + avoided
                        yield Move("restart", now, number=number, found=found, node=node)
                for drawn in self._draws(None):
                    number = drawn * (self.bounds.ring + 1) + avoided
                    yield Move("restart, state lost", now, number=number, node=node)

    def _readings(self) -> Iterable[tuple[int, int]]:
        if not self.bounds.steady:
            return ()
        return [(now, gone) for now in self.bounds.readings for gone in range(3)]

    def _avoided(self, fixed: bool) -> range:
        return range(self.bounds.ring + 1 if self.bounds.avoid and fixed else 1)

    def _draws(self, loaded: State | None) -> range:
        """Under a node that nobody knows one generation is as good as another."""
        known = loaded is None and "given" in self.bounds.nodes
        return range(self.bounds.ring if known else 1)

    def happen(self, move: Move) -> None:
        """Let *move* happen. Raises OutOfBounds, or Repeated."""
        self._forget()
        at = Reading(move.now, self.elapsed + move.gone)
        self.elapsed = at.elapsed
        self.used = None
        match move.what:
            case "take" | "take whole":
                self._avoid(move.number)
                self._take_utc(move.asked, at, whole=move.what == "take whole")
            case "take, held back":
                # As if the last short block had been one of now; a generation may open all the same
                self.timelines.utc.short_next = move.now + 1
                self._avoid(move.number)
                self._take_utc(move.asked, at, whole=False)
                self.timelines.utc.short_next = 0
            case "take steady" | "take steady whole":
                self._take_steady(move.asked, at, whole=move.what == "take steady whole")
            case "renew":
                self.renewals += 1
                self.drawn = move.number
                self.timelines.renew(at=at, random=self.random)
            case "begin save":
                self._begin_save(at, move.number)
            case "restart":
                state = self.disk.states[move.found]
                self.start(move, state, lost=state is None)
            case "restart, state lost":
                self._lose(move)
            case what:
                self.happen_to_daemon(what)
        steady = self.timelines.steady
        if self.bounds.steady and steady.read(now=at.now, elapsed=self.elapsed) > self.last:
            raise OutOfBounds

    def _forget(self) -> None:
        """Make anew what no state holds, so that hosts with the same bytes go on alike."""
        utc = self.timelines.utc
        if not self.bounds.order:
            utc.short_next = 0
        if utc.volatile is not None and not self.bounds.volatile:
            utc.volatile = None
            utc.use_volatile("")
        utc.new_openings()

    def _avoid(self, number: int) -> None:
        self.used = None if number == 0 else number - 1 << LANE_BITS

    def avoid(self) -> int | None:
        """Return the clock sequence in libuuid's clock file."""
        return self.used

    def _lose(self, move: Move) -> None:
        given = [max(row) for (node, _), row in self.ends.items() if node == GIVEN.value]
        self.forgotten = max([self.forgotten, *given])
        self.disk = Disk()
        self.start(move, None, lost=True)

    def start(self, move: Move, loaded: State | None, *, lost: bool) -> None:
        """Let the daemon start from the state *loaded*."""
        fixed = GIVEN if move.node == "given" else None
        known = loaded is not None and fixed == loaded.node
        if fixed is not None and not known and move.now < self.forgotten:
            raise OutOfBounds
        if lost and self.steady_end > move.now + self.bounds.held:
            raise OutOfBounds
        self.restarts += move.what != "first start"
        self.disk.flight = None
        self.closed = False
        self.elapsed = 0
        self.drawn, avoided = divmod(move.number, self.bounds.ring + 1)
        self._avoid(avoided)
        utc = Utc(
            loaded,
            machine="",
            now=move.now,
            random=self.random,
            node=fixed,
            avoid=self.avoid,
            ring=self.bounds.ring,
            leases=Leases([0] * TOKENS_AT),
        )
        steady = Steady(
            None if loaded is None else loaded.steady,
            now=move.now,
            elapsed=0,
            lost=lost,
            rollback=self.bounds.rollback,
            max_lead=self.bounds.max_lead,
        )
        self.timelines = Timelines(utc, steady, fence=Fence(), epoch=0)

    def _begin_save(self, at: Reading, reach: int) -> None:
        state = self.timelines.begin_save(at=at, reach=reach, bare_reach=0)
        volatile = self.timelines.utc.volatile
        if volatile is not None and state.node.value == volatile.node:
            raise Repeated(f"a volatile node is saved: {state}")
        self.disk.begin(state)

    # --- what must hold

    def _take_utc(self, count: int, at: Reading, *, whole: bool) -> None:
        try:
            block = take(self.timelines.utc, count, now=at.now, whole=whole)
        except (NoneFree, NeedsSave):
            return
        except Closed:
            if self.closed:
                return
            raise
        number, lane = divmod(block.clock_seq, LANES)
        if lane > self.bounds.lanes:
            raise OutOfBounds
        end = block.first + block.count
        row = self.ends.setdefault((block.node, number), [0] * (self.bounds.lanes + 1))
        compare(of_block(block), [Span((block.node, block.clock_seq), 0, row[lane])])
        row[lane] = end
        if block.count < 1 or block.count > count or (whole and block.count < count):
            raise Repeated(f"{block} for {count}")
        if end - 1 > at.now:
            raise Repeated(f"{block} past {at}")
        if self.closed:
            raise Repeated(f"{block} after the close")
        if self.timelines.utc.volatile is None:
            for state in self.disk.states:
                if end > (0 if state is None else state.marks.get(number, 0)):
                    raise Repeated(f"{block} at or past what the disk may hold: {state}")
                if state is not None and state.node.value != block.node:
                    raise Repeated(f"{block} of a node that the disk may not hold: {state}")

    def _take_steady(self, count: int, at: Reading, *, whole: bool) -> None:
        try:
            block = self.timelines.take_steady(count, at=at, whole=whole)
        except (NoneFree, NeedsSave, TooFarAhead):
            return
        except Closed:
            if self.closed:
                return
            raise
        end = block.first + block.count
        compare(Span("steady", block.first, end), [Span("steady", 0, self.steady_end)])
        self.steady_end = end
        if block.count < 1 or block.count > count or (whole and block.count < count):
            raise Repeated(f"{block} for {count}")
        if self.closed:
            raise Repeated(f"{block} after the close")
        if end - 1 > self.timelines.steady.read(now=at.now, elapsed=at.elapsed):
            raise Repeated(f"{block} past S at {at}")
        if end - 1 - at.now > self.bounds.max_lead + self.bounds.tolerance:
            raise Repeated(f"{block} leads {at} by more than {self.bounds.max_lead}")
        for state in self.disk.states:
            if end > (0 if state is None else state.steady):
                raise Repeated(f"{block} at or past what the disk may hold: {state}")

    # --- as bytes

    def freeze(self) -> bytes:
        """Return as bytes all that bears on what happens next."""
        utc, turned = self.timelines.utc, self.turned()
        names = {utc.node.value: FIXED if utc.node.fixed else 1}
        if "given" in self.bounds.nodes:
            names[GIVEN.value] = FIXED
        rows = self._rows(names, turned)
        out = [self.restarts, self.failures, self.renewals, self.timelines.outdated]
        out += (self.closed, len(names), len(rows))
        for row in rows:
            out += row
        flight = self.disk.flight
        out.append(NONE if flight is None else rows.index(self._row(flight, names, turned)))
        if self.bounds.utc:
            self._freeze_utc(out, names, turned)
        if self.bounds.steady:
            out += (self.steady_end, *freeze_steady(self.timelines.steady, self.elapsed))
        return bytes(out)

    def _rows(self, names: dict[int, int], turned: list[int]) -> list[list[int]]:
        """Return what the disk may hold, and name each node in it."""
        found = [(self._row(state, names, turned), state) for state in self.disk.states]
        found.sort(key=_by_row)
        for row, state in found:
            if state is not None and row[0] == UNNAMED:
                row[0] = names.setdefault(state.node.value, len(names) + 1)
        rows: list[list[int]] = []
        for row in sorted(row for row, _ in found):
            if row not in rows:
                rows.append(row)
        return rows

    def _row(self, state: State | None, names: dict[int, int], turned: list[int]) -> list[int]:
        if state is None:
            return [0] * (4 + len(turned))
        if not self.bounds.utc:
            return [1, 0, 0, state.steady, *(0 for _ in turned)]
        # The floor is heeded under a fixed node only, and set whenever that begins.
        floor = state.floor if state.node.fixed else 0
        steady = state.steady if self.bounds.steady else 0
        return [
            names.get(state.node.value, UNNAMED),
            turned.index(state.generation),
            floor,
            steady,
            *(state.marks.get(number, 0) for number in turned),
        ]

    def _freeze_utc(self, out: list[int], names: dict[int, int], turned: list[int]) -> None:
        utc = self.timelines.utc
        floor = utc.floor if utc.node.fixed else 0
        out += (self.forgotten, names[utc.node.value], floor)
        if self.bounds.order:
            out.append(utc.short_next)
        out += freeze_ring(utc, turned)
        for node in sorted(names, key=names.__getitem__):
            out.append(names[node])
            out += [max(self.ends.get((node, number), (0,))) for number in turned]
        for generation in utc.open, utc.volatile:
            if generation is None:
                out.append(NONE)
                continue
            if generation is not utc.open and not self.bounds.volatile:
                out.append(0)
                continue
            out.append(generation.top)
            lanes = generation.lanes[: self.bounds.lanes + 1]
            out += [lane.next for lane in lanes]
            row = self.ends.get((generation.node, generation.number))
            if row is not None and any(
                lane.next < end for lane, end in zip(lanes, row, strict=True)
            ):
                raise Repeated(f"{[lane.next for lane in lanes]} are free, {row} were given")


def _by_row(found: tuple[list[int], State | None]) -> list[int]:
    return found[0]


def units(bounds: Bounds) -> dict[str, object]:
    """Return the tolerance and the 20 s in as few ticks as *bounds* says."""
    return {
        "generation.BLOCK_LANES": bounds.lanes + 2,
        "utc.TOLERANCE": bounds.tolerance,
        "steady.TOLERANCE": bounds.tolerance,
        "steady.TICKS_PER_SECOND": 1,
        "steady.LOST_SECONDS": bounds.held,
        "timelines.FAR": FAR,
    }


def begin(bounds: Bounds) -> Iterator[Host]:
    """Return hosts on which the daemon starts for the first time."""
    for now in bounds.readings:
        for node in bounds.nodes:
            host = Host(bounds)
            host.start(Move("first start", now, node=node), None, lost=False)
            yield host


WORLD = World("tests.core.small_world", Bounds, units=units, begin=begin)

if __name__ == "__main__":
    raise SystemExit(WORLD.main(sys.argv[1:]))
