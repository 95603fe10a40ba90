"""A burst of ids, as a web request makes them, costs one round trip to the daemon."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgpack
import pytest

from tests.client.fakes import Server, Time, granted, result
from tests.client.lanes import World
from tests.kinds import LEASED
from uuidd.core.ids.ticks import TICKS_PER_SECOND
from uuidd_client import Client

if TYPE_CHECKING:
    from uuidd_client.client import Kind

pytestmark = pytest.mark.usefixtures("implementation")

REST = 0.2
"""Seconds from one burst to the next."""


@pytest.fixture
def time() -> Time:
    """Return a clock that is moved by hand."""
    return Time()


@pytest.fixture
def server(tmp_path: Path, time: Time) -> Iterator[Server]:
    """Return a daemon that grants the latest ticks, as many as are asked for."""

    def grant(request: bytes) -> bytes:
        count = msgpack.unpackb(request)[3][1]
        return result(request, granted(time.ticks + TICKS_PER_SECOND - count, count))

    with Server(tmp_path / "s", grant) as server:
        yield server


def trips(server: Server, time: Time, kind: Kind, bursts: list[int], max_age: float) -> list[int]:
    """Return how many requests each of these bursts cost; each id takes a microsecond."""
    found: list[int] = []
    with Client(server.path, fallback=False, max_age=max_age, _clock=time) as client:
        draw: Any = client.factory(kind)
        for burst in bursts:
            before = len(server.requests)
            for _ in range(burst):
                draw()
                time.move(0.000_001)
            found.append(len(server.requests) - before)
            time.move(REST)
    return found


@pytest.mark.parametrize("kind", ["v1", "v7", "ksuid", "flake", "snowflake"])
def test_a_small_burst_is_one_round_trip(server: Server, time: Time, kind: Kind) -> None:
    """From the first on, for no block has room for less."""
    assert trips(server, time, kind, [20] * 10, 0.1) == [1] * 10


@pytest.mark.parametrize("size", [100, 5000])
@pytest.mark.parametrize("kind", ["v1", "v7", "ksuid", "flake", "snowflake"])
def test_a_burst_like_the_last_one_is_one_round_trip(
    server: Server, time: Time, kind: Kind, size: int
) -> None:
    """Once one was seen, a block has room for the next, and for half as much again."""
    found = trips(server, time, kind, [size, size, size + size // 3, size // 2, size // 2], 0.1)
    assert found[1:] == [1] * 4


@pytest.mark.parametrize("kind", LEASED)
@pytest.mark.parametrize("max_age", [0, 0.1])
def test_with_a_lease_a_burst_is_no_round_trip(
    tmp_path: Path, time: Time, kind: Kind, max_age: float
) -> None:
    """The first one is of a block, and the lane is leased with the second request."""
    world = World(tmp_path / "s", time)
    with world.server() as server:
        found = trips(server, time, kind, [20, 20, 5000, 20, 20], max_age)
    world.lanes.close()
    assert found == [1, 0, 0, 0, 0]
