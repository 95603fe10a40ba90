"""SIGHUP: limits and log level are read again, and everything else stays as it was."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.rig import Daemon, until

pytestmark = pytest.mark.system


def options(path: Path, words: str) -> None:
    """Write the file that is read again, at once and whole."""
    new = path.with_suffix(".new")
    new.write_text(f'UUIDD_OPTIONS="{words}"\n')
    new.rename(path)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "default"
    options(path, "--max-connections 100 --max-pipelined 7")
    return path


@pytest.fixture
def daemon(path: Path) -> Iterator[Daemon]:
    """A daemon with such a file; whatever becomes of it, it shows no traceback."""
    with Daemon(f"--defaults={path}") as daemon:
        yield daemon
        daemon.kill()
        assert not [line for line in daemon.lines if "Traceback" in line]


def reload(daemon: Daemon, lines: int = 1) -> list[str]:
    """Send SIGHUP; return what the log then has, once it is as many lines."""
    before = len(daemon.lines)
    daemon.process.send_signal(signal.SIGHUP)
    until(lambda: len(daemon.lines) >= before + lines)
    return daemon.lines[before:]


def limits(daemon: Daemon) -> dict[str, Any]:
    """Return the limits in force."""
    found: dict[str, Any] = daemon.call("status")["limits"]
    return found


def test_limits_are_taken_over(daemon: Daemon, path: Path) -> None:
    """``status`` tells the new ones, and those that the file no longer names are the default."""
    assert (limits(daemon)["connections"], limits(daemon)["pipelined"]) == (100, 7)
    options(path, "--max-connections 50 --max-request-seconds 2.5")
    assert reload(daemon) == ["uuidd: INFO: reloaded: level=INFO"]
    found = limits(daemon)
    assert (found["connections"], found["pipelined"]) == (50, 1024)
    assert found["request_seconds"] == 2.5


def test_new_limits_are_in_force(daemon: Daemon, path: Path) -> None:
    """Connections beyond a new bound are rejected, and with a higher one let in again."""
    with daemon.connect() as one, daemon.connect() as two:
        one.call("status")
        two.call("status")
        options(path, "--max-connections 2")
        reload(daemon)
        with daemon.connect() as third:
            _, _, error, _ = third.ask("status")
            assert error == "busy: 2 connections are open, the most there may be; try again later"
        options(path, "--max-connections 3")
        reload(daemon)
        daemon.call("status")


def test_connections_live_on(daemon: Daemon, path: Path) -> None:
    """More than the new bound of them, idle or in the middle of a request, over ten reloads."""
    with daemon.connect() as idle, daemon.connect() as half:
        block = idle.call("take", "utc", 1)
        half.sock.sendall(b"\x94\x00\x01")
        for number in range(10):
            options(path, f"--max-connections {1 + number % 2}")
            reload(daemon)
        later = idle.call("take", "utc", 1)
        assert (later["node"], later["clock_seq"]) == (block["node"], block["clock_seq"])
        half.sock.sendall(b"\xa6status\x90")
        assert half.read()[1:3] == [1, None]


def test_the_log_level_is_taken_over(daemon: Daemon, path: Path) -> None:
    """``--quiet`` ends all but errors, and without it the log is as before."""
    options(path, "--quiet")
    before = len(daemon.lines)
    daemon.process.send_signal(signal.SIGHUP)
    # A quiet daemon does not log this reload, so its limits have to tell.
    until(lambda: limits(daemon)["connections"] == 16384)
    options(path, "--wrong")
    reload(daemon)
    (line,) = daemon.lines[before:]
    assert line.startswith("uuidd: ERROR: not reloaded: ")
    options(path, "")
    assert reload(daemon) == ["uuidd: INFO: reloaded: level=INFO"]


BAD_OPTIONS = {
    "--max-connections 0": "--max-connections: '0' is not a whole number",
    "--wrong": "unrecognized arguments: --wrong",
    "--worker 5000": "--worker: '5000' is not a whole number from 0 to 1023",
    "--datacenter 3": "--datacenter 3 needs a --worker beside it",
    "--worker 0 --epoch 2100-01-01T00:00:00Z": "--epoch 4102444800000: ",
    "--node mac:none9": "--node 'mac:none9': there is no such interface",
    "--user nobody-of-that-name": "there is no such user",
}
BAD_FILES = {
    **{f'UUIDD_OPTIONS="{options}"\n': told for options, told in BAD_OPTIONS.items()},
    "nothing of the kind\n": "line 1: ",
    "UUIDD_OPTIONS='\n": "line 1: No closing quotation",
}


def test_a_bad_file_keeps_what_was(daemon: Daemon, path: Path) -> None:
    """One line says what is wrong, and the daemon goes on under the old limits."""
    for text, words in BAD_FILES.items():
        path.write_text(text)
        (line,) = reload(daemon)
        assert line.startswith("uuidd: ERROR: not reloaded: ")
        assert words in line.replace("\\'", "'")
        assert (limits(daemon)["connections"], limits(daemon)["pipelined"]) == (100, 7)


def test_without_a_file_it_says_so_and_goes_on() -> None:
    """SIGHUP ends no daemon."""
    with Daemon() as daemon:
        assert reload(daemon) == [
            "uuidd: INFO: nothing to reload: all options came from the command line"
        ]
        assert limits(daemon)["connections"] == 16384
        assert daemon.stop() == 0


def test_many_signals_are_as_one(daemon: Daemon, path: Path) -> None:
    """After a hundred at once, what the file says last is in force."""
    options(path, "--max-connections 51")
    for _ in range(100):
        daemon.process.send_signal(signal.SIGHUP)
    until(lambda: limits(daemon)["connections"] == 51)
    assert daemon.stop() == 0
