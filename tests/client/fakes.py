"""A clock that is set by hand, and a socket with chosen answers."""

from __future__ import annotations

import contextlib
import itertools
import os
import selectors
import socket
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from struct import pack
from typing import Any, Self

import msgpack

from tests.kinds import tick
from uuidd.core.ids import versions
from uuidd.core.ids.snowflake import TWITTER_EPOCH
from uuidd.core.ids.ticks import TICKS_PER_SECOND, UNIX_EPOCH
from uuidd.core.timeline.outcomes import Block
from uuidd.core.wire import methods
from uuidd.core.wire.rpc import NOTIFICATION
from uuidd_client.system import ClientClock

UUIDCTL = [
    sys.executable,
    "-c",
    "import sys; from uuidd_client.command import main; sys.exit(main())",
]
"""``uuidctl`` in a process of its own."""

START = UNIX_EPOCH + 1_700_000_000 * TICKS_PER_SECOND
NODE = 0x0123_4567_89AB


class Time(ClientClock):
    """A client's clock, moved by hand, and by whoever pauses; *seconds* past START at first.

    UTC and the time elapsed move together, unless UTC is set. UTC moves on by *step* ticks whenever
    its nanoseconds are read.
    """

    def __init__(self, seconds: float = 0.0) -> None:
        self.ticks = 0
        self.utc = START
        self.step = 0
        self.move(seconds)

    def elapsed(self) -> float:
        """Return the seconds elapsed, from 1000 on."""
        return 1000.0 + self.ticks / TICKS_PER_SECOND

    def utc_ns(self) -> int:
        """Return UTC in nanoseconds since 1970."""
        self._move(self.step)
        return (self.utc - UNIX_EPOCH) * 100

    def pause(self, seconds: float) -> None:
        """Let so much time pass, at once."""
        self.move(seconds)

    def move(self, seconds: float) -> None:
        """Let so much time pass."""
        self._move(round(seconds * TICKS_PER_SECOND))

    def _move(self, ticks: int) -> None:
        self.ticks += ticks
        self.utc += ticks


def block(first: int, count: int, clock_seq: int = 5, node: int = NODE) -> Block:
    """Return a block whose ticks count from START."""
    return Block(START + first, count, clock_seq, node)


def offsets(kind: str, ids: list[Any]) -> list[int]:
    """Return the ticks of ids, counted from START."""
    return [tick(kind, id) - START for id in ids]


Answer = Callable[[bytes], Any] | bytes | str | dict[Any, Any] | None
"""What is said to a request: these bytes, this error or this result; None hangs up.

A function finds one of them for each request.
"""


class Server:
    """A Unix socket at *path* that says *answer* to each request.

    Requests for a lease are apart: *asked* counts them, and *lease* answers them, or hangs up if it
    returns False. So are notifications: *told* counts those of ids in use, and *fallback_ids* has
    the counts of ids that were made without the daemon. It hangs up at any other. The first answer
    over a connection comes with the descriptors *greeting*.
    """

    def __init__(
        self,
        path: Path,
        answer: Answer,
        lease: Callable[[bytes, socket.socket], bool] | None = None,
        greeting: list[int] | None = None,
    ) -> None:
        self.path = path
        self.requests: list[bytes] = []
        self._over: list[socket.socket] = []
        self.connections = 0
        self.asked = self.told = 0
        self.fallback_ids: list[int] = []
        self._answer = answer
        self._lease = lease or _no_lease
        self._greeting = greeting or []
        self._greeted: weakref.WeakSet[socket.socket] = weakref.WeakSet()
        self._listener = socket.socket(socket.AF_UNIX)
        self._stop, self._stopped = os.pipe()
        self._thread = threading.Thread(target=self._serve)

    def __enter__(self) -> Self:
        self._listener.bind(str(self.path))
        self._listener.listen(64)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._stopped)
        self._thread.join(20)
        os.close(self._stop)
        self._listener.close()
        self.path.unlink()

    def say_late(self, number: int, answer: dict[str, Any]) -> None:
        """Answer the request with this number, which was answered by no bytes."""
        self._over[number].sendall(result(self.requests[number], answer))

    def _serve(self) -> None:
        with contextlib.ExitStack() as open_ones, selectors.DefaultSelector() as selector:
            selector.register(self._stop, selectors.EVENT_READ)
            selector.register(self._listener, selectors.EVENT_READ)
            # Also when an answer raises: then nobody waits for the next one.
            open_ones.enter_context(self._listener)
            while True:
                for key, _ in selector.select(20):
                    if key.fd == self._stop:
                        return
                    if key.fileobj is self._listener:
                        self.connections += 1
                        connection = open_ones.enter_context(self._listener.accept()[0])
                        selector.register(connection, selectors.EVENT_READ)
                    elif isinstance(key.fileobj, socket.socket) and not self._answered(key.fileobj):
                        selector.unregister(key.fileobj)
                        key.fileobj.close()

    def _answered(self, connection: socket.socket) -> bool:
        try:
            # Few bytes, because the test of leaks counts them too.
            request = connection.recv(4096)
            if not request:
                return False
            while request.startswith(bytes([0x93, NOTIFICATION])):
                unpacker = msgpack.Unpacker(read_size=len(request))
                unpacker.feed(request)
                _, method, params = unpacker.unpack()
                request = request[unpacker.tell() :]
                if method == methods.FALLBACK_IDS:
                    self.fallback_ids += params
                elif [method, params] == [methods.IN_USE, []]:
                    self.told += 1
                else:
                    return False
            if not request:
                return True
            if b"lease" in request:
                self.asked += 1
                return self._lease(request, connection)
            self._over.append(connection)
            self.requests.append(request)
            reply = said(request, self._answer)
            if reply is None:
                return False
            if self._greeting and connection not in self._greeted:
                self._greeted.add(connection)
                socket.send_fds(connection, [reply], self._greeting)
            else:
                connection.sendall(reply)
        except OSError:
            return False
        return True


class Held(Server):
    """A server that answers only once it is *awake*; *heard* is set with its first request."""

    def __init__(self, path: Path, answer: Answer) -> None:
        self.awake, self.heard = threading.Event(), threading.Event()

        def late(_: bytes) -> Answer:
            self.heard.set()
            self.awake.wait(60)
            return answer

        super().__init__(path, late)

    def __exit__(self, *_: object) -> None:
        self.awake.set()
        super().__exit__()


@contextlib.contextmanager
def full_backlog(path: Path) -> Iterator[None]:
    """Let a daemon's socket be at *path* that accepts nobody, and at which no other may wait."""
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.socket(socket.AF_UNIX))
        listener.bind(str(path))
        listener.listen(0)
        with contextlib.suppress(BlockingIOError):
            while True:
                waiting = stack.enter_context(socket.socket(socket.AF_UNIX))
                waiting.setblocking(False)
                waiting.connect(str(path))
        yield


def result(request: bytes, value: Any) -> bytes:
    """Return the response to an rpc request."""
    packed: bytes = msgpack.packb([1, msgpack.unpackb(request)[1], None, value])
    return packed


def refused(request: bytes, error: str) -> bytes:
    """Return the response that refuses an rpc request."""
    packed: bytes = msgpack.packb([1, msgpack.unpackb(request)[1], error, None])
    return packed


def said(request: bytes, answer: Answer) -> bytes | None:
    """Return the bytes that say *answer* to a request."""
    if callable(answer):
        return said(request, answer(request))
    if isinstance(answer, str):
        return refused(request, answer)
    return result(request, answer) if isinstance(answer, dict) else answer


NO_LEASE = "no_lease: none is free"
"""The error of a daemon that has no lane free."""


def _no_lease(request: bytes, connection: socket.socket) -> bool:
    connection.sendall(refused(request, NO_LEASE))
    return True


def granted(first: int, count: int) -> dict[str, Any]:
    """Return a good result of ``take``, of either timeline."""
    steady = {"worker": 5, "epoch": 0}
    node = NODE.to_bytes(6, "big")
    return {"first": START + first, "count": count, "clock_seq": 5, "node": node} | steady


def gives(*blocks: tuple[int, int] | tuple[int, int, int]) -> Answer:
    """Return an answer that gives these blocks in turn: the first tick, the number, and the node.

    None is longer than was asked for. The worker number is the node's lowest bits. After them,
    whoever asks is refused.
    """
    left = iter(blocks)

    def answer(request: bytes) -> Answer:
        asked = msgpack.unpackb(request)[3][1]
        for first, count, *node in left:
            origin = {"node": node[0].to_bytes(6, "big"), "worker": node[0] & 1023} if node else {}
            return granted(first, min(count, asked)) | {"epoch": TWITTER_EPOCH} | origin
        return "unavailable: none are left"

    return answer


def wanted(server: Server) -> list[int]:
    """Return how many ticks each request to *server* was for."""
    return [msgpack.unpackb(request)[3][1] for request in server.requests]


def grants(ticks: int = 1, step: int = 1) -> Answer:
    """Return an answer that grants so many *ticks* a request, *step* past those before."""
    numbers = itertools.count(0, step)
    return lambda _: granted(next(numbers), ticks)


def in_turn(*answers: Answer) -> Answer:
    """Return an answer that is another one each time."""
    left = iter(answers)
    return lambda _: next(left)


def bulk_reply(tick: int, count: int) -> bytes:
    """Return what util-linux's uuidd says to op 4."""
    uuid = versions.gregorian("v1", tick, 9, NODE).to_bytes(16, "big")
    return pack("=i", 20) + uuid + pack("=i", count)


def util_linux(request: bytes) -> bytes | None:
    """Answer as util-linux's uuidd does: op 4, and nothing that it does not know."""
    if request[0] != 4:
        return None
    return bulk_reply(START, int.from_bytes(request[1:], "little"))
