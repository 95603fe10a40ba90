"""Threads that share what the C extension makes: nothing comes twice, and nothing is mixed up.

Without the GIL all of them are in the extension at once. With it they take turns, as often as it
lets them.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Any, TypeVar
from uuid import UUID

import pytest

from tests.client.cutters import FOREVER, Hand, core
from tests.client.lanes import Lanes
from tests.client.test_core_draw import EACH_WAY, WAYS
from uuidd.core.ids import versions
from uuidd.core.ids.layouts import Origin
from uuidd.core.ids.ticks import UNIX_EPOCH
from uuidd_client.source import utc_tick
from uuidd_client.system import SYSTEM_CLOCK

THREADS = 4
PATIENCE = 60.0

Found = TypeVar("Found")

COUNTS = pytest.mark.parametrize("count", [2000, pytest.param(200_000, marks=pytest.mark.thorough)])
"""How many ids each thread draws."""

CLOCKS: dict[str, Callable[[], int]] = {
    "system": SYSTEM_CLOCK.utc_ns,
    "function": lambda: SYSTEM_CLOCK.utc_ns(),
}
"""The system's clock, read in C, and by a function of Python that lets other threads go on."""

SOURCES: dict[str, Callable[[int], bytes]] = {
    "system": os.urandom,
    "function": lambda count: os.urandom(count),
}
"""The system's random bytes, read in C, and by a function of Python."""


@pytest.fixture(autouse=True)
def _take_turns_often() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.fixture
def lanes() -> Iterator[Lanes]:
    """Return what leases lanes, without an end."""
    lanes = Lanes(FOREVER)
    lanes.begin = 0
    yield lanes
    lanes.close()


def together(*works: Callable[[], Found]) -> list[Found]:
    """Do each in a thread of its own, all at once, and return what they returned."""
    ready = threading.Barrier(len(works))

    def do(work: Callable[[], Found]) -> Found:
        ready.wait(PATIENCE)
        return work()

    with ThreadPoolExecutor(len(works)) as pool:
        return [future.result() for future in [pool.submit(do, work) for work in works]]


def drawn(hand: Hand, count: int) -> list[UUID]:
    """Return so many ids, each drawn until there is one."""
    tries = (hand.one("uuid") for _ in range(1000 * count))
    return [*islice((id for id in tries if id is not None), count)]


def tick(id: UUID) -> int:
    """Return the tick of an id."""
    return versions.v7_tick(id.int) if id.version == 7 else versions.gregorian_fields(id.int).tick


def now() -> int:
    """Return the tick of now."""
    return utc_tick(SYSTEM_CLOCK)


@COUNTS
@pytest.mark.parametrize("clock", CLOCKS)
@pytest.mark.parametrize("kind", ["v1", "v7"])
def test_threads_take_no_tick_of_a_lane_twice(
    lanes: Lanes, kind: str, clock: str, count: int
) -> None:
    """Those of one thread rise, and none is ahead of UTC."""
    hand = Hand(kind, clock=CLOCKS[clock]).hold(lanes)
    begun = now()
    found = [[tick(id) for id in ids] for ids in together(*[lambda: drawn(hand, count)] * THREADS)]
    assert all(ticks == sorted(ticks) and len(ticks) == count for ticks in found)
    every = {tick for ticks in found for tick in ticks}
    assert len(every) == THREADS * count
    assert begun <= min(every)
    assert max(every) <= now()


@COUNTS
@pytest.mark.parametrize("clock", CLOCKS)
def test_an_id_is_of_one_source(lanes: Lanes, clock: str, count: int) -> None:
    """Another thread leases lanes, lends places, and takes back what is left, meanwhile.

    The source with number n has the node n and, if it is of places, those from n million on.
    """
    hand = Hand("v1", clock=CLOCKS[clock])
    lease = lanes.lease()
    left: dict[int, int] = {}
    ended = threading.Event()

    def hold(number: int, token: int) -> None:
        origin = Origin(number, clock_seq=number % (1 << 14))
        hand.cutter.hold(lease.page, lease.at, token, 0, FOREVER, FOREVER, origin)

    def lend(number: int) -> None:
        origin = Origin(number, clock_seq=number % (1 << 14))
        hand.lend(number * 1_000_000, 50, seconds=1e9, origin=origin)

    def change() -> list[UUID]:
        found = []
        try:
            for number in range(1, count // 10, 3):
                # No lane, so there are only the places.
                hold(number, lease.token + 1)
                lend(number + 1)
                found.append(hand.one())
                hold(number + 2, lease.token)
                left[number + 1] = hand.cutter.take_back()
                found += drawn(hand, 1)
                assert found[-1].node == number + 2
        finally:
            ended.set()
        return [id for id in found if id is not None]

    def draw() -> list[UUID]:
        found = []
        while not ended.is_set():
            found.append(hand.one())
        return [id for id in found if id is not None]

    ids = [id for part in together(change, *[draw] * THREADS) for id in part]
    assert len({tick(id) for id in ids}) == len(ids)
    of_places = [id for id in ids if id.node in left]
    assert {id.node for id in of_places} == {*left}
    for id in ids:
        number = id.node
        assert id.clock_seq == number % (1 << 14)
        if number in left:
            end = left[number] or number * 1_000_000 + 50
            assert number * 1_000_000 <= tick(id) < end
        else:
            assert tick(id) > UNIX_EPOCH


@COUNTS
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("kind", ["v4", "v7"])
def test_threads_never_have_the_same_random_bits(
    lanes: Lanes, kind: str, source: str, count: int
) -> None:
    """Nor those that were wiped, while another thread drops what was read ahead."""
    hand = Hand(kind, clock=SYSTEM_CLOCK.utc_ns, random=SOURCES[source]).hold(lanes)
    lease = hand.leased
    assert lease is not None

    def change() -> list[UUID]:
        for _ in range(count):
            hand.cutter.hold(lease.page, lease.at, lease.token, 0, FOREVER, FOREVER, lease.origin)
        return []

    parts = together(change, *[lambda: drawn(hand, count)] * THREADS)
    tails = {id.int & (1 << 52) - 1 for ids in parts for id in ids}
    assert len(tails) == THREADS * count
    assert 0 not in tails


@COUNTS
def test_threads_raise_a_mark_past_a_tick_once(count: int) -> None:
    """Whoever raises it has the tick."""
    mark = core.Mark()

    def reserve() -> list[int]:
        return [tick for tick in range(count) if mark.raise_to(tick + 1) <= tick]

    reserved = [tick for ticks in together(*[reserve] * THREADS) for tick in ticks]
    assert len(set(reserved)) == len(reserved) > 0
    assert mark.end == count


@COUNTS
@EACH_WAY
def test_threads_that_share_a_function_refill_it_in_turn(way: str, count: int) -> None:
    """Each refill has another cutter, with places of its own."""
    taking = threading.Lock()
    first = [0]

    def refill() -> tuple[Any, str]:
        with taking:
            first[0] += 1000
            hand = Hand()
            hand.lend(first[0], 500)
        return hand.cutter, hand.one("text")

    draw = WAYS[way]("text", refill)
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
def test_the_extension_does_not_bring_the_gil_back() -> None:
    """As Python does, with a warning, for an extension that does not say that it needs none."""
    subprocess.run([sys.executable, "-W", "error", "-c", STAYS], check=True, timeout=PATIENCE)
