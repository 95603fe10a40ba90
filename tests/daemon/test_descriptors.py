from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio

from tests.daemon.fakes import meanwhile
from uuidd.server.descriptors import Dropper, WarySocket, bar_descriptors

SIZE = 100


class Place:
    """A wary socket *sock*, that of its *peer*, and a pipe whose end can be passed."""

    def __init__(self) -> None:
        self.peer, ours = socket.socketpair()
        self.refused = 0
        self.dropper = Dropper(self._refuse)
        self.sock = WarySocket(ours.detach(), self.dropper)
        self.watched, self.passed = os.pipe()

    def _refuse(self, _: str) -> None:
        self.refused += 1

    def send_descriptor(self, data: bytes) -> None:
        """Send bytes, and the last descriptor of the pipe's other end."""
        socket.send_fds(self.peer, [data], [self.passed])
        os.close(self.passed)

    async def until_closed(self) -> None:
        """Let the dropper run until the descriptor that was passed has been closed."""
        async with meanwhile(self.dropper.run):
            with trio.fail_after(20):
                await trio.lowlevel.wait_readable(self.watched)

    @property
    def closed(self) -> bool:
        """Whether the descriptor that was passed has been closed."""
        poll = select.poll()
        poll.register(self.watched, 0)
        return bool(poll.poll(0))


def places() -> Iterator[Place]:
    place = Place()
    yield place
    place.peer.close()
    # As of any socket, in this thread.
    socket.SocketType.close(place.sock)
    os.close(place.watched)


place = pytest.fixture(places, name="place")
later = pytest.fixture(places, name="later")


def test_bytes_are_read_as_ever(place: Place) -> None:
    with pytest.raises(BlockingIOError):
        place.sock.recv(SIZE)
    place.peer.sendall(b"one")
    assert place.sock.recv(SIZE) == b"one"
    with pytest.raises(BlockingIOError):
        place.sock.recv(SIZE)
    place.peer.sendall(b"two")
    place.peer.shutdown(socket.SHUT_WR)
    assert place.sock.recv(SIZE) == b"two"
    assert place.sock.recv(SIZE) == b""
    place.sock.close()
    os.close(place.passed)
    assert place.refused == 0


def test_the_credentials_of_a_peer_are_no_descriptor(place: Place) -> None:
    """A socket of systemd's may ask for them (PassCredentials=)."""
    ours, theirs = socket.socketpair()
    with theirs:
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        sock = WarySocket(ours.detach(), place.dropper)
        theirs.sendall(b"one")
        assert sock.recv(SIZE) == b"one"
        sock.close()
    os.close(place.passed)


async def test_a_descriptor_is_not_closed_where_it_is_read(place: Place) -> None:
    """It is the end of the connection; only the dropper lets go of it, and tells nobody to wait."""
    place.peer.sendall(b"before")
    place.send_descriptor(b"with")
    assert place.sock.recv(SIZE) == b""
    assert place.refused == 1
    place.sock.close()
    assert not place.closed
    await place.until_closed()


async def test_the_peer_sees_the_end_before_descriptors_are_closed(place: Place) -> None:
    """And can send nothing more, so that nothing is added to what has to be closed."""
    place.send_descriptor(b"with")
    place.sock.close()
    assert not place.closed
    assert place.peer.recv(1) == b""
    with pytest.raises(BrokenPipeError):
        place.peer.send(b"more")
    await place.until_closed()


async def test_what_is_dropped_later_is_closed_too(place: Place, later: Place) -> None:
    async with meanwhile(place.dropper.run):
        for each in (place, later):
            each.sock.dropper = place.dropper
            each.send_descriptor(b"with")
            each.sock.close()
            with trio.fail_after(20):
                await trio.lowlevel.wait_readable(each.watched)


async def test_descriptors_are_closed_once_a_thread_can_be_started(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.send_descriptor(b"with")
    place.sock.close()
    failures = iter([RuntimeError("can't start new thread")])
    start = threading.Thread.start

    def fail_once(thread: threading.Thread) -> None:
        for error in failures:
            raise error
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", fail_once)
    await place.until_closed()


async def test_the_thread_that_may_outlive_a_stop_gets_no_signal(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The handlers of the daemon have ended then, so the signal would end the process."""
    place.send_descriptor(b"with")
    place.sock.close()
    before, masks, close = {*threading.enumerate()}, [], os.close

    def look(fd: int) -> None:
        for thread in {*threading.enumerate()} - before:
            status = Path(f"/proc/self/task/{thread.native_id}/status").read_text()
            masks.append(int(status.partition("SigBlk:")[2].split()[0], 16))
        close(fd)

    monkeypatch.setattr(os, "close", look)
    await place.until_closed()
    assert masks
    assert all(mask >> signal.SIGTERM - 1 & 1 for mask in masks)


async def test_after_its_end_the_dropper_leaves_all_to_the_process(place: Place) -> None:
    """A stop waits for no descriptor: none is closed by the thread that stops."""
    async with meanwhile(place.dropper.run):
        await trio.testing.wait_all_tasks_blocked()
    place.send_descriptor(b"with")
    fd = place.sock.fileno()
    place.sock.close()
    assert not place.closed
    os.close(fd)
    assert place.closed


def test_a_barred_listener_takes_no_descriptor(place: Place) -> None:
    """From connections made before they may come yet; to those made after none can be sent."""
    os.close(place.passed)
    with (
        socket.socket(socket.AF_UNIX) as listener,
        socket.socket(socket.AF_UNIX) as before,
        socket.socket(socket.AF_UNIX) as after,
    ):
        listener.bind("")
        listener.listen()
        before.connect(listener.getsockname())
        bar_descriptors(listener)
        after.connect(listener.getsockname())
        for sock, may in ((before, True), (after, False)):
            accepted, _ = listener.accept()
            served = place.dropper.wary(accepted)
            with contextlib.closing(served):
                assert isinstance(served, WarySocket) == may
                if not may:
                    with pytest.raises(PermissionError):
                        socket.send_fds(sock, [b"\x02"], [served.fileno()])
