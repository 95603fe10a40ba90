"""Ids of every kind from the client, in every form that the kind has."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import SafeUUID

import pytest

from tests import kinds
from tests.client.conftest import WORKER
from tests.kinds import KINDS, SECOND, TIMED, UNIX, apart, bounds, fields, number, tick
from tests.rig import Daemon
from tests.tools import output
from uuidd_client import Client, NoWorkerId

if TYPE_CHECKING:
    from uuidd_client.client import Kind

pytestmark = pytest.mark.usefixtures("implementation")


@pytest.fixture
def client(daemon: Daemon) -> Iterator[Client]:
    """A client that has no fallback."""
    with Client(daemon.socket, fallback=False) as client:
        yield client


@pytest.mark.parametrize("kind", KINDS)
def test_as_many_are_made_as_were_asked_for(client: Client, kind: Kind) -> None:
    form: Any = KINDS[kind].forms[-1]
    found = apart(kind, client.make(kind, 50_001, form))
    assert len({number(kind, id) for id in found}) == len(found) == 50_001


@pytest.mark.parametrize("kind", TIMED)
def test_an_ids_time_is_now(client: Client, kind: Kind) -> None:
    before = time.time()
    id = next(client.iter(kind))
    assert before - 0.101 <= (tick(kind, id) - UNIX) / SECOND <= time.time()


def test_v4_is_random_and_asks_nobody() -> None:
    client = Client("/nowhere", fallback=False)
    ids = {client.factory("v4")(), *client.make("v4", 1000)}
    assert len(ids) == 1001
    assert {id.version for id in ids} == {4}
    assert {id.is_safe for id in ids} == {SafeUUID.unknown}
    ones = zeros = 0
    for id in ids:
        ones |= id.int
        zeros |= ~id.int
    low, high = bounds("v4", 0)
    assert ones & zeros == low ^ high


def test_each_kind_has_a_method_of_the_form_it_is_mostly_used_in(client: Client) -> None:
    for kind in TIMED:
        id = getattr(client, KINDS[kind].method)()
        assert type(id) is KINDS[kind].type
        assert fields(kind, id).get("worker", WORKER) == WORKER


def test_each_kind_has_a_function(daemon: Daemon) -> None:
    """The functions share a client, whose socket comes from the environment at the first use."""
    draws = [f"uuidd_client.{KINDS[kind].method}()" for kind in TIMED]
    program = f"import uuidd_client; print(uuidd_client.uuid1().is_safe.name, {', '.join(draws)})"
    known = {"UUIDD_SOCKET": str(daemon.socket), "UUIDD_FALLBACK": "0"}
    safe, *texts = output(sys.executable, "-c", program, env={**os.environ, **known}).split()
    assert safe == "safe"
    for kind, text in zip(TIMED, texts, strict=True):
        assert 0 <= time.time() - (tick(kind, text) - UNIX) / SECOND < 100


@pytest.mark.process
def test_without_a_worker_number_snowflakes_are_refused() -> None:
    with Daemon() as daemon, Client(daemon.socket) as client:
        with pytest.raises(
            NoWorkerId, match=r"this uuidd has no worker number.*; start it with --worker N"
        ):
            client.snowflake()
        assert client.uuid7().is_safe is SafeUUID.safe


@pytest.mark.process
def test_a_snowflake_has_the_daemons_epoch_and_worker() -> None:
    epoch = 1_420_070_400_000
    with (
        Daemon("--datacenter=3", "--worker=7", f"--epoch={epoch}") as daemon,
        Client(daemon.socket, fallback=False) as client,
    ):
        made = client.snowflake()
    assert kinds.fields("snowflake", made)["worker"] == 3 << 5 | 7
    ms = kinds.place("snowflake", made, epoch) // kinds.SLOTS
    assert datetime.fromtimestamp(ms / 1000, UTC) > datetime.now(UTC) - timedelta(seconds=5)


def test_beyond_the_rate_a_caller_waits(client: Client) -> None:
    """A host makes 4,096,000 a second; 300,000 more than are free take some hundredths of it."""
    begun = time.monotonic()
    found = client.make("snowflake", 300_000) + client.make("snowflake", 300_000)
    assert found == sorted(set(found))
    first, last = (kinds.place("snowflake", id) // kinds.SLOTS for id in (found[0], found[-1]))
    spans = last - first
    assert spans >= 600_000 // 4096 - 1
    assert spans <= (time.monotonic() - begun + 0.3) * 1000
