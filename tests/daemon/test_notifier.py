"""What the service manager is told (sd_notify(3)), and how the way to it is found."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.rig import PATIENCE, Daemon
from tests.tools import refusal
from uuidd.systemd import notifier

VARIABLES = ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID")


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever runs these tests does not take part."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(params=["path", "abstract"])
def manager(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[socket.socket]:
    """A service manager that is named in the environment."""
    monkeypatch.chdir(tmp_path)
    name = "@uuidd-test-" + os.urandom(8).hex() if request.param == "abstract" else "./n"
    monkeypatch.setenv("NOTIFY_SOCKET", name)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind("\0" + name[1:] if name.startswith("@") else name)
        manager.setblocking(False)
        yield manager


def test_without_a_socket_nobody_is_told() -> None:
    told = notifier()
    assert not told.connected
    told.notify(ready=1)
    told.close()


def test_what_is_told_comes_as_lines(manager: socket.socket) -> None:
    told = notifier()
    assert told.connected
    told.notify(ready=1, status="Serving ä")
    told.close()
    assert manager.recv(100) == "READY=1\nSTATUS=Serving ä".encode()
    told.notify(ready=1)
    with pytest.raises(BlockingIOError):
        manager.recv(100)


def test_the_variables_are_taken_out_of_the_environment(
    manager: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No program that the daemon might start can speak for it."""
    for name, value in (("WATCHDOG_USEC", "9"), ("WATCHDOG_PID", str(os.getpid())), ("OTHER", "x")):
        monkeypatch.setenv(name, value)
    notifier().close()
    assert not {*VARIABLES} & set(os.environ)
    assert os.environ["OTHER"] == "x"


def test_a_manager_that_is_not_there_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", "/nowhere/n")
    monkeypatch.setenv("WATCHDOG_USEC", "9")
    assert refusal(notifier) == (
        "NOTIFY_SOCKET is '/nowhere/n': No such file or directory;"
        " start as a service of systemd, or without that variable"
    )
    assert not {*VARIABLES} & set(os.environ)


@pytest.mark.parametrize(
    ("microseconds", "pid", "seconds"),
    [
        ("10000000", "own", 10.0),
        ("10000000", "", 10.0),
        ("500000", "own", 0.5),
        *(("10000000", another, None) for another in ("1", "x")),
        *((none, "own", None) for none in ("0", "", "-5", "1e6", "\u0661")),
    ],
)
def test_the_watchdogs_patience_is_read(
    manager: socket.socket,
    monkeypatch: pytest.MonkeyPatch,
    microseconds: str,
    pid: str,
    seconds: float | None,
) -> None:
    monkeypatch.setenv("WATCHDOG_USEC", microseconds)
    monkeypatch.setenv("WATCHDOG_PID", str(os.getpid()) if pid == "own" else pid)
    with closing(notifier()) as found:
        assert found.watchdog == seconds


def test_a_manager_that_does_not_read_or_has_gone_harms_nobody(manager: socket.socket) -> None:
    with closing(notifier()) as told:

        def too_long(*_: object) -> None:
            raise AssertionError("it waited")

        # One that waited would wait for ever. A busy machine may take seconds all the same.
        before = signal.signal(signal.SIGALRM, too_long)
        signal.setitimer(signal.ITIMER_REAL, PATIENCE)
        for _ in range(10_000):
            told.notify(watchdog=1)
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        manager.close()
        told.notify(stopping=1)


@pytest.mark.system
def test_a_daemon_tells_of_its_whole_life(tmp_path: Path) -> None:
    environment = {
        "NOTIFY_SOCKET": str(tmp_path / "n"),
        "WATCHDOG_USEC": "600000",
        "WATCHDOG_PID": "",
    }
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(environment["NOTIFY_SOCKET"])
        manager.settimeout(PATIENCE)

        def hears(name: str) -> str:
            """Return the next thing told that has *name*."""
            while name not in (told := manager.recv(65536).decode()):
                pass
            return told

        with Daemon(environment=environment, fresh=True) as daemon:
            assert hears("") == "READY=1\nSTATUS=Serving 0 connections, 0 ids/s"
            with daemon.connect() as connection:
                connection.call("take", "utc", 1)
                assert hears("STATUS").startswith("WATCHDOG=1\nSTATUS=Serving 1 connection, ")
            daemon.process.send_signal(signal.SIGTERM)
            assert hears("STOPPING") == "STOPPING=1\nSTATUS=Stopping"
            assert daemon.process.wait(PATIENCE) == 0
            manager.setblocking(False)
            with pytest.raises(BlockingIOError):
                manager.recv(65536)
