"""Users who attack the daemon, and their victim: each a process under a uid of its own.

``main`` takes the words ROLE UID SOCKET [NUMBER...]. It writes a line once it is at work, goes on
until its standard input ends, and then writes what it saw, as JSON.
"""

from __future__ import annotations

import contextlib
import errno
import json
import mmap
import os
import resource
import select
import selectors
import signal
import socket
import struct
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import msgpack

from tests.forks import Program
from tests.rig import PATIENCE, Connection, connected

UNIX_EPOCH = 0x01B2_1DD2_1381_4000
"""The tick at which Unix time begins."""

LIFETIME = 180
"""Seconds after which an actor ends, whatever became of its test."""

HALVES = (b"", b"\x94\x00", b"\x04\x01")
"""The begin of a request: nothing, half of one of rpc's, half of one of libuuid's."""

FLOOD = msgpack.packb([0, 1, "make", ["ksuid", 1000]]) * 4000


class Actor(Program):
    """A process in *role* under *uid*, for as long as the context lasts. *numbers* are its own."""

    def __init__(self, socket: Path, uid: int, role: str, *numbers: float) -> None:
        super().__init__("tests.system.attacker", role, uid, socket, *numbers)

    def __enter__(self) -> Self:
        super().__enter__()
        try:
            assert self.line() == "at work"
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        # It may be at work still, if the test has not asked what it saw.
        self.process.kill()
        self._close()
        self.process.wait()

    def saw(self) -> Any:
        """End its work, and return what it saw."""
        said = self.told()
        assert self.process.wait() == 0
        return json.loads(said)


class Seen:
    """Blocks that were got, by the furthest beyond now and behind the time of asking (ticks)."""

    def __init__(self) -> None:
        self.blocks: list[tuple[int, int, int, int]] = []
        self.ahead = -UNIX_EPOCH
        self.lag = -UNIX_EPOCH

    def add(self, asked: int, first: int, count: int, clock_seq: int, node: int) -> None:
        """Note a block that was got just now, and asked for at *asked*."""
        last = first + count - 1
        self.ahead = max(self.ahead, last - now())
        self.lag = max(self.lag, asked - last)
        self.blocks.append((node, clock_seq, first, count))

    def add_result(self, asked: int, result: Any) -> None:
        """Note what rpc's ``take`` gave."""
        node = int.from_bytes(result["node"], "big")
        self.add(asked, result["first"], result["count"], result["clock_seq"], node)

    def told(self) -> dict[str, Any]:
        """Return all of it."""
        return {"blocks": self.blocks, "ahead": self.ahead, "lag": self.lag}


def now() -> int:
    """Return UTC in ticks."""
    return time.time_ns() // 100 + UNIX_EPOCH


def goes_on() -> bool:
    """Whether the test lets this process go on."""
    return not select.select([sys.stdin], [], [], 0)[0]


def at_work() -> None:
    """Tell the test that this process is at work."""
    sys.stdout.write("at work\n")
    sys.stdout.flush()


def asked_by_libuuid(path: Path, count: int) -> tuple[int, socket.socket]:
    """Ask as libuuid does for *count*; return when that was, and what the reply comes over."""
    asked, sock = now(), connected(path)
    with contextlib.suppress(ConnectionError):
        sock.sendall(b"\x04" + struct.pack("=i", count))
    return asked, sock


def bulk(asked: int, sock: socket.socket, count: int, seen: Seen) -> bool:
    """Note what comes for *count*; return whether anything did."""
    reply = b""
    with sock, contextlib.suppress(ConnectionError):
        while more := sock.recv(65536):
            reply += more
    if not reply:
        return False
    size, first, echo = struct.unpack("=i16si", reply)
    assert (size, echo) == (20, count)
    made = uuid.UUID(bytes=first)
    seen.add(asked, made.time, max(1, count), made.clock_seq, made.node)
    return True


def victim(path: Path, rounds: int, count: int, whole: int) -> dict[str, Any]:
    """Ask for *count* ticks by rpc, whole or not, and for ten as libuuid does, again and again.

    In rpc over one connection, as libuuid does over a connection each. *slowest* is how many
    seconds the slowest request took.
    """
    seen, slowest, refused = Seen(), 0.0, 0
    at_work()
    with Connection(path) as connection:
        for _ in range(rounds):
            begun, asked = time.monotonic(), now()
            seen.add_result(asked, connection.call("take", "utc", count, bool(whole)))
            between = time.monotonic()
            refused += not bulk(*asked_by_libuuid(path, 10), 10, seen)
            slowest = max(slowest, between - begun, time.monotonic() - between)
            # Not all at once, so that it meets more of what others do.
            time.sleep(0.003)
    return {"slowest": slowest, "refused": refused, **seen.told()}


def silent(path: Path, count: int) -> None:
    """Hold *count* connections with no byte sent, and as many with each half of a request."""
    with contextlib.ExitStack() as stack:
        for _ in range(count):
            for half in HALVES:
                stack.enter_context(connected(path)).sendall(half)
        at_work()
        sys.stdin.read()


def idle(path: Path, count: int) -> dict[str, Any]:
    """Hold *count* connections that have been served once."""
    seen, asked = Seen(), now()
    connections: list[Connection] = []
    with contextlib.ExitStack() as stack:
        for _ in range(count):
            connection = stack.enter_context(Connection(path))
            connection.sock.sendall(msgpack.packb([0, 1, "take", ["utc", 1]]))
            connections.append(connection)
        for connection in connections:
            seen.add_result(asked, connection.read()[3])
        at_work()
        sys.stdin.read()
    return seen.told()


def leases(path: Path, count: int) -> dict[str, Any]:
    """Take leases over *count* connections, try to change the page, and then ask on and on."""
    held, heard, changed, read = 0, set(), [], []
    ask, in_use = (msgpack.packb(it) for it in ([0, 1, "lease", []], [2, "in_use", []]))
    with contextlib.ExitStack() as stack:
        connections = [stack.enter_context(Connection(path)) for _ in range(count)]
        for connection in connections:
            connection.sock.sendall(ask)
            data, passed, _, _ = socket.recv_fds(connection.sock, 65536, 4)
            _, _, error, _ = msgpack.unpackb(data)
            held += error is None
            heard |= {error} if error else set()
            for fd in passed:
                stack.callback(os.close, fd)
                changed += _changes(fd)
                with mmap.mmap(fd, 4096, prot=mmap.PROT_READ) as page:
                    read.append(page[:8].hex())
        at_work()
        asked = 0
        while goes_on():
            connections[-1].sock.sendall(in_use * 50 + ask)
            connections[-1].read()
            asked += 1
    return {"held": held, "heard": sorted(heard), "changed": changed, "read": read, "asked": asked}


def _changes(fd: int) -> list[str]:
    """Return what could be done to a page, of all that would change it or use more memory."""
    attempts: dict[str, Callable[[], object]] = {
        "write": lambda: os.write(fd, b"x"),
        "map": lambda: mmap.mmap(fd, 4096),
        "cut off": lambda: os.ftruncate(fd, 0),
        "open to write": lambda: os.open(f"/proc/self/fd/{fd}", os.O_RDWR),
        "attach an attribute": lambda: os.setxattr(fd, "user.attached", bytes(1000)),
        "permit": lambda: os.fchmod(fd, 0o666),
    }
    done = []
    for name, attempt in attempts.items():
        with contextlib.suppress(OSError):
            attempt()
            done.append(name)
    return done


def unread_pages(path: Path, count: int) -> int:
    """End *count* connections whose pages are unread, two each; report how many were served."""
    asked = msgpack.packb([0, 1, "take", ["utc", 1]]) + msgpack.packb([0, 2, "lease", []])
    served = 0
    with contextlib.ExitStack() as stack:
        for _ in range(count):
            sock = stack.enter_context(connected(path))
            with contextlib.suppress(ConnectionError):
                sock.sendall(asked)
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_WR)
            ends = select.poll()
            ends.register(sock, 0)
            assert ends.poll(PATIENCE * 1000)
            served += b"first" in sock.recv(65536, socket.MSG_PEEK)
        at_work()
        sys.stdin.read()
    return served


def bulks(path: Path, *counts: int) -> dict[str, Any]:
    """Ask as libuuid does for each of *counts* in turn, over and over, on eight connections."""
    seen, answered, unanswered = Seen(), 0, 0
    begun = False
    while goes_on():
        if not begun and answered + unanswered > 20:
            at_work()
            begun = True
        for count in counts:
            for asked, sock in [asked_by_libuuid(path, count) for _ in range(8)]:
                came = bulk(asked, sock, count, seen)
                answered += came
                unanswered += not came
    return {"answered": answered, "unanswered": unanswered, **seen.told()}


def lingering(stack: contextlib.ExitStack, listener: socket.socket) -> socket.socket:
    """Return a TCP socket whose close waits for days for its peer: that, in *stack*, is silent."""
    sock = socket.socket()
    sock.connect(listener.getsockname())
    stack.enter_context(listener.accept()[0])
    sock.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        while True:
            sock.send(bytes(65536))
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 1_000_000))
    return sock


FIRST = b"\x02"
WHOLE = msgpack.packb([0, 1, "make", ["v4", 1]])

PASSED: dict[str, tuple[bytes, bytes]] = {
    "with the first byte": (b"", FIRST),
    "with the rest of a request": (b"\x94\x00", WHOLE[2:]),
    "with a later request": (WHOLE, WHOLE),
    "behind what is no request": (b"\xc1", FIRST),
    "behind a request that ends it": (FIRST, FIRST),
}
"""When a descriptor is passed: behind the first bytes, and along with the second."""


def passing(path: Path, rounds: int) -> dict[str, int]:
    """Pass descriptors whose close takes long, over connections of each sort of PASSED.

    Reports how often one was passed, and how often that was barred.
    """
    passed = barred = 0
    # Where its own close is the last one it is this process that waits, until a signal comes.
    ends = time.monotonic() + LIFETIME
    signal.signal(signal.SIGALRM, lambda *_: None if time.monotonic() < ends else os._exit(1))
    signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)
    at_work()
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        for before, along in [*PASSED.values()] * rounds:
            with lingering(stack, listener) as slow:
                sock = stack.enter_context(connected(path))
                try:
                    if before:
                        sock.sendall(before)
                    socket.send_fds(sock, [along], [slow.fileno()])
                    passed += 1
                except OSError as error:
                    # Else it was closed upon before.
                    barred += error.errno == errno.EPERM
                    slow.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, bytes(8))
        signal.setitimer(signal.ITIMER_REAL, 0)
        sys.stdin.read()
    return {"passed": passed, "barred": barred}


def storm(path: Path, least: int) -> int:
    """Connect and close, with a byte sent or none, *least* times or more."""
    done = 0
    at_work()
    while done < least or goes_on():
        for _ in range(100):
            with connected(path) as sock:
                if done % 2:
                    with contextlib.suppress(ConnectionError):
                        sock.send(b"\x94")
            done += 1
    return done


def unread(path: Path, count: int) -> int:
    """Ask for a thousand ids thousands of times, and read no reply; report how many were closed."""
    closed = 0
    with contextlib.ExitStack() as stack, selectors.DefaultSelector() as selector:
        for _ in range(count):
            sock = stack.enter_context(connected(path))
            sock.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                sock.send(FLOOD)
            selector.register(sock, selectors.EVENT_WRITE, [0])
        at_work()
        selector.register(sys.stdin, selectors.EVENT_READ)
        while closed < count:
            for key, _ in selector.select(PATIENCE):
                if key.fileobj is sys.stdin:
                    return closed
                assert isinstance(key.fileobj, socket.socket)
                try:
                    key.fileobj.send(FLOOD)
                except BlockingIOError:
                    continue
                except ConnectionError:
                    selector.unregister(key.fileobj)
                    closed += 1
        sys.stdin.read()
    return closed


def hang_up(selector: selectors.BaseSelector) -> None:
    """Close all sockets of a selector."""
    for key in list(selector.get_map().values()):
        assert isinstance(key.fileobj, socket.socket)
        key.fileobj.close()


def greedy(path: Path, connections: int, way: int) -> dict[str, Any]:
    """Ask for all that there is, over *connections*, with the request of GREED number *way*."""
    request = list(GREED.values())[way]
    heard: set[str] = set()
    answers, pending = 0, dict[int, int]()
    with selectors.DefaultSelector() as selector, contextlib.ExitStack() as stack:

        def begin() -> None:
            sock = connected(path)
            with contextlib.suppress(ConnectionError):
                sock.sendall(request)
            selector.register(sock, selectors.EVENT_READ, msgpack.Unpacker())
            pending[sock.fileno()] = request.count(b"\x94\x00")

        for _ in range(connections):
            begin()
        stack.callback(hang_up, selector)
        begun = False
        # A machine that is busy may come to the first refusal late.
        while goes_on() or (list(GREED)[way] in REFUSED and not heard):
            if answers and not begun:
                # Not before all its connections have asked, and one was answered.
                at_work()
                begun = True
            for key, _ in selector.select(0.1):
                assert isinstance(key.fileobj, socket.socket)
                reply = b""
                with contextlib.suppress(ConnectionError):
                    reply = key.fileobj.recv(65536)
                if request[0] == 4 or not reply:
                    answers += bool(reply)
                    selector.unregister(key.fileobj)
                    key.fileobj.close()
                    begin()
                    continue
                key.data.feed(reply)
                for _, _, error, _ in key.data:
                    answers += error is None
                    heard |= {error} if error else set()
                    pending[key.fd] -= 1
                if not pending[key.fd]:
                    pending[key.fd] = request.count(b"\x94\x00")
                    with contextlib.suppress(ConnectionError):
                        key.fileobj.sendall(request)
    return {"answers": answers, "heard": sorted(heard)}


GREED: dict[str, bytes] = {
    "short": msgpack.packb([0, 1, "take", ["utc", 1_000_000, False]]),
    "whole": msgpack.packb([0, 1, "take", ["utc", 1_000_000, True]]),
    "libuuid": b"\x04" + struct.pack("=i", 1_000_000),
    "ids": msgpack.packb([0, 1, "make", ["ksuid", 1000]]) * 10,
}
"""Requests for all that may be asked for."""

REFUSED = ("short", "whole")
"""Those of GREED of which some are refused, if 100 connections send them at once."""


ROLES: dict[str, Callable[..., Any]] = {
    role.__name__: role
    for role in (
        victim,
        silent,
        idle,
        leases,
        unread_pages,
        bulks,
        passing,
        storm,
        unread,
    )
} | {"greedy": greedy}


def main(words: list[str]) -> None:
    """Become the user, for good, and play the role."""
    role, uid, path, *numbers = words
    signal.alarm(LIFETIME)
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    os.setgroups([])
    os.setresgid(*[int(uid)] * 3)
    os.setresuid(*[int(uid)] * 3)
    told = ROLES[role](Path(path), *map(int, numbers))
    sys.stdout.write(json.dumps(told))
