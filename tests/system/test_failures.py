"""What failure looks like for a program, beside a real daemon: client/README.md has the table.

What a full disk looks like is in test_disks.py.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from uuid import SafeUUID

import pytest

from tests.rig import Daemon, until
from uuidd_client import Client, DaemonUnavailable, NoWorkerId

pytestmark = [
    pytest.mark.process,
    pytest.mark.filterwarnings("ignore:.*not marked safe:RuntimeWarning"),
]


@pytest.fixture
def daemon() -> Iterator[Daemon]:
    """A daemon with a worker number."""
    with Daemon("--worker=5") as daemon:
        yield daemon


def test_without_a_socket(tmp_path: Path) -> None:
    """The fallback serves at once, and not for Snowflakes."""
    client = Client(tmp_path / "s", timeout=600)
    assert client.uuid1().is_safe is SafeUUID.unknown
    with pytest.raises(DaemonUnavailable, match="No such file"):
        client.snowflake()
    assert client.stats().fallback_blocks == 1


def test_without_a_right_to_the_socket(daemon: Daemon) -> None:
    """As without one; the error says what is missing."""
    if os.geteuid() == 0:
        # Root may use any socket, so this one is a file, which nobody may connect to.
        daemon.kill()
        daemon.socket.unlink(missing_ok=True)
        daemon.socket.write_text("")
        said = "refused"
    else:
        daemon.socket.chmod(0)
        said = "denied"
    client = Client(daemon.socket, timeout=600)
    assert client.uuid7().is_safe is SafeUUID.unknown
    assert said in client.stats().last_error


def test_beside_a_daemon_that_hangs(daemon: Daemon) -> None:
    """One call waits, those after it do not; once it goes on, ids are safe again."""
    client = Client(daemon.socket, timeout=0.05, max_age=0)
    daemon.process.send_signal(signal.SIGSTOP)
    try:
        assert client.uuid1().is_safe is SafeUUID.unknown
        with pytest.raises(DaemonUnavailable, match="silent for"):
            client.snowflake()
    finally:
        daemon.process.send_signal(signal.SIGCONT)
    assert "silent for" in client.stats().last_error
    until(lambda: client.uuid1().is_safe is SafeUUID.safe)
    client.close()


def test_a_restart_with_a_lease(daemon: Daemon) -> None:
    """Nothing is noticed."""
    with Client(daemon.socket) as client:
        until(lambda: client.ulid() and client.stats().leased)
        daemon.stop()
        assert client.uuid7().is_safe is SafeUUID.safe
        daemon.start()
        assert client.uuid7().is_safe is SafeUUID.safe
        assert client.stats().fallback_blocks == 0


def test_a_daemon_without_a_worker_number() -> None:
    """Only Snowflakes are refused, with the reason."""
    with Daemon() as daemon, Client(daemon.socket) as client:
        assert client.uuid7().is_safe is SafeUUID.safe
        with pytest.raises(NoWorkerId, match="--worker"):
            client.snowflake()
        assert "no_worker_id" in client.stats().last_error
