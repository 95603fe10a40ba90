"""What the client's socket reads, where a signal handler may fork at any point."""

from __future__ import annotations

import contextlib
import itertools
import select
import socket
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.client.breaking import come_between
from uuidd_client.connection import Stream
from uuidd_client.life import Life, Over

ANSWER = b"answer"


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[Stream, socket.socket]]:
    """Return a client's socket, and the daemon's end of it."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "s"))
        listener.listen()
        stream = Stream(Life())
        stream.at_once(stream.connect, str(tmp_path / "s"))
        daemon, _ = listener.accept()
        with contextlib.closing(stream), daemon:
            yield stream, daemon


def unread(stream: Stream) -> bytes:
    """Return what has come, and was not read."""
    return stream.recv(100, socket.MSG_PEEK) if select.select([stream], [], [], 0)[0] else b""


def test_a_child_leaves_the_answer_to_its_parent(pair: tuple[Stream, socket.socket]) -> None:
    """Wherever a handler forks: the child reads nothing that was there when it was born."""
    stream, daemon = pair
    for at in itertools.count(1):
        daemon.sendall(ANSWER)
        left: list[bytes] = []

        def fork(left: list[bytes] = left) -> None:
            left.append(unread(stream))
            # As the kernel does in a child.
            stream.alive[0] = 0

        try:
            come_between(partial(stream.receive, 100, 10.0), at, fork)
        except Over:
            assert left == [ANSWER]
            assert unread(stream) == ANSWER
        else:
            assert left in ([], [b""]), at
        finally:
            stream.alive[0] = 1
        stream.setblocking(True)
        if unread(stream):
            stream.recv(100)
        if not left:
            break
    assert at > 5


def test_descriptors_are_passed_with_the_bytes(pair: tuple[Stream, socket.socket]) -> None:
    """One at most; the system closes the others. Programs that are started inherit none."""
    stream, daemon = pair
    with socket.socket() as one, socket.socket() as other:
        socket.send_fds(daemon, [ANSWER], [one.fileno(), other.fileno()])
        data, passed = stream.receive(100, 10.0)
    assert data == ANSWER
    assert len(passed) == 1
    with socket.socket(fileno=passed[0]) as found:
        assert not found.get_inheritable()


def test_bytes_may_come_without_a_descriptor(pair: tuple[Stream, socket.socket]) -> None:
    """As those of an error do."""
    stream, daemon = pair
    daemon.sendall(ANSWER)
    assert stream.receive(100, 10.0) == (ANSWER, [])
