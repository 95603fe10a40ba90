"""Threads that share a cutter, in C and in Python: nothing comes twice, and nothing is mixed up.

Without the GIL all of them are in the extension at once. With it they take turns, as often as it
lets them. The cutter in Python needs the GIL.
"""

from __future__ import annotations

import os
import sys
import threading
from functools import partial
from itertools import islice
from typing import Any
from uuid import UUID

import pytest

from tests import kinds
from tests.client.conftest import together
from tests.client.cutters import Hand, core
from tests.tools import output
from uuidd.core.ids.places import Origin
from uuidd_client.cutter import Cutter
from uuidd_client.system import SYSTEM_CLOCK

THREADS = 4

READ = ["in C", "in Python"]
"""Who reads the clock, or random bytes: a function of Python lets other threads go on."""

CLOCKS = [None, lambda: SYSTEM_CLOCK.utc_ns()]

GIL = getattr(sys, "_is_gil_enabled", lambda: True)()

COUNTS = pytest.mark.parametrize("count", [1000, pytest.param(200_000, marks=pytest.mark.thorough)])
"""How many ids each thread draws."""


pytestmark = pytest.mark.usefixtures("turns_are_short")


@pytest.fixture(autouse=True)
def _needs_the_gil(request: pytest.FixtureRequest) -> None:
    if not GIL and "new" in request.fixturenames and request.getfixturevalue("new") is Cutter:
        pytest.skip("channels share no such cutter between threads without the GIL")


def drawn(cutter: Any, kind: str, count: int) -> list[UUID]:
    tries = (cutter.one(kind, "uuid") for _ in range(1000 * count))
    return [*islice(filter(None, tries), count)]


def now() -> int:
    return SYSTEM_CLOCK.utc_tick()


@COUNTS
@pytest.mark.parametrize("clock", CLOCKS, ids=READ)
@pytest.mark.parametrize("kind", ["v1", "v7"])
def test_threads_take_no_tick_of_a_lane_twice(new: Any, kind: str, clock: Any, count: int) -> None:
    hand = Hand(new)
    cutter = new(hand.alive, 0.1, clock)
    cutter.source = hand.lane().cutter.source
    begun = now()

    def lists() -> list[UUID]:
        return [id for _ in range(count // 10) for id in cutter.many(kind, "uuid", 3)]

    parts = together(lists, *[lambda: drawn(cutter, kind, count)] * THREADS)
    found = [[kinds.tick(kind, id) for id in ids] for ids in parts]
    assert all(ticks == sorted(ticks) for ticks in found)
    assert all(len(ticks) == count for ticks in found[1:])
    every = {tick for ticks in found for tick in ticks}
    assert len(every) == THREADS * count + len(found[0])
    assert begun - 1000 <= min(every)
    assert max(every) <= now()


@COUNTS
@pytest.mark.parametrize("clock", CLOCKS, ids=READ)
def test_an_id_is_of_one_source(new: Any, clock: Any, count: int) -> None:
    """Another thread replaces it meanwhile.

    The source with number n has the node n, the clock sequence n, and the places from n thousand
    on.
    """
    hand = Hand(new)
    cutter = new(hand.alive, 0.1, clock)
    ended = threading.Event()

    def change() -> list[UUID | None]:
        found = []
        try:
            for number in range(1, count // 3):
                first = number * 1000
                origin = Origin(number, clock_seq=number % (1 << 14))
                cutter.source = hand.source(first, first + 50, origin=origin)
                found.append(cutter.one("v1", "uuid"))
        finally:
            ended.set()
        return found

    def draw() -> list[UUID | None]:
        found = []
        while not ended.is_set():
            found.append(cutter.one("v1", "uuid"))
        return found

    parts = together(change, *[draw] * THREADS)
    ids = [id for part in parts for id in part if id is not None]
    assert len({*ids}) == len(ids)
    for id in ids:
        first = id.node * 1000
        assert id.clock_seq == id.node % (1 << 14)
        assert first <= kinds.tick("v1", id) < first + 50


@COUNTS
@pytest.mark.parametrize("random", [None, lambda size: os.urandom(size)], ids=READ)
@pytest.mark.parametrize("kind", ["v4", "v7"])
def test_threads_never_have_the_same_random_bits(
    new: Any, kind: str, random: Any, count: int
) -> None:
    hand = Hand(new)
    cutter = new(hand.alive, 0.1, None, random)
    given = (hand.all() if kind == "v4" else hand.lane()).cutter.source
    cutter.source = given

    def change() -> list[UUID]:
        for _ in range(count):
            cutter.source = given
        return []

    parts = together(change, *[lambda: drawn(cutter, kind, count)] * THREADS)
    tails = {id.int & (1 << 52) - 1 for ids in parts for id in ids}
    assert len(tails) == THREADS * count
    assert 0 not in tails


@COUNTS
def test_what_was_used_never_falls(new: Any, count: int) -> None:
    cutter = Hand(new).cutter

    def raised(step: int) -> bool:
        for end in range(step, count, 4):
            cutter.raise_to(end)
            if cutter.used < end:
                return False
        return True

    assert all(together(*[partial(raised, step) for step in range(THREADS)]))


@COUNTS
@pytest.mark.skipif(core is None, reason="it is of the extension")
def test_threads_that_share_a_draw_refill_it_in_turn(count: int) -> None:
    taking = threading.Lock()
    first = [0]

    def refill() -> tuple[Any, str]:
        with taking:
            first[0] += 1000
            hand = Hand(core.Cutter).block(first[0], 500)
        return hand.cutter, hand.one("v1", "text")

    draw = core.Draw("v1", "text", refill)
    parts = together(*[lambda: [draw() for _ in range(count)]] * THREADS)
    ids = {id for part in parts for id in part}
    assert len(ids) == THREADS * count


STAYS = """
import sys
enabled = getattr(sys, "_is_gil_enabled", lambda: True)
before = enabled()
import uuidd_client
uuidd_client.Client("/nowhere").make("v4", 1)
assert uuidd_client.implementation == "c"
assert enabled() == before
"""


@pytest.mark.process
@pytest.mark.skipif(core is None, reason="it is of the extension")
def test_the_extension_does_not_bring_the_gil_back() -> None:
    """As Python does, with a warning, for an extension that does not say that it needs none."""
    output(sys.executable, "-W", "error", "-c", STAYS)
