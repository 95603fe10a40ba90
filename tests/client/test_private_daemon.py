"""``uuidd_client.testing.private_daemon``: a daemon for a test."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from uuid import SafeUUID

import pytest

from tests.client.lanes import Clock, World
from tests.forks import PATIENCE
from uuidd_client import Client
from uuidd_client.testing import fixed_ids, private_daemon

pytestmark = [pytest.mark.process, pytest.mark.usefixtures("implementation")]


def test_a_private_daemon_makes_the_ids_while_it_lasts(client: Client) -> None:
    """Before and after it, ids come from where they came from; its folder and process are gone."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert client.uuid7().is_safe is SafeUUID.unknown
    with private_daemon(worker=7, client=client) as daemon:
        made = [client.uuid7() for _ in range(3)]
        assert {id.is_safe for id in made} == {SafeUUID.safe}
        assert client.status()["pid"] == daemon.pid
        assert client.snowflake() >> 12 & 1023 == 7
        assert os.environ["UUIDD_SOCKET"] == str(daemon.socket)
        # A lease, which the functions would use without a call of the channel.
        lasting = client.factory("v7")
        assert lasting().is_safe is SafeUUID.safe
    assert lasting().is_safe is SafeUUID.unknown
    assert not daemon.socket.parent.exists()
    assert not os.path.exists(f"/proc/{daemon.pid}")


@pytest.fixture
def world(place: Path) -> Iterator[World]:
    """A daemon that leases lanes."""
    world = World(place / "s", Clock())
    with world.server():
        yield world
    world.lanes.close()


@pytest.fixture
def leasing(world: World) -> Iterator[Client]:
    """A client that has a lease."""
    with Client(world.path, timeout=PATIENCE) as client:
        # Two requests: more ids than a block has.
        while int(client.uuid7()) >> 52 & 255 < 16:
            pass
        yield client


def test_a_lease_rests_while_ids_are_fixed(leasing: Client) -> None:
    draw = leasing.factory("v7")
    before = [draw() for _ in range(10)]
    with fixed_ids(client=leasing):
        fixed = [draw() for _ in range(10)]
    after = [draw() for _ in range(10)]
    assert {made.is_safe for made in before + after} == {SafeUUID.safe}
    assert {made.is_safe for made in fixed} == {SafeUUID.unknown}
    assert sorted(before + after) == before + after
    assert {str(made)[:13] for made in fixed} == {"017f22e2-79b0"}


def test_a_lease_serves_again_after_ids_were_fixed(leasing: Client) -> None:
    """The daemon is asked neither for another one nor for a block."""
    # A channel that begins anew has a block less.
    leasing.flake()
    draw, before = leasing.factory("v7"), leasing.stats()
    with fixed_ids(client=leasing):
        draw()
    made = [draw() for _ in range(1000)]
    assert sorted(made) == made
    assert leasing.stats() == before
