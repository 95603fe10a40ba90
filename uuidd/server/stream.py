"""The bytes of one connection: sent and received at once if possible, otherwise with a deadline.

trio's SocketStream would triple the memory of a connection and halve the requests per second: a
Unix socket nearly always has room for a reply, and often holds the next request already.
"""

from __future__ import annotations

import array
import contextlib
import fcntl
import socket
import termios
from struct import Struct

import trio

from uuidd.core.timeline.page import Lease

UNREAD_BYTES = 16384
"""Bytes of replies that the system keeps for one connection, without its own overhead, which is as
much again. They count as the daemon's memory, and one user may have thousands of connections."""

LEAST_UNREAD = 256
"""Bytes of the system's memory that any unread byte takes at least. For a moment after the last one
was read, a few bytes still count."""

READ_BYTES = 16384
"""Bytes read at once: some hundreds of pipelined requests."""


_INT = Struct("i")


class Stream:
    """The bytes of *sock*, a socket that *uid* connected; no call blocks, whatever its mode.

    *received* is whether anything has arrived over it, or its end. Until then, *silent_since* is
    when the wait for it began.

    *lease* is the last lease that was granted to its client. *greeted* is whether the first reply
    was sent, with the page, and *has_page* whether the page was passed with a lease. *ended* is
    whether the stream is open only until the client has read what was sent.
    """

    __slots__ = ("ended", "greeted", "has_page", "lease", "received", "silent_since", "sock", "uid")

    silent_since: float

    def __init__(self, sock: socket.SocketType, uid: int) -> None:
        self.sock = sock
        self.uid = uid
        self.received = False
        self.lease: Lease | None = None
        self.greeted = self.has_page = self.ended = False

    def receive_now(self) -> bytes | None:
        """Return what has arrived: None if nothing has, "" at the end or when the peer is gone."""
        try:
            data = self.sock.recv(READ_BYTES, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return None
        except OSError:
            data = b""
        self.received = True
        return data

    def bound_unread(self) -> None:
        """Limit what the system keeps for a peer that does not read."""
        with contextlib.suppress(OSError):
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, UNREAD_BYTES)

    def end_reading(self) -> None:
        """Let reading end after what has arrived already."""
        with contextlib.suppress(OSError):
            self.sock.shutdown(socket.SHUT_RD)

    def is_unread(self) -> bool:
        """Whether the client, or a process that has a copy of its socket, has not read all."""
        unread = fcntl.ioctl(self.sock, termios.TIOCOUTQ, bytes(_INT.size))
        return bool(_INT.unpack(unread)[0] >= LEAST_UNREAD)

    def end(self) -> None:
        """Let both directions end; what was sent can still be read."""
        self.ended = True
        with contextlib.suppress(OSError):
            self.sock.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the connection."""
        self.sock.close()

    def send_now(self, view: bytes | bytearray | memoryview) -> int:
        """Send what can be sent at once, and return how many bytes; -1 when the peer is gone."""
        try:
            return self.sock.send(view, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return 0
        except OSError:
            return -1

    def send_with(self, fd: int, data: bytes) -> int:
        """Send what can be sent at once of *data* with a descriptor, and return how many bytes.

        Raises OSError, and sends nothing: there is no room, or the peer is gone, or the peer or the
        kernel allows no passed descriptors, or no more of them.
        """
        passed = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd]))
        return self.sock.sendmsg([data], [passed], socket.MSG_DONTWAIT)

    async def receive(self) -> bytes | None:
        """Return what arrives next, however late; "" at the end or when the peer is gone.

        None if the system allows no more waiting (fs.epoll.max_user_watches).
        """
        while (data := self.receive_now()) is None:
            try:
                await trio.lowlevel.wait_readable(self.sock)
            except OSError:
                return None
        return data

    async def receive_until(self, deadline: float) -> bytes | None:
        """Return what arrives next as ``receive``; None also past *deadline*."""
        with trio.move_on_at(deadline):
            return await self.receive()
        return None

    async def send(self, data: bytes | bytearray | memoryview, *, seconds: float) -> int:
        """Send *data* within *seconds*, and return how many bytes; -1 when the peer is gone."""
        view = memoryview(data)
        done = 0
        with trio.move_on_after(seconds):
            while (sent := self.send_now(view[done:])) >= 0:
                done += sent
                if done == len(view):
                    return done
                try:
                    await trio.lowlevel.wait_writable(self.sock)
                except OSError:
                    return done
            return -1
        return done
