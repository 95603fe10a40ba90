"""``uuidd -t -r -k`` against a server that is none: a line, and no signal to a wrong process."""

from __future__ import annotations

import os
import socket
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from uuidd.cli import asking
from uuidd.cli.asking import AskError
from uuidd.core.wire import libuuid


@pytest.fixture
def path() -> Iterator[Path]:
    """A place for a socket."""
    with tempfile.TemporaryDirectory(prefix="uuidd-") as folder:
        yield Path(folder) / "s"


def answering(path: Path, reply: bytes) -> socket.socket:
    """Give a listener that answers whatever it is asked with *reply*, until it is shut down."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen()

    def serve() -> None:
        while True:
            try:
                sock, _ = listener.accept()
            except OSError:
                return
            with sock:
                sock.recv(16)
                sock.sendall(reply)

    threading.Thread(target=serve, daemon=True).start()
    return listener


@pytest.mark.parametrize("told", ["0", "-1", "1", "", "abc", "99999999999", "\u0663"])
def test_kill_signals_nobody_unless_it_was_told_a_daemons_pid(
    path: Path, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """0 and -1 would be groups of processes, 1 is init, and the rest is no pid."""
    monkeypatch.setattr(os, "kill", lambda *_: pytest.fail("a process was signalled"))
    body = told.encode() + b"\0"
    with answering(path, len(body).to_bytes(4, "little") + body) as listener:
        with pytest.raises(AskError, match="gave no pid of a daemon"):
            asking.kill(path)
        listener.shutdown(socket.SHUT_RDWR)


def test_an_empty_reply_is_no_uuid(path: Path) -> None:
    """No nil UUID is made of nothing."""
    with answering(path, bytes(4)) as listener:
        with pytest.raises(AskError, match="0 bytes where a UUID has 16"):
            asking.time_uuids(path, None)
        listener.shutdown(socket.SHUT_RDWR)


def test_a_server_that_gives_none_is_not_asked_for_ever(path: Path) -> None:
    """A list that does not grow ends in a line."""
    with answering(path, libuuid.bulk_random_reply([])) as listener:
        with pytest.raises(AskError, match="gave no UUIDs"):
            list(asking.random_uuids(path, 5))
        listener.shutdown(socket.SHUT_RDWR)


def test_more_than_a_daemon_reserves_is_not_asked_for(path: Path) -> None:
    """The line names the number, and the most."""
    with pytest.raises(AskError, match="-n is 1000001, and a daemon reserves 1000000 UUIDs"):
        asking.time_uuids(path, 1_000_001)


def test_a_reply_of_absurd_length_is_told(path: Path) -> None:
    """What answers so is no uuidd."""
    with answering(path, b"\xff\xff\xff\x7f") as listener:
        with pytest.raises(AskError, match="is no uuidd"):
            asking.time_uuids(path, None)
        listener.shutdown(socket.SHUT_RDWR)
