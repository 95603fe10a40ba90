"""Visiting every state of a small world, and what its hosts have in common.

Hosts whose states have the same bytes are one: whatever may follow is the same for all of them.
"""

from __future__ import annotations

import argparse
import copyreg
import pickle
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, fields
from typing import Any, Generic, TypeVar, get_args, get_type_hints
from unittest.mock import patch

from tests.judge import Repeated
from uuidd.core.timeline.state import Horizon, State
from uuidd.core.timeline.steady import Steady
from uuidd.core.timeline.timelines import Timelines
from uuidd.core.timeline.utc import Utc

NONE = 255
"""A byte that stands for None."""

FIRST = 2
"""The lowest UTC: two ticks from there are past zero, where unused generations begin."""

_UNSAVED = Horizon()


class OutOfBounds(Exception):
    """The world ends here."""


@dataclass(frozen=True)
class Bounds:
    """How large a world is: *ticks* values of UTC, *ring* generations.

    At most *failures* saves fail before one completes, and the daemon starts again at most
    *restarts* times. *moved* lets the folder of the state be moved away, which voids the saves so
    far.
    """

    ticks: int = 3
    ring: int = 1
    restarts: int = 1
    failures: int = 0
    moved: bool = False

    @property
    def readings(self) -> range:
        """Every value that UTC may have."""
        return range(FIRST, FIRST + self.ticks)


class Disk:
    """What the disk may hold of a host's state: one of *states*.

    They are that of the last save that completed, and those of any begun since. A save that fails
    may have reached the disk or not. *flight* is the state of the save under way.
    """

    def __init__(self) -> None:
        self.states: list[State | None] = [None]
        self.flight: State | None = None

    def begin(self, state: State) -> None:
        """A save of *state* gets under way."""
        self.flight = state
        self.states.append(state)

    def end(self, *, completed: bool) -> State:
        """The save ends; return its state."""
        assert self.flight is not None
        state, self.flight = self.flight, None
        if completed:
            self.states = [state]
        return state


class Host:
    """A small host in one of its states: what is in its memory, and what its disk may hold."""

    timelines: Timelines

    def __init__(self, bounds: Bounds) -> None:
        self.last = FIRST + bounds.ticks
        """The highest S."""
        self.disk = Disk()
        self.restarts = self.failures = self.elapsed = 0
        self.closed = False

    def moves(self) -> Iterator[Any]:
        """Return all that may happen."""
        raise NotImplementedError

    def happen(self, move: Any) -> None:
        """Let it happen. Raises Repeated, or OutOfBounds."""
        raise NotImplementedError

    def freeze(self) -> bytes:
        """Return the state."""
        raise NotImplementedError

    def happen_to_daemon(self, what: str) -> None:
        """Let a move happen that is the same in each world, and has no time."""
        match what:
            case "turn volatile":
                self.timelines.utc.use_volatile("no save")
            case "void saves":
                self.timelines.void_saves()
            case "close":
                self.timelines.close()
                self.closed = True
            case "save completes" | "save fails":
                self.end_save(completed=what == "save completes")
            case _:
                raise AssertionError(what)

    def ends_of_save(self, failures: int) -> Iterator[str]:
        """Return how the save under way may end."""
        yield "save completes"
        if self.failures < failures:
            yield "save fails"

    def end_save(self, *, completed: bool) -> None:
        """Let the save end."""
        state = self.disk.end(completed=completed)
        self.timelines.end_save(state, completed=completed)
        self.failures = 0 if completed else self.failures + 1

    def turned(self) -> list[int]:
        """Return the numbers of the generations, that of the open one first."""
        utc = self.timelines.utc
        return [(utc.number + step) % utc.size for step in range(utc.size)]


def freeze_ring(utc: Utc, turned: list[int]) -> Iterator[int]:
    """Return as bytes what bears on which generation opens, and on what it may give out."""
    # What bars the search counts while none is open, and is set when that begins.
    yield utc.none_before if utc.open is None else 0
    # The open one's mark is not read again before it is set again.
    yield utc.marks.get(utc.number, 0) if utc.open is None else 0
    for number in turned[1:]:
        yield utc.marks.get(number, 0)
    yield from _freeze_horizon(_UNSAVED if utc.open is None else utc.horizon)


def freeze_steady(steady: Steady, elapsed: int) -> Iterator[int]:
    """Return as bytes what bears on what *steady* gives out."""
    # Two ticks of elapsed time are one of S. Without slewing, no time that elapsed counts.
    ran, rest = divmod(elapsed - steady.slew.since, 2)
    yield from (steady.slew.tick + ran, rest) if steady.rollback == "slew" else (0, 0)
    yield from (steady.next, steady.held_until)
    yield from _freeze_horizon(steady.horizon)


def _freeze_horizon(horizon: Horizon) -> tuple[int, int]:
    return horizon.saved, byte(horizon.in_flight)


def byte(number: int | None) -> int:
    """Return the byte that stands for a number, or for None."""
    return NONE if number is None else number


@dataclass(frozen=True, slots=True)
class Seen:
    """How much was seen."""

    states: int
    moves: int
    depth: int
    """The most moves that it takes to come to a state."""


AnyBounds = TypeVar("AnyBounds", bound=Bounds)


class World(Generic[AnyBounds]):
    """A world of *bounds*, which ``python -m module`` explores.

    *begin* returns hosts on which the daemon starts for the first time. *units* are the constants
    of the product's timelines, named MODULE.NAME, that are other ones while this runs.
    """

    def __init__(
        self,
        module: str,
        bounds: type[AnyBounds],
        *,
        units: Callable[[AnyBounds], Mapping[str, object]],
        begin: Callable[[AnyBounds], Iterable[Host]],
    ) -> None:
        self._module, self._bounds = module, bounds
        self._units, self._begin = units, begin

    def explore(self, bounds: AnyBounds) -> Seen:
        """Visit every state. Raises Repeated, with the shortest way there."""
        with ExitStack() as undo:
            for name, value in self._units(bounds).items():
                undo.enter_context(patch(f"uuidd.core.timeline.{name}", value))
            return _explore(self._begin(bounds))

    def main(self, given: list[str]) -> int:
        """Visit every state of a world as large as *given* says, and tell how many there are."""
        prog = f"python -m {self._module}"
        parser = argparse.ArgumentParser(prog=prog, description=self._bounds.__doc__)
        hints = get_type_hints(self._bounds)
        for field in fields(self._bounds):
            name, hint = f"--{field.name.replace('_', '-')}", hints[field.name]
            if hint is bool:
                how: dict[str, Any] = {"action": argparse.BooleanOptionalAction}
            elif hint is int:
                how = {"type": int, "metavar": "N"}
            elif isinstance(field.default, tuple):
                how = {"nargs": "+"}
            else:
                how = {"choices": get_args(hint)}
            parser.add_argument(name, default=field.default, **how)
        chosen = self._bounds(**vars(parser.parse_args(given)))
        begun = time.monotonic()
        seen = self.explore(chosen)
        sys.stdout.write(f"{chosen}\n{seen}\n{time.monotonic() - begun:.1f} s\n")
        return 0


def _explore(beginnings: Iterable[Host]) -> Seen:
    edge = {host.freeze(): pickle.dumps(host) for host in beginnings}
    came_from: dict[bytes, tuple[bytes, Any]] = dict.fromkeys(edge, (b"", None))
    moves = depth = 0
    while edge:
        ahead: dict[bytes, bytes] = {}
        for frozen, kept in edge.items():
            then, host = frozen, _thaw(kept)
            for move in list(host.moves()):
                if then != frozen:
                    host = _thaw(kept)
                try:
                    then = b""
                    host.happen(move)
                    then = host.freeze()
                except OutOfBounds:
                    continue
                except Repeated as repeated:
                    repeated.add_note(f"at {move}")
                    while move := came_from[frozen][1]:
                        repeated.add_note(f"after {move}")
                        frozen = came_from[frozen][0]
                    raise
                moves += then != frozen
                if then not in came_from:
                    came_from[then] = frozen, move
                    ahead[then] = pickle.dumps(host)
        edge = ahead
        depth += bool(edge)
    return Seen(len(came_from), moves, depth)


def _thaw(kept: bytes) -> Host:
    host: Host = pickle.loads(kept)  # noqa: S301 - our own bytes
    return host


def _reduced(value: State) -> tuple[type, tuple[object, ...]]:
    return type(value), tuple(getattr(value, field.name) for field in fields(value))


# This takes a third of the time that a dataclass with slots takes by itself.
copyreg.pickle(State, _reduced)
