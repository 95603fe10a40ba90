"""What a host may claim, and what it writes, given what it has read: the rules, without I/O.

Theory of operation

1. A claim begins at the *until* of the record that it replaces: at and past that tick, nobody has
   made anything with the number.
2. Each write replaces a record as it was read. If it is not that one any more, nothing is written:
   so of two hosts, one comes first, and the other sees it.
3. What is written as *until* is what the host may use once the write is confirmed, and no other
   value: not a second reading of the clock, and not what another read of the register shows.
4. *until* goes down only when a host lets its number go. Then it says exactly how far the host got,
   and nothing is made with the number any more.
5. A write whose answer was lost may be in force. The token of the claim tells: it is of this claim
   alone, and a restart takes a new one, so that a copy of the host's state is another holder.

The proof is by a search of all that can happen: tests/fleet/claims_world.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from uuidd.core.ids.ticks import TICKS_PER_SECOND
from uuidd.core.timeline.fence import FOREVER, Claim
from uuidd.fleet.record import Holder, Record

FAR = 60 * TICKS_PER_SECOND
"""A number whose ticks begin so far ahead was used by a wrong clock: it is left to itself."""

Listing = Mapping[int, Record | str]
"""All registers, as ``Registers.all`` returns them."""

Candidates = list[tuple[int, Record | None]]
"""Numbers, each with its register as it was read; None for one that nobody has had."""


class Due(NamedTuple):
    """A *number* that is free at a *tick*, unless its *host* renews it before."""

    tick: int
    number: int
    host: str


def free_from(record: Record | None, *, hold: int) -> int:
    """Return the tick from which a host that does not have a number may claim it.

    One that was let go is free unless its ticks begin more than FAR ahead; one that is held, once
    its holder has been silent for *hold* ticks past its *until*; a reserved one, never.
    """
    if record is None:
        return 0
    if record.reserved:
        return FOREVER
    return record.until + (hold + 1 if record.held else -FAR)


def claimed(
    record: Record | None, *, token: str, until: int, holder: Holder, now: int
) -> tuple[Record, int]:
    """Return the record of a new claim over *record*, and the tick at which the claim begins."""
    begin = 0 if record is None else record.until
    other = {} if record is None else record.other
    own = holder._asdict()
    return Record(token, max(until, begin), held=True, at=now, other=other, **own), begin


def confirmed(namespace: str, number: int, written: Record, begin: int) -> Claim:
    """Return the claim that a write has confirmed, of a record that ``claimed`` has returned."""
    return Claim(namespace, number, written.claim, begin, written.until)


def renewed(record: Record, *, until: int, now: int) -> Record:
    """Return the record that lengthens the claim in *record*, which is this host's."""
    return replace(record, until=max(until, record.until), held=True, at=now)


def released(record: Record, claim: Claim, *, reached: int, now: int) -> Record:
    """Return the record that lets the number go; nothing was made with it at or past *reached*."""
    return replace(record, until=max(reached, claim.begin), held=False, at=now)


def is_ours(record: Record | None, claim: Claim) -> bool:
    """Whether the register still has this claim."""
    return record is not None and record.claim == claim.token


def is_forgotten(record: Record | None, claim: Claim) -> bool:
    """Whether the engine has lost writes: what it has is older than what it had confirmed."""
    return record is None or (record.claim == claim.token and record.until < claim.until)


def candidates(
    registers: Listing, numbers: Sequence[int], *, steady: int, hold: int, had: int | None = None
) -> Candidates:
    """Return those of *numbers* that are free, in the order in which to try them.

    It is *had* alone, which this host was given by hand, if that is reserved or nobody has had it.

    Those whose ticks a host may use at once come first: those that nobody has had, those that were
    let go, and those of silent hosts, each in the order of *numbers*, which should be random: if
    hosts that start together all tried the lowest one, all but one would have to try again. Those
    that the host would have to wait for come last, the shortest wait first.
    """
    if had is not None and had in numbers:
        own = registers.get(had)
        if own is None or (isinstance(own, Record) and own.reserved):
            return [(had, own)]
    ranked: list[tuple[tuple[int, int], int, Record | None]] = []
    for place, number in enumerate(numbers):
        found = registers.get(number)
        if found is None:
            ranked.append(((0, place), number, None))
        elif isinstance(found, Record) and free_from(found, hold=hold) <= steady:
            until = found.until
            rank = (3, until) if until > steady else (2 if found.held else 1, place)
            ranked.append((rank, number, found))
    ranked.sort(key=lambda each: each[0])
    return [(number, found) for _, number, found in ranked]


def next_due(registers: Listing, numbers: Sequence[int], *, hold: int) -> Due | None:
    """Return the one of *numbers*, all of them taken, that is free first if nobody renews it."""
    dues = [
        Due(free_from(found, hold=hold), number, found.host)
        for number in numbers
        if isinstance(found := registers.get(number), Record) and not found.reserved
    ]
    return min(dues, default=None)
