from __future__ import annotations

import os
import select
import signal
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import Mock

import pytest
import trio

from tests.daemon.fakes import UID
from uuidd.server.descriptors import Dropper, WaryClient, bar_descriptors, may_hold_descriptors
from uuidd.server.settings import Limits


def wary(sock: socket.socket, dropper: Dropper) -> WaryClient:
    """Return a client that nobody serves."""
    return WaryClient(sock, UID, Mock(), Limits(), dropper=dropper)


class Place:
    """A wary client, the socket of its *peer*, and a pipe whose end can be passed."""

    def __init__(self) -> None:
        self.peer, ours = socket.socketpair()
        self.refused = 0
        self.dropper = Dropper(self._refuse)
        self.client = wary(ours, self.dropper)
        self.watched, self.passed = os.pipe()

    def _refuse(self) -> None:
        self.refused += 1

    def send_descriptor(self, data: bytes) -> None:
        """Send bytes, and the last descriptor of the pipe's other end."""
        socket.send_fds(self.peer, [data], [self.passed])
        os.close(self.passed)

    @property
    def closed(self) -> bool:
        """Whether the descriptor that was passed has been closed."""
        poll = select.poll()
        poll.register(self.watched, 0)
        return bool(poll.poll(0))


@pytest.fixture
def place() -> Iterator[Place]:
    """A place for one test."""
    place = Place()
    yield place
    place.peer.close()
    place.client.sock.close()
    os.close(place.watched)


def test_bytes_are_read_as_ever(place: Place) -> None:
    """Nothing yet, then what came, each byte once, then the end."""
    assert place.client.receive_now() is None
    place.peer.sendall(b"one")
    assert place.client.receive_now() == b"one"
    assert place.client.receive_now() is None
    place.peer.sendall(b"two")
    place.peer.shutdown(socket.SHUT_WR)
    assert place.client.receive_now() == b"two"
    assert place.client.receive_now() == b""
    place.client.close()
    os.close(place.passed)
    assert place.refused == 0


def test_the_credentials_of_a_peer_are_no_descriptor(place: Place) -> None:
    """A socket of systemd's may ask for them (PassCredentials=)."""
    ours, theirs = socket.socketpair()
    with theirs:
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        stream = wary(ours, place.dropper)
        theirs.sendall(b"one")
        assert stream.receive_now() == b"one"
        stream.close()
    os.close(place.passed)


async def test_a_descriptor_is_not_closed_where_it_is_read(place: Place) -> None:
    """It is the end of the connection; only the dropper lets go of it, and tells nobody to wait."""
    place.peer.sendall(b"before")
    place.send_descriptor(b"with")
    assert place.client.receive_now() == b""
    assert place.refused == 1
    place.client.close()
    assert not place.closed
    async with trio.open_nursery() as nursery:
        nursery.start_soon(place.dropper.run)
        with trio.fail_after(20):
            await trio.lowlevel.wait_readable(place.watched)
        nursery.cancel_scope.cancel()


async def test_the_peer_sees_the_end_before_descriptors_are_closed(place: Place) -> None:
    """And can send nothing more, so that nothing is added to what has to be closed."""
    place.send_descriptor(b"with")
    place.client.close()
    assert not place.closed
    assert place.peer.recv(1) == b""
    with pytest.raises(BrokenPipeError):
        place.peer.send(b"more")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(place.dropper.run)
        with trio.fail_after(20):
            await trio.lowlevel.wait_readable(place.watched)
        nursery.cancel_scope.cancel()


async def test_descriptors_are_closed_once_a_thread_can_be_started(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A host that is out of processes keeps them a while, and nothing is lost."""
    place.send_descriptor(b"with")
    place.client.close()
    failures = iter([RuntimeError("can't start new thread")])
    start = threading.Thread.start

    def fail_once(thread: threading.Thread) -> None:
        for error in failures:
            raise error
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", fail_once)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(place.dropper.run)
        with trio.fail_after(20):
            await trio.lowlevel.wait_readable(place.watched)
        nursery.cancel_scope.cancel()


async def test_the_thread_that_may_outlive_a_stop_gets_no_signal(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The handlers of the daemon have ended then, so the signal would end the process."""
    place.send_descriptor(b"with")
    place.client.close()
    before, masks, close = {*threading.enumerate()}, [], os.close

    def look(fd: int) -> None:
        for thread in {*threading.enumerate()} - before:
            status = Path(f"/proc/self/task/{thread.native_id}/status").read_text()
            masks.append(int(status.partition("SigBlk:")[2].split()[0], 16))
        close(fd)

    async with trio.open_nursery() as nursery:
        monkeypatch.setattr(os, "close", look)
        nursery.start_soon(place.dropper.run)
        with trio.fail_after(20):
            await trio.lowlevel.wait_readable(place.watched)
        nursery.cancel_scope.cancel()
    assert masks
    assert all(mask >> signal.SIGTERM - 1 & 1 for mask in masks)


async def test_after_its_end_the_dropper_leaves_all_to_the_process(place: Place) -> None:
    """A stop waits for no descriptor: none is closed by the thread that stops."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(place.dropper.run)
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    place.send_descriptor(b"with")
    fd = place.client.sock.fileno()
    place.client.close()
    assert not place.closed
    os.close(fd)
    assert place.closed


def test_a_barred_listener_takes_no_descriptor() -> None:
    """From connections made before they may come yet; to those made after none can be sent."""
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
            with accepted:
                assert may_hold_descriptors(accepted) == may
                if not may:
                    with pytest.raises(PermissionError):
                        socket.send_fds(sock, [b"\x02"], [accepted.fileno()])
