"""``uuidd_client.testing.private_daemon``: a daemon for a test."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from uuid import SafeUUID

import pytest

from uuidd_client import Client
from uuidd_client.testing import fixed_ids, private_daemon

pytestmark = [pytest.mark.process, pytest.mark.usefixtures("implementation")]


@pytest.fixture
def client(place: Path) -> Iterator[Client]:
    """A client of the implementation under test, whose daemon is not there."""
    with Client(place / "absent") as client:
        yield client


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
        # A lease, which the functions would use without a call of the session.
        lasting = client.factory("v7")
        assert lasting().is_safe is SafeUUID.safe
    assert lasting().is_safe is SafeUUID.unknown
    assert not daemon.socket.parent.exists()
    assert not os.path.exists(f"/proc/{daemon.pid}")


def test_a_lease_rests_while_ids_are_fixed(client: Client) -> None:
    """It is not drawn from, and is used again afterwards."""
    with private_daemon(client=client):
        draw = client.factory("v7")
        before = [draw() for _ in range(10)]
        with fixed_ids(client=client):
            fixed = [draw() for _ in range(10)]
        after = [draw() for _ in range(10)]
    assert {made.is_safe for made in before + after} == {SafeUUID.safe}
    assert {made.is_safe for made in fixed} == {SafeUUID.unknown}
    assert sorted(before + after) == before + after
    assert {str(made)[:13] for made in fixed} == {"017f22e2-79b0"}


def test_a_lease_serves_again_after_ids_were_fixed(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a call of the session for each id."""
    with private_daemon(client=client):
        draw = client.factory("v7")
        before = [draw() for _ in range(10)]
        with fixed_ids(client=client):
            draw()
        again = draw()
        monkeypatch.setattr(client._session, "_place", {})
        monkeypatch.setattr(client._session, "_make", lambda: pytest.fail("a session was asked"))
        assert before[-1] < again < draw()
