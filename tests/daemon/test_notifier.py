"""What the service manager is told (sd_notify(3)), and how the way to it is found."""

from __future__ import annotations

import os
import select
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.rig import PATIENCE, Daemon
from uuidd.refused import Refused
from uuidd.systemd import notifier


class Manager:
    """A service manager's end: what it is told, datagram by datagram."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.sock.bind("\0" + name[1:] if name.startswith("@") else name)
        self.sock.settimeout(PATIENCE)

    def told(self) -> dict[str, str]:
        """Return the next thing told, by name."""
        lines = self.sock.recv(65536).decode().split("\n")
        return dict(line.split("=", 1) for line in lines)

    def until(self, name: str) -> dict[str, str]:
        """Return the next thing told that has *name*; what comes before it is of no interest."""
        while name not in (told := self.told()):
            pass
        return told

    @property
    def silent(self) -> bool:
        """Whether nothing waits to be read."""
        return not select.select([self.sock], [], [], 0)[0]


@pytest.fixture(params=["path", "abstract"])
def manager(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Manager]:
    """A service manager, at a path or at an abstract address."""
    monkeypatch.chdir(tmp_path)
    name = "@uuidd-test-" + os.urandom(8).hex() if request.param == "abstract" else "./n"
    manager = Manager(name)
    yield manager
    manager.sock.close()


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever runs these tests does not take part."""
    for name in ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"):
        monkeypatch.delenv(name, raising=False)


# --- finding the way


def test_without_a_socket_nobody_is_told() -> None:
    told = notifier()
    assert not told.connected
    told.notify(ready=1)
    told.close()


def test_what_is_told_comes_as_lines(manager: Manager, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", manager.name)
    told = notifier()
    assert told.connected
    told.notify(ready=1, status="Serving ä")
    told.close()
    assert manager.sock.recv(100) == "READY=1\nSTATUS=Serving ä".encode()
    told.notify(ready=1)
    assert manager.silent


def test_the_variables_are_taken_out_of_the_environment(
    manager: Manager, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No program that the daemon might start can speak for it."""
    for name, value in (("NOTIFY_SOCKET", manager.name), ("WATCHDOG_USEC", "9"), ("OTHER", "x")):
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("WATCHDOG_PID", str(os.getpid()))
    notifier().close()
    assert not {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"} & set(os.environ)
    assert os.environ["OTHER"] == "x"


def test_the_variables_are_taken_away_also_when_they_are_of_no_use(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", "/nowhere/n")
    monkeypatch.setenv("WATCHDOG_USEC", "9")
    with pytest.raises(Refused) as refused:
        notifier()
    assert str(refused.value) == (
        "NOTIFY_SOCKET is '/nowhere/n': No such file or directory;"
        " start as a service of systemd, or without that variable"
    )
    assert not {"NOTIFY_SOCKET", "WATCHDOG_USEC"} & set(os.environ)


@pytest.mark.parametrize(
    ("microseconds", "pid", "seconds"),
    [
        ("10000000", "own", 10.0),
        ("10000000", "", 10.0),
        ("500000", "own", 0.5),
        ("10000000", "1", None),
        ("10000000", "x", None),
        ("0", "own", None),
        ("", "own", None),
        ("-5", "own", None),
        ("1e6", "own", None),
        ("\u0661", "own", None),
    ],
)
def test_the_watchdogs_patience_is_read(
    manager: Manager,
    monkeypatch: pytest.MonkeyPatch,
    microseconds: str,
    pid: str,
    seconds: float | None,
) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", manager.name)
    monkeypatch.setenv("WATCHDOG_USEC", microseconds)
    monkeypatch.setenv("WATCHDOG_PID", str(os.getpid()) if pid == "own" else pid)
    found = notifier()
    found.close()
    assert found.watchdog == seconds


def test_a_manager_that_has_gone_harms_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manager = Manager(str(tmp_path / "n"))
    monkeypatch.setenv("NOTIFY_SOCKET", manager.name)
    told = notifier()

    def too_long(*_: object) -> None:
        raise AssertionError("it waited")

    # One that waited would wait for ever. A busy machine may take seconds all the same.
    before = signal.signal(signal.SIGALRM, too_long)
    signal.setitimer(signal.ITIMER_REAL, PATIENCE)
    for _ in range(10_000):
        told.notify(watchdog=1)
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)
    manager.sock.close()
    told.notify(stopping=1)
    told.close()


# --- a whole daemon


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return {"NOTIFY_SOCKET": str(tmp_path / "n"), "WATCHDOG_USEC": "600000", "WATCHDOG_PID": ""}


@pytest.mark.system
def test_a_daemon_tells_of_its_whole_life(environment: dict[str, str]) -> None:
    manager = Manager(environment["NOTIFY_SOCKET"])
    with manager.sock, Daemon(environment=environment, fresh=True) as daemon:
        first = manager.told()
        assert first == {"READY": "1", "STATUS": "Serving 0 connections, 0 ids/s"}
        with daemon.connect() as connection:
            connection.call("take", "utc", 1)
            told = manager.until("STATUS")
        assert told["WATCHDOG"] == "1"
        assert told["STATUS"].startswith("Serving 1 connection, ")
        daemon.process.send_signal(signal.SIGTERM)
        assert manager.until("STOPPING") == {"STOPPING": "1", "STATUS": "Stopping"}
        assert daemon.process.wait(PATIENCE) == 0
        assert manager.silent
