"""A small world of hosts that share one worker number, in which all that can happen is tried.

Each host has a clock, a saved state, and at most one write under way. A write may be answered, or
its answer may be lost, or it may arrive after all when its host has crashed and started again.
Hosts crash, lose their state, stop in order, and take a number that another one still has. What
they do is decided by the product's own rules, so a rule that is wrong gives out a tick twice.

A step is one of the letters in STEPS and a host's number.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import NamedTuple

from uuidd.core.timeline.fence import Claim, Fence
from uuidd.fleet import rules
from uuidd.fleet.record import Holder, Record

WINDOW = 2
NOBODY = Holder()
NAMESPACE, NUMBER = "a fleet", 17


def written(record: Record | None, claim: Claim, until: int) -> Record:
    """Return the record that makes a claim, or lengthens it."""
    return rules.written(record, claim, until=until, holder=NOBODY, now=0)


def claimed(record: Record | None, token: str, steady: int) -> tuple[Record, int]:
    """Return the record of a new claim, and the tick at which the claim begins."""
    claim = rules.begun(NAMESPACE, NUMBER, token, record)
    return written(record, claim, steady + WINDOW), claim.begin


def released(record: Record, claim: Claim, reached: int) -> Record:
    """Return the record that lets the number go."""
    return rules.released(record, claim, reached=reached, now=0)


@dataclass(frozen=True)
class Rules:
    """The rules that the hosts go by: the product's, where no weaker one is given.

    *until* is the tick before which ticks may be given out once a record is confirmed.
    """

    claimed: Callable[[Record | None, str, int], tuple[Record, int]] = claimed
    until: Callable[[Record, int], int] = lambda written, steady: written.until
    resumed: Callable[[Claim, int], Claim] = Claim.resumed
    is_ours: Callable[[Record | None, Claim], bool] = rules.is_ours
    released: Callable[[Record, Claim, int], Record] = released
    replaces_what_was_read: bool = True
    needs_an_answer: bool = True
    saves_before_it_lets_go: bool = True


class Stored(NamedTuple):
    """A register's record: its claim, how far it may be used, whether it is held."""

    token: int
    until: int
    held: bool


class Write(NamedTuple):
    """A write under way, of *record*, whose claim begins at *begin*.

    *fresh* is whether the register is still as the host has read it. *passed* is None until the
    engine has seen the write.
    """

    fresh: bool
    record: Stored
    begin: int
    passed: bool | None = None


class Host(NamedTuple):
    """A host: its *steady* clock, and what it knows.

    It has given out nothing at and past the tick *mark*. What it remembers of that is *lane*, which
    a restart forgets. *claim* is in its memory, *saved* in its state. *found* is the register as it
    was read last, and whether it is still so. *write* is under way, and *late* is one whose host
    does not wait for it any more. *tokens* counts those it has taken.
    """

    steady: int = 0
    mark: int = 0
    lane: int = 0
    up: bool = True
    claim: Claim | None = None
    saved: Claim | None = None
    found: tuple[Stored | None, bool] | None = None
    write: Write | None = None
    late: Write | None = None
    tokens: int = 0


class State(NamedTuple):
    """All that decides what can happen next; *used* are the ticks that were given out."""

    hosts: tuple[Host, ...]
    register: Stored | None = None
    used: frozenset[int] = frozenset()


class Twice(Exception):
    """A tick was given out a second time."""


def token_of(number: int) -> str:
    """Return a token as it is in a register."""
    return f"{number:016x}"


@cache
def record_of(stored: Stored | None) -> Record | None:
    """Return a record as the rules know it."""
    return None if stored is None else Record(token_of(stored.token), stored.until, stored.held)


def stored_of(record: Record) -> Stored:
    """Return what there is to know of a record."""
    return Stored(int(record.claim, 16), record.until, record.held)


def outdated(host: Host) -> Host:
    """Return a host after the register was written: what it has read is of before."""
    found, write, late = host.found, host.write, host.late
    return host._replace(
        found=found and (found[0], False),
        write=write and write._replace(fresh=False),
        late=late and late._replace(fresh=False),
    )


@dataclass(frozen=True, eq=False)
class World:
    """What can happen to hosts that go by *rules* while their clocks go to *ticks*, step by step.

    Each takes *tokens* claims at most, and *late* says whether writes may arrive late.
    """

    rules: Rules
    hosts: int = 2
    ticks: int = 2
    tokens: int = 1
    late: bool = True

    def start(self) -> State:
        """Return the state before anything has happened."""
        return State(tuple(Host() for _ in range(self.hosts)))

    def count(self) -> int:
        """Try all that can happen; return how many states there are. Raises Twice."""
        seen = {self.start()}
        left = deque([self.start()])
        while left:
            for state in self.steps(left.popleft()):
                if state not in seen:
                    seen.add(state)
                    left.append(state)
        return len(seen)

    def steps(self, state: State) -> Iterator[State]:
        """Return each state that can come next. Raises Twice."""
        for at, host in enumerate(state.hosts):
            others = state.hosts[:at], state.hosts[at + 1 :]
            for found, written, used in self._steps_of(host, at, state):
                if written is None:
                    yield State((*others[0], found, *others[1]), state.register, used)
                    continue
                old = outdated(found)
                if host.write != found.write:
                    # Its own write, of which it waits for the answer.
                    old = old._replace(write=found.write and found.write._replace(fresh=True))
                before, after = (tuple(map(outdated, hosts)) for hosts in others)
                yield State((*before, old, *after), written, used)

    def _steps_of(
        self, host: Host, at: int, state: State
    ) -> Iterator[tuple[Host, Stored | None, frozenset[int]]]:
        """Return each next state of a host, with what the register becomes, and the used ticks."""
        _, register, used = state
        for changed in _alone(self, host, at, register):
            yield changed, None, used
        if self._may_give(host):
            tick = host.steady
            if tick in used:
                raise Twice(tick)
            given = host._replace(lane=tick + 1, mark=tick + 1)
            yield given, None, used | {tick}
        if host.write is not None and host.write.passed is None:
            passed = self._passes(host.write)
            told = host._replace(write=host.write._replace(passed=passed))
            yield told, host.write.record if passed else None, used
        if host.late is not None:
            passed = self._passes(host.late)
            yield host._replace(late=None), host.late.record if passed else None, used

    def _may_give(self, host: Host) -> bool:
        if not host.up or host.claim is None or host.steady < host.lane:
            return False
        fence = Fence()
        fence.hold(host.claim)
        return fence.covers(host.steady, 1)

    def _passes(self, write: Write) -> bool:
        return write.fresh or not self.rules.replaces_what_was_read

    def alone(self, host: Host, at: int, register: Stored | None) -> Iterator[Host]:
        """Return what the host becomes by steps that change nothing else."""
        if host.steady < self.ticks:
            yield host._replace(steady=host.steady + 1)
        if not host.up:
            claim = host.saved and self.rules.resumed(host.saved, host.mark)
            yield host._replace(up=True, claim=claim)
            return
        if host.claim != host.saved:
            yield host._replace(saved=host.claim)
        for down in self._downs(host):
            yield down
            if down.saved is not None:
                yield down._replace(saved=None)
        if host.write is None:
            if host.found != (register, True):
                yield host._replace(found=(register, True))
            yield from self._writes(host, at)
        elif host.write.passed is None:
            yield host._replace(write=None, found=None, late=host.write if self.late else host.late)
        else:
            yield self._answered(host, host.write)
            yield host._replace(write=None, found=None)

    def _downs(self, host: Host) -> Iterator[Host]:
        """Return what a crash leaves of a host: its write may still arrive, or never."""
        down = host._replace(up=False, claim=None, found=None, write=None, lane=0)
        yield down
        if self.late and host.write is not None and host.write.passed is None:
            yield down._replace(late=host.write)

    def _writes(self, host: Host, at: int) -> Iterator[Host]:
        """Return the host with each write that it may begin, of what it has read."""
        if host.found is None:
            return
        stored, fresh = host.found
        record = record_of(stored)
        claim = host.claim
        ours = claim is not None and self.rules.is_ours(record, claim)
        if not ours and host.tokens < self.tokens:
            token = token_of(10 * (at + 1) + host.tokens)
            new, begin = self.rules.claimed(record, token, host.steady)
            begun = host._replace(tokens=host.tokens + 1)
            yield self._writing(begun, fresh, new, begin)
        if ours and claim is not None and record is not None:
            until = host.steady + WINDOW
            if until > record.until:
                new = written(record, claim, until)
                yield self._writing(host, fresh, new, claim.begin)
            # It stops in order: its state is saved without the claim, and it lets the number go.
            new = self.rules.released(record, claim, host.mark)
            saved = None if self.rules.saves_before_it_lets_go else host.saved
            stopped = host._replace(up=False, claim=None, found=None, saved=saved, lane=0)
            yield stopped._replace(late=Write(fresh, stored_of(new), 0))

    def _writing(self, host: Host, fresh: bool, new: Record, begin: int) -> Host:
        write = Write(fresh, stored_of(new), begin)
        if not self.rules.needs_an_answer:
            host = host._replace(claim=self._claim(host, write))
        return host._replace(write=write)

    def _answered(self, host: Host, write: Write) -> Host:
        if not write.passed:
            return host._replace(write=None, found=None)
        found = (write.record, write.fresh)
        return host._replace(write=None, found=found, claim=self._claim(host, write))

    def _claim(self, host: Host, write: Write) -> Claim:
        record = record_of(write.record)
        assert record is not None
        claim = Claim(NAMESPACE, NUMBER, record.claim, write.begin, 0)
        until = self.rules.until(record, host.steady)
        return replace(rules.confirmed(claim, record), until=until)


@cache
def _alone(world: World, host: Host, at: int, register: Stored | None) -> list[Host]:
    """Return the steps of a host alone, which are the same whatever the others are."""
    return list(world.alone(host, at, register))
