"""The span of UTC in which ids that were made ahead count, for each way of drawing them."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from tests.client.fakes import NODE, Time, Unleased, set_random
from tests.client.lanes import Lanes
from uuidd.core.ids.kinds import KINDS
from uuidd.core.timeline import Block, SteadyBlock
from uuidd_client import Client, channel, life
from uuidd_client.life import Watch

if TYPE_CHECKING:
    from uuidd_client.client import Kind

pytestmark = pytest.mark.usefixtures("implementation")

TIMED = [kind for kind, found in KINDS.items() if found.timeline]


class Now(Unleased):
    """A daemon whose blocks end at the UTC of the request; steady ones never go back.

    *asked* counts the requests.
    """

    def __init__(self, time: Time) -> None:
        self._time = time
        self._steady = 0
        self.asked = 0

    def take(
        self, timeline: str, _: int, *, wait: bool = False
    ) -> tuple[Block | SteadyBlock, Watch]:
        """Return a thousand ticks of *timeline*."""
        self.asked += 1
        first = self._time.utc - 999
        if timeline == "utc":
            return Block(first, 1000, 5, NODE), self.watch
        first = max(first, self._steady)
        self._steady = first + 1000
        return SteadyBlock(first, 1000, NODE, 5, 0), self.watch


@pytest.fixture
def source(time: Time, monkeypatch: pytest.MonkeyPatch) -> Now:
    """Return the daemon of all clients here."""
    source = Now(time)
    monkeypatch.setattr(channel, "Connection", lambda *_, **__: source)
    return source


DRAWS: dict[str, Callable[[Client, Kind], Callable[[], Any]]] = {
    "function": lambda client, kind: client.factory(kind),
    "iterator": lambda client, kind: client.iter(kind).__next__,
    "list": lambda client, kind: lambda: client.make(kind, 1)[0],
}

WAYS = pytest.mark.parametrize("way", DRAWS.values(), ids=DRAWS)


@WAYS
@pytest.mark.parametrize("kind", TIMED)
@pytest.mark.parametrize("step", [-3600.0, -0.000_000_1, 0.2, 3600.0])
def test_a_step_of_utc_ends_a_block(
    source: Now, time: Time, way: Callable[..., Callable[[], Any]], kind: str, step: float
) -> None:
    """In either direction: otherwise ids would tell times ahead of UTC, or long past."""
    draw = way(Client("/nowhere", _clock=time), kind)
    ids = {draw() for _ in range(3)}
    assert source.asked == 1
    time.utc += round(step * 10_000_000)
    ids |= {draw() for _ in range(3)}
    assert source.asked == 2
    assert len(ids) == 6


@WAYS
@pytest.mark.parametrize("kind", TIMED)
def test_a_block_lasts_while_utc_stands_still(
    source: Now, time: Time, way: Callable[..., Callable[[], Any]], kind: str
) -> None:
    """A clock that a test has frozen costs no request an id."""
    draw = way(Client("/nowhere", _clock=time), kind)
    for _ in range(300):
        draw()
        time.ticks += 10_000_000
    assert source.asked == 1


# --- random ids


@pytest.fixture
def random(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the sizes of what was read of randomness; each id's bytes tell which read it is of."""
    reads: list[int] = []

    def read(count: int) -> bytes:
        reads.append(count)
        return (len(reads) - 1).to_bytes(2, "big") * (count // 2)

    set_random(monkeypatch, read)
    return reads


@WAYS
def test_few_v4_ids_wait_in_memory(
    time: Time, random: list[int], way: Callable[..., Callable[[], Any]]
) -> None:
    """However many were drawn, whoever reads the memory finds 128 of the next ones at most."""
    draw = way(Client("/nowhere", _clock=time), "v4")
    for drawn in range(1, 3000):
        draw()
        assert sum(random) // 16 - drawn <= 128


@WAYS
@pytest.mark.parametrize("step", [-1.0, 0.001])
def test_v4_ids_that_wait_are_dropped_with_time(
    time: Time, random: list[int], way: Callable[..., Callable[[], Any]], step: float
) -> None:
    """What a core dump or a snapshot held is no id of a later time."""
    draw = way(Client("/nowhere", _clock=time), "v4")
    for _ in range(40):
        draw()
    reads = len(random)
    time.utc += round(step * 10_000_000)
    assert int.from_bytes(draw().bytes[:2], "big") == reads
    assert random[-1] <= 16 * 16


@pytest.mark.parametrize("end", ["clone", "renewal"])
@WAYS
def test_v4_ids_that_wait_are_dropped_with_the_life(
    lanes: Lanes,
    time: Time,
    random: list[int],
    way: Callable[..., Callable[[], Any]],
    end: str,
) -> None:
    """A copy of the machine, or of the process, has them too."""
    life.current().passed(lanes.page)
    draw = way(Client("/nowhere", _clock=time), "v4")
    for _ in range(40):
        draw()
    reads = len(random)
    if end == "clone":
        lanes.renew()
    else:
        life.renew()
    assert int.from_bytes(draw().bytes[:2], "big") >= reads


@WAYS
def test_without_any_age_no_v4_is_made_ahead(
    time: Time, random: list[int], way: Callable[..., Callable[[], Any]]
) -> None:
    """With max_age=0 nothing is kept for later."""
    draw = way(Client("/nowhere", max_age=0, _clock=time), "v4")
    for _ in range(40):
        draw()
    assert random == list(itertools.repeat(16, 40))
