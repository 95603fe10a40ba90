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

from uuidd.core.ids.ticks import TICKS_PER_SECOND
from uuidd.core.timeline.fence import FOREVER, Claim
from uuidd.fleet.record import Holder, Record

FAR = 60 * TICKS_PER_SECOND
"""A number whose ticks begin so far ahead was used by a wrong clock: it is left to itself."""

Listing = Mapping[int, Record | str]
"""All registers, as ``Registers.all`` returns them."""

Candidate = tuple[int, Record | None]
"""A number, and its register as it was read; None for a number that nobody has had."""


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


def begun(namespace: str, number: int, token: str, record: Record | None) -> Claim:
    """Return a new claim, to be written over *record*: of no tick before the first write."""
    begin = 0 if record is None else record.until
    return Claim(namespace, number, token, begin, begin)


def written(record: Record | None, claim: Claim, *, until: int, holder: Holder, now: int) -> Record:
    """Return what to write over *record*, so that it is the register of *claim* up to *until*."""
    end, other = (0, {}) if record is None else (record.until, record.other)
    own = holder._asdict()
    return Record(claim.token, max(until, end), held=True, at=now, other=other, **own)


def confirmed(claim: Claim, record: Record) -> Claim:
    """Return what *claim* is once the write of *record*, which ``written`` has returned, is."""
    return replace(claim, until=record.until)


def released(record: Record, claim: Claim, *, reached: int, now: int) -> Record:
    """Return the record that lets the number go; nothing was made with it at or past *reached*."""
    return replace(record, until=max(reached, claim.begin), held=False, at=now)


def is_ours(record: Record | None, claim: Claim) -> bool:
    """Whether the register still has this claim."""
    return record is not None and record.claim == claim.token


def candidates(
    registers: Listing, numbers: Sequence[int], *, steady: int, hold: int, had: int | None = None
) -> list[Candidate]:
    """Return those of *numbers* that are free, in the order in which to try them.

    It is *had* alone, which this host was given by hand, if that is reserved or nobody has had it.

    Those whose ticks a host may use at once come first: those that nobody has had, those that were
    let go, and those of silent hosts, each in the order of *numbers*, which should be random: if
    hosts that start together all tried the lowest one, all but one would have to try again. Those
    that the host would have to wait for come last, the shortest wait first.
    """
    ranked: list[tuple[tuple[int, int], Candidate]] = []
    for number in numbers:
        found = registers.get(number)
        if number == had and (found is None or (isinstance(found, Record) and found.reserved)):
            return [(had, found)]
        if isinstance(found, str) or free_from(found, hold=hold) > steady:
            continue
        rank = (0, 0) if found is None else (max(0, found.until - steady), 1 + found.held)
        ranked.append((rank, (number, found)))
    return [each for _, each in sorted(ranked, key=lambda each: each[0])]


def next_due(
    registers: Listing, numbers: Sequence[int], *, hold: int
) -> tuple[int, int, str] | None:
    """Return when the first of *numbers*, all of them taken, is free if nobody renews it.

    The tick, the number and its host; None if all are reserved or unreadable.
    """
    dues = [
        (free_from(found, hold=hold), number, found.host)
        for number in numbers
        if isinstance(found := registers.get(number), Record) and not found.reserved
    ]
    return min(dues, default=None)
