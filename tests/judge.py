"""The one judge of P1: no tick of a place comes twice, and no id does.

A *place* is what two ids with the same tick differ in: for example a node and a clock sequence, a
lane of the steady kinds, or a worker number. It is any key that can be hashed.
"""

from __future__ import annotations

import threading
from bisect import bisect
from collections.abc import Hashable, Iterable
from itertools import pairwise
from operator import attrgetter
from typing import Any, NamedTuple

from tests import kinds
from uuidd.core.ids import uuids
from uuidd.core.timeline.outcomes import Block

_FIRST = attrgetter("first")


class Repeated(AssertionError):
    """A tick or an id was given out that must not be."""


class Span(NamedTuple):
    """The ticks of a *place* from *first* to before *end*, which *taker* was given."""

    place: Any
    first: int
    end: int
    taker: str = "somebody"


def compare(span: Span, earlier: Iterable[Span]) -> None:
    """Raise Repeated if *span* has a tick of its place in common with one of the *earlier* ones.

    This is the rule itself: whoever keeps what was given out, and in whatever form, asks here.
    """
    for other in earlier:
        first, end = max(span.first, other.first), min(span.end, other.end)
        if span.place == other.place and first < end:
            raise Repeated(
                f"ticks {first} to {end - 1} of {span.place!r} came twice: {span.taker} was given"
                f" {span.first} to {span.end - 1}, and before that {other.taker} was given"
                f" {other.first} to {other.end - 1}"
            )


class Judge:
    """Compares each span with all that were noted before. Threads may share a judge."""

    def __init__(self) -> None:
        self.spans: dict[Any, list[Span]] = {}
        """What was given out in each place, in the order of the ticks."""
        self._one_by_one = threading.Lock()

    def note(self, span: Span) -> None:
        """Note a span. Raises Repeated, and does not note it, if it overlaps an earlier one."""
        assert span.first < span.end, f"{span} has no tick"
        with self._one_by_one:
            spans = self.spans.setdefault(span.place, [])
            at = bisect(spans, span.first, key=_FIRST)
            # These two alone can overlap it, because those noted so far do not overlap.
            compare(span, spans[max(at - 1, 0) : at + 1])
            spans.insert(at, span)


def assert_apart(spans: Iterable[Span]) -> None:
    """Raise Repeated if two of the spans overlap."""
    judge = Judge()
    # In order, so that each is noted at the end of a list.
    for span in sorted(spans, key=_FIRST):
        judge.note(span)


def assert_no_id_twice(drawn: Iterable[Iterable[Hashable]]) -> None:
    """Raise Repeated if an id came twice. *drawn* is what each taker drew."""
    takers: dict[Hashable, int] = {}
    for number, ids in enumerate(drawn):
        for id in ids:
            if id in takers:
                raise Repeated(f"{id!r} came twice: to taker {takers[id]}, and to taker {number}")
            takers[id] = number


def assert_rising(drawn: Iterable[Any]) -> None:
    """Fail if what one taker drew is not in strict order."""
    for one, next in pairwise(drawn):
        assert one < next, f"{next!r} was drawn after {one!r}"


def first_inversion(
    drawn: Iterable[tuple[int, int, int]], by: int
) -> tuple[tuple[int, int, int], tuple[int, int, int]] | None:
    """Return ids of which the first was had before the second was asked for, and yet is later.

    Each is when it was asked for, when it was had, and its tick. Later by *by* ticks or more; None
    when there are none such.
    """
    each = sorted(drawn)
    had = sorted(each, key=lambda one: one[1])
    latest, index = had[0], 0
    for one in each:
        while index < len(had) and had[index][1] < one[0]:
            latest = max(latest, had[index], key=lambda one: one[2])
            index += 1
        if index and latest[2] - one[2] >= by:
            return latest, one
    return None


def of_block(block: Block) -> Span:
    """Return the span of a block of utc."""
    return Span((block.node, block.clock_seq), block.first, block.first + block.count)


def of_id(id: int) -> Span:
    """Return the span of a v1, in its node and clock sequence, or of a v7, in its lane: a tick."""
    if uuids.version(id) == 7:
        tick = v7_tick(id)
        return Span((kinds.fields("v7", id)["lane"],), tick, tick + 1)
    tick, clock_seq, node = kinds.gregorian(id)
    return Span((node, clock_seq), tick, tick + 1)


def v7_tick(id: int) -> int:
    """Return the tick of a v7 of ours."""
    return kinds.tick("v7", id)
