"""Every state that a small host with leases can come to, with the product's timelines.

How it works

1. As in ``small_world``, UTC has any value at each call, and the disk holds one of a set of states.
   So UTC may go ahead and come back unseen, and the daemon may notice a step back or not.
2. A *holder* is what a client's process does with a lease, in steps between which anything else may
   happen: it reads UTC and the horizon; it reads its token; it uses all ticks up to that UTC. (A
   pause between UTC and the horizon leads nowhere else, since UTC may have any value.)
3. A connection ends when it will: the client hung up, the daemon closed it, or the client asked for
   another lease. The holder does not notice, and goes on.
4. A page is a list of ints. A restart makes a new one, and earlier holders keep theirs.
5. Each tick of a lane is used once at most, in whatever generation: the steady kinds hold the lane
   alone. That is more than v1 and v6 ask for. A state keeps the used ticks of a lane as bits, so
   that a state is small, and ``tests.judge`` compares a span with them. And whatever is used lies
   before the marks of its generation, and of leases, in all states that the disk may hold; so does
   each state to be saved.
6. After the state was lost, UTC is not more than 20 s behind what holders were shown. P1 names the
   exception.
7. The steady timeline never leads UTC, so it keeps nothing from being leased, unless the world is
   *ordered*.
8. In an ordered world there is one clock, which goes on together with the boot time, or is set. The
   daemon notices a step at its next reading, or when it starts. Nobody sets the clock twice in
   between, there and back, since no reading shows that. The daemon gives out no steady tick below
   one that any process has had, and leases nothing there. A holder may be behind: it reads UTC by
   itself, before the daemon has noticed a step. To keep such a world small, its saves complete at
   once, its blocks are steady ones, and the ticks of its leases are looked at by order alone.

Blocks are taken here to open generations only; ``small_world`` looks at what they hold.

``python -m tests.core.leased_world --help`` says how to look further than the tests do.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
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
from tests.judge import Repeated, Span, compare
from uuidd.core.ids.nodes import MULTICAST, NODE_BITS
from uuidd.core.timeline.fence import Fence
from uuidd.core.timeline.generation import BLOCK_LANES
from uuidd.core.timeline.leases import Leases, NoLease
from uuidd.core.timeline.outcomes import NeedsSave, NoneFree
from uuidd.core.timeline.page import HORIZON_AT, TOKENS_AT, Lease
from uuidd.core.timeline.state import Node, State
from uuidd.core.timeline.steady import Steady
from uuidd.core.timeline.timelines import Reading, Timelines
from uuidd.core.timeline.utc import Utc

NODE = Node(1 | MULTICAST, "random")

STEPS = ("read UTC and the horizon", "read the token", "use")
"""What a holder does, one after the other."""


def unknown() -> None:
    """Return no clock sequence of another program."""


@dataclass(frozen=True)
class Bounds(exploring.Bounds):
    """How large the world is, beside what all worlds have: *lanes* to lease, and so on.

    At most *holders* may still use a tick. *reach* is how far saves reach. *lost*, if it is not 0,
    lets a start find no state, and is how far UTC may then be behind what was shown. *volatile*
    lets a request wait for a save no longer. *ordered* looks at the order of steady ids.
    """

    lanes: int = 1
    holders: int = 2
    reach: int = 1
    lost: int = 0
    volatile: bool = False
    ordered: bool = False


class Move(NamedTuple):
    """What may happen: to the daemon, with UTC at *at*, or to a holder."""

    what: str
    at: int = 0
    """UTC, as the daemon or a holder reads it."""
    which: int = 0
    """Which holder, or which of the states that the disk may hold."""


class Holder:
    """A process with a lease, whose tick *next* it has not used yet.

    *steps* says how far it has come: 0, 1 with UTC at *now* before the horizon, 2 with the token
    its own too. *number* is the generation, None after the state was lost.
    """

    __slots__ = ("connected", "lease", "next", "now", "number", "page", "steps")

    def __init__(self, lease: Lease, number: int | None, page: list[int]) -> None:
        self.lease = lease
        self.number = number
        self.page = page
        self.next = lease.begin
        self.steps = self.now = 0
        self.connected = True

    @property
    def valid(self) -> bool:
        """Whether its token is in its page."""
        return self.page[TOKENS_AT + self.lease.lane] == self.lease.token


class Host(exploring.Host):
    """A host, and which ticks were used."""

    page: list[int]

    def __init__(self, bounds: Bounds) -> None:
        super().__init__(bounds)
        self.bounds = bounds
        self.holders: list[Holder] = []
        self.used = [0] * bounds.lanes
        """The ticks used of each lane, as bits."""
        self.ends = [0] * bounds.ring
        """Past the last tick used of each generation."""
        self.tokens = 0
        self.utc = 0
        """UTC in an ordered world."""
        self.noticed = 0
        """How far UTC was past the boot time when the daemon read them last."""
        self.had = 0
        """The highest steady tick that a process had."""

    def random(self, bits: int) -> int:
        """Return another token each time, and the same node and generation."""
        if bits == NODE_BITS:
            return NODE.value
        self.tokens += 1
        return 0 if bits < NODE_BITS else self.tokens

    @property
    def end(self) -> int:
        """Past all ticks that were used."""
        return max(mask.bit_length() for mask in self.used)

    # --- what may happen to it

    def moves(self) -> Iterator[Move]:
        """Return all that may happen next."""
        bounds = self.bounds
        readings = self._readings()
        if not self.closed:
            for now in readings:
                yield Move("take steady" if bounds.ordered else "take", now)
                if len(self.holders) < bounds.holders:
                    yield Move("lease", now)
            if not bounds.ordered:
                yield Move("notice a step back")
            yield Move("close")
            if bounds.volatile:
                yield Move("turn volatile")
            if bounds.moved:
                yield Move("void saves")
        if self.disk.flight is None:
            for now in readings:
                yield Move("begin save", now)
        else:
            yield from map(Move, self.ends_of_save(bounds.failures))
        if self.restarts < bounds.restarts:
            for now in readings:
                for found in range(len(self.disk.states)):
                    yield Move("restart", now, found)
                if bounds.lost:
                    yield Move("restart, state lost", now)
        for which, holder in enumerate(self.holders):
            if holder.connected:
                yield Move("hang up", which=which)
            for now in readings if holder.steps == 0 else [0]:
                yield Move(STEPS[holder.steps], now, which)
        if bounds.ordered:
            yield from self._moves_of_clocks()

    def _readings(self) -> Iterable[int]:
        return [self.utc] if self.bounds.ordered else self.bounds.readings

    def _moves_of_clocks(self) -> Iterator[Move]:
        if self.utc + 1 in self.bounds.readings:
            yield Move("time passes")
        if self.noticed == self.utc - self.elapsed:
            for utc in self.bounds.readings:
                if utc != self.utc:
                    yield Move("set UTC", utc)

    def happen(self, move: Move) -> None:
        """Let *move* happen. Raises OutOfBounds, or Repeated."""
        # Blocks are in order in each generation alone, so that order costs no states.
        self.timelines.utc.short_next = 0
        if not self.bounds.ordered:
            self.timelines.steady = level()
        at = Reading(move.at, self.elapsed)
        match move.what:
            case "time passes":
                self.utc += 1
                self.elapsed += 1
            case "set UTC":
                self.utc = move.at
            case "take":
                self._take(move.at)
            case "take steady":
                self._notice(at)
                self._take_steady(at)
            case "lease":
                self._notice(at)
                self._lease(at)
            case "notice a step back":
                self.timelines.step_back(0, at=at)
            case "begin save":
                self._notice(at)
                self._begin_save(at)
                if self.bounds.ordered:
                    self.end_save(completed=True)
            case "restart":
                self.restarts += 1
                loaded = self.disk.states[move.which]
                if loaded is None:
                    self._lose(at)
                else:
                    self.start(at, loaded)
            case "restart, state lost":
                self.restarts += 1
                self._lose(at)
            case "hang up":
                holder = self.holders[move.which]
                holder.connected = False
                self.timelines.utc.leases.release(holder.lease)
            case what if what in STEPS:
                self._step(self.holders[move.which], move)
            case what:
                self.happen_to_daemon(what)
        self.holders = [holder for holder in self.holders if self._counts(holder)]
        at = Reading(self.utc, self.elapsed)
        if (
            self.bounds.ordered
            and self.timelines.steady.read(now=at.now, elapsed=at.elapsed) > self.last
        ):
            raise OutOfBounds

    def _counts(self, holder: Holder) -> bool:
        """Whether a holder may still use a tick, or the daemon its connection."""
        if holder.connected or holder.steps == 2:
            return True
        horizon = self.last
        if holder.page is not self.page:
            horizon = min(horizon, holder.page[HORIZON_AT])
        return holder.valid and holder.next < horizon

    def start(self, at: Reading, loaded: State | None, *, lost: bool = False) -> None:
        """Let the daemon start from the state *loaded*, with a new page."""
        self.disk.flight = None
        self.closed = False
        for holder in self.holders:
            holder.connected = False
        self.page = [0] * (TOKENS_AT + BLOCK_LANES + self.bounds.lanes)
        utc = Utc(
            loaded,
            machine="",
            now=at.now,
            random=self.random,
            avoid=unknown,
            ring=self.bounds.ring,
            leases=Leases(self.page),
        )
        steady = level()
        if self.bounds.ordered:
            mark = None if loaded is None else loaded.steady
            steady = Steady(mark, now=at.now, elapsed=at.elapsed)
        self.timelines = Timelines(utc, steady, fence=Fence(), epoch=0, lost=lost)
        self.timelines.release(at=at)
        self.noticed = at.now - at.elapsed
        if loaded is not None:
            self.timelines.notice_step_since(loaded, at=at)

    def _notice(self, at: Reading) -> None:
        """Let the daemon notice what has become of UTC since it read it last."""
        back = self.noticed - (at.now - at.elapsed)
        if self.bounds.ordered and back > 0:
            self.timelines.step_back(back, at=at)
        self.noticed = at.now - at.elapsed

    def _lose(self, at: Reading) -> None:
        shown = max((holder.page[HORIZON_AT] for holder in self.holders), default=0)
        if max(shown, self.end) > at.now + self.bounds.lost:
            raise OutOfBounds
        for holder in self.holders:
            holder.number = None
        self.ends = [0] * self.bounds.ring
        self.disk = Disk()
        self.start(at, None, lost=True)

    def _take(self, now: int) -> None:
        with suppress(NoneFree, NeedsSave):
            take(self.timelines.utc, 1, now=now)

    def _take_steady(self, at: Reading) -> None:
        try:
            tick = self.timelines.take_steady(1, at=at).first
        except (NoneFree, NeedsSave):
            return
        if tick < self.had:
            raise Repeated(f"the steady tick {tick} is below {self.had}, which was used before")
        self.had = tick

    def _lease(self, at: Reading) -> None:
        lease = self.timelines.lease(at=at, uid=0)
        if isinstance(lease, NoLease):
            return
        opened = self.timelines.utc.open
        assert opened is not None
        if at.now < self.had:
            raise Repeated(f"leased at {at.now}, which is below {self.had}, which was used before")
        if lease.begin > self.last:
            raise OutOfBounds
        self.holders.append(Holder(lease, opened.number, self.page))

    def _begin_save(self, at: Reading) -> None:
        state = self.timelines.begin_save(at=at, reach=self.bounds.reach, bare_reach=0)
        if state.leases < self.end:
            raise Repeated(f"{state} does not cover the leases, used up to {self.end}")
        for number, end in enumerate(self.ends):
            if state.marks.get(number, 0) < end:
                raise Repeated(f"{state} does not cover leases of {number}, used up to {end}")
        self.disk.begin(state)

    # --- what a holder does

    def _step(self, holder: Holder, move: Move) -> None:
        if holder.steps == 0:
            if holder.next <= move.at < holder.page[HORIZON_AT]:
                holder.steps, holder.now = 1, move.at
        elif holder.steps == 1:
            holder.steps = 2 if holder.valid else 0
        else:
            self._use(holder)

    def _use(self, holder: Holder) -> None:
        lane, end = holder.lease.lane - BLOCK_LANES, holder.now + 1
        used = self.used[lane]
        ticks = [tick for tick in range(used.bit_length()) if used >> tick & 1]
        compare(Span(lane, holder.next, end), [Span(lane, tick, tick + 1) for tick in ticks])
        if self.bounds.ordered:
            self.had = max(self.had, holder.now)
        else:
            self.used[lane] |= (1 << end) - (1 << holder.next)
        holder.next, holder.steps, holder.now = end, 0, 0
        number = holder.number
        if number is None or self.bounds.ordered:
            return
        self.ends[number] = max(end, self.ends[number])
        for state in self.disk.states:
            covered = state and min(state.leases, state.marks.get(number, 0))
            if end > (covered or 0):
                raise Repeated(f"{holder.now} at or past what the disk may hold: {state}")

    # --- as bytes

    def freeze(self) -> bytes:
        """Return as bytes all that bears on what happens next."""
        utc, turned = self.timelines.utc, self.turned()
        steady = freeze_steady(self.timelines.steady, self.elapsed)
        out = [*steady] if self.bounds.ordered else []
        rows = sorted({self._row(state, turned) for state in self.disk.states})
        state = self.disk.flight
        flight = NONE if state is None else rows.index(self._row(state, turned))
        out += (self.restarts, self.failures, self.closed, flight, len(rows))
        for row in rows:
            out += row
        out += freeze_ring(utc, turned)
        out += [self.ends[number] for number in turned]
        out += (NONE, 0) if utc.open is None else (utc.open.begin, utc.open.top)
        out.append(utc.volatile is not None)
        self._freeze_leases(out)
        if self.bounds.ordered:
            out += (self.utc, self.noticed + self.elapsed, self.had)
        holders = sorted(self._freeze_holder(holder, turned) for holder in self.holders)
        return bytes(out) + b"".join(holders)

    def _row(self, state: State | None, turned: list[int]) -> tuple[int, ...]:
        if state is None:
            return (NONE, 0, 0, 0, *(0 for _ in turned))
        marks = (state.marks.get(number, 0) for number in turned)
        steady = expected = 0
        if self.bounds.ordered:
            steady = state.steady
            # No floor lies past the highest S, so a larger step would be no other.
            expected = min(state.now + self.elapsed - state.elapsed, self.last)
        return (turned.index(state.generation), state.leases, steady, expected, *marks)

    def _freeze_leases(self, out: list[int]) -> None:
        leases = self.timelines.utc.leases
        read = leases.users or any(holder.page is self.page for holder in self.holders)
        # Nobody reads the horizon otherwise, before it is set again.
        out.append(self.page[HORIZON_AT] if read else 0)
        out += (leases.floor, leases.top)
        for lane, mask in enumerate(self.used, BLOCK_LANES):
            out += (lane in leases.users, leases.rests.get(lane, (0, 0))[1], mask)

    def _freeze_holder(self, holder: Holder, turned: list[int]) -> bytes:
        here = holder.page is self.page
        return bytes(
            (
                holder.lease.lane,
                NONE if holder.number is None else turned.index(holder.number),
                holder.next,
                holder.steps,
                holder.now,
                holder.connected,
                holder.valid,
                NONE if here else holder.page[HORIZON_AT],
            )
        )


def level() -> Steady:
    """Return a steady timeline that never led UTC."""
    return Steady(0, now=FIRST, elapsed=0)


def units(bounds: Bounds) -> dict[str, object]:
    """Return a tolerance of 0, and the 20 s and the lanes to lease as few as *bounds* says."""
    return {
        "utc.TOLERANCE": 0,
        "timelines.TOLERANCE": 0,
        "timelines.TICKS_PER_SECOND": 1,
        "timelines.LOST_SECONDS": bounds.lost,
        "generation.BLOCK_LANES": 2,
        "leases.LANES": BLOCK_LANES + bounds.lanes,
        "leases.RESERVED": bounds.lanes,
        "leases.PER_USER": bounds.lanes + 1,
    }


def begin(bounds: Bounds) -> Iterator[Host]:
    """Return hosts on which the daemon starts for the first time."""
    for now in bounds.readings:
        host = Host(bounds)
        host.utc = now
        host.start(Reading(now, 0), None)
        yield host


WORLD = World("tests.core.leased_world", Bounds, units=units, begin=begin)

if __name__ == "__main__":
    raise SystemExit(WORLD.main(sys.argv[1:]))
