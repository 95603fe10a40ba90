"""All that a daemon gave out, by what makes an id: no tick may come twice."""

from __future__ import annotations

import uuid
from typing import Any

from tests import kinds
from tests.daemon.fakes import Inside
from tests.judge import Judge, Span
from uuidd.core.ids.ticks import TICKS_PER_MS, UNIX_EPOCH
from uuidd.core.timeline.generation import Generation
from uuidd.core.timeline.page import Lease

Key = tuple[int, int]
"""A node and a clock sequence; of the steady timeline ``STEADY``."""

STEADY: Key = (-1, -1)


class GivenOut:
    """Blocks and ids, of all rounds for what comes twice, and of the last for what moved."""

    def __init__(self) -> None:
        self._judge = Judge()
        self._ids: set[str] = set()
        self._tokens: set[int] = set()
        # When the last lease of each lane begins: of earlier rounds, and of this one.
        self._before: dict[int, int] = {}
        self._begins: dict[int, int] = {}
        self.ends: dict[Key, int] = {}
        self.unsure: set[str] = set()

    def begin(self) -> None:
        """Begin a round: forget what was given in the last, but for what may come twice."""
        self._before |= self._begins
        self.ends.clear()
        self.unsure.clear()

    def take(self, result: dict[str, Any], timeline: str, count: int, whole: bool) -> None:
        """Note the result of a take, as asked with these params."""
        first, given = result["first"], result["count"]
        exact = UNIX_EPOCH + result["unix_ms"] * TICKS_PER_MS + result["tick_in_ms"]
        assert exact == first, "both forms of the first tick are the same"
        assert given == count if whole else 1 <= given <= count, "as many as asked, or fewer"
        node = result["node"]
        assert type(node) is bytes, "a node has 6 bytes"
        assert len(node) == 6, "a node has 6 bytes"
        if timeline == "utc":
            self.block((int.from_bytes(node, "big"), result["clock_seq"]), first, given)
        else:
            told = result.keys() - {"page_epoch"}
            assert told == {*_TOLD, "worker", "epoch"}, "a steady one"
            self.block(STEADY, first, given)

    def v1(self, octets: bytes, count: int) -> None:
        """Note the v1 UUID of the first of *count* ticks."""
        found = uuid.UUID(bytes=octets)
        assert found.version == 1, "what libuuid's callers get is a v1"
        self.block((found.node, found.clock_seq), found.time, count)

    def make(self, kind: str, ids: list[str]) -> None:
        """Note ids."""
        for text in ids:
            assert text not in self._ids, "no id comes twice"
            self._ids.add(text)
        if kind == "v4":
            return
        values = [kinds.number(kind, text) for text in ids]
        ticks = [kinds.tick(kind, value) for value in values]
        if kind in kinds.GREGORIAN:
            tails = {value & (1 << 62) - 1 for value in values}
            assert len(tails) == 1, "ids made together share clock sequence and node"
            tail = tails.pop()
            self._runs((tail & (1 << 48) - 1, tail >> 48), ticks)
        else:
            self._runs(STEADY, ticks)
            # The last one's tick need not be the last of its block.
            self.unsure.add("steady")

    def lease(self, lease: Lease) -> None:
        """Note a lease."""
        assert lease.token not in self._tokens, "each lease has a token of its own"
        self._tokens.add(lease.token)
        # Callers are not judged in the order in which they were answered, and a renewal in between
        # may let two of them have one lane in a round.
        earlier = self._before.get(lease.lane, 0)
        assert earlier <= lease.begin, "the leases of a lane begin one by one"
        self._begins[lease.lane] = max(lease.begin, self._begins.get(lease.lane, 0))

    def _runs(self, key: Key, ticks: list[int]) -> None:
        """Note ticks; those in a row as one block, because there may be a thousand."""
        first = last = ticks[0]
        for tick in ticks[1:]:
            if tick != last + 1:
                self.block(key, first, last + 1 - first)
                first = tick
            last = tick
        self.block(key, first, last + 1 - first)

    def block(self, key: Key, first: int, count: int) -> None:
        """Note a block. Raises Repeated if one of its ticks was given out before."""
        end = first + count
        self._judge.note(Span(key, first, end))
        self.ends[key] = max(end, self.ends.get(key, 0))

    def check(self, *, now: int) -> None:
        """Fail if a tick of UTC lies past *now*."""
        for key, end in self.ends.items():
            assert key == STEADY or end <= now + 1, "no tick lies past now"


_TOLD = {"first", "unix_ms", "tick_in_ms", "count", "node"}
"""What the result of a take of either timeline has."""


class Lanes:
    """The ``next`` of each lane of a daemon, as it was when this was made."""

    def __init__(self, inside: Inside) -> None:
        self._inside = inside
        self._before = _next(inside)
        self._epoch = inside.timelines.utc.leases.epoch
        self._steps_back = inside.clock.steps_back

    def check(self, given_out: GivenOut, *, unread: bool) -> None:
        """Fail if a lane moved without a block that ends where it is now.

        *unread*: somebody may have been given what nobody read. A renewal, or a step of UTC back,
        may move the steady one.
        """
        if unread:
            return
        lifted = (
            self._inside.timelines.utc.leases.epoch != self._epoch
            or self._inside.clock.steps_back != self._steps_back
        )
        for key, (begin, reached) in _next(self._inside).items():
            before = self._before.get(key, (begin, begin))[1]
            if reached == before or (key == STEADY and (given_out.unsure or lifted)):
                continue
            assert given_out.ends.get(key) == reached, "a refused request moves no lane"


def _next(inside: Inside) -> dict[Key, tuple[int, int]]:
    """Return where each lane began, and where it is."""
    steady = inside.timelines.steady.next
    found: dict[Key, tuple[int, int]] = {STEADY: (steady, steady)}
    utc = inside.timelines.utc
    for generation in (utc.open, utc.volatile):
        if generation is not None:
            found |= _lanes(generation)
    return found


def _lanes(generation: Generation) -> dict[Key, tuple[int, int]]:
    return {
        (generation.node, generation.clock_seq + place): (generation.begin, lane.next)
        for place, lane in enumerate(generation.lanes)
    }
