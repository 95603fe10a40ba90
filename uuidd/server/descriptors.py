"""Descriptors that callers pass along with their bytes (SCM_RIGHTS, unix(7)); uuidd wants none.

Theory of operation

1. A descriptor that waits in a socket's receive queue is closed by whoever reads the bytes it came
   with, or closes the socket. That may take seconds: a TCP socket with SO_LINGER waits for its
   peer, a memfd frees gigabytes. In the thread that serves, everybody else would wait as long.
2. Where the kernel has SO_PASSRIGHTS (Linux 6.16), a listener without it bars descriptors: to send
   one fails. Each connection inherits that when it is made, not when it is accepted.
3. So a connection that was made before, to a listener of systemd's, and each one on an older kernel
   may hold descriptors. It is a WaryStream, which looks before it reads (MSG_PEEK closes nothing),
   and takes a passed descriptor for the end of the connection.
4. A WaryStream with something unread is closed by the Dropper, from a thread that exits.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import socket
import threading
from collections.abc import Callable

import trio

from uuidd.server.stream import READ_BYTES, Stream

SO_PASSRIGHTS = 83
"""From <asm-generic/socket.h>; Python does not name it yet."""

PAUSE = 0.1
"""Seconds to wait when no thread can be started."""

CLOSE_RANGE = 436
"""The system call close_range(2), by its number on every machine: not every C library has it."""

CLOSE_RANGE_UNSHARE, CLONE_FILES = 2, 0x400
"""From <linux/close_range.h> and <linux/sched.h>."""

PAST_ALL = 0xFFFFFFF0
"""A number above those of all descriptors."""

_LEVEL = int(socket.SOL_SOCKET)
_PEEK = int(socket.MSG_PEEK | socket.MSG_DONTWAIT)


def bar_descriptors(listener: socket.socket) -> None:
    """Let no descriptor be sent to connections that are made from now on, where the kernel can."""
    with contextlib.suppress(OSError):
        listener.setsockopt(_LEVEL, SO_PASSRIGHTS, 0)


def may_hold_descriptors(sock: socket.SocketType) -> bool:
    """Whether the peer of an accepted *sock* could pass descriptors."""
    try:
        return bool(sock.getsockopt(_LEVEL, SO_PASSRIGHTS))
    except OSError:
        return True


class WaryStream(Stream):
    """A stream over which descriptors may come. None is ever closed by the thread that reads."""

    __slots__ = ("_dropper",)

    def __init__(self, sock: socket.SocketType, uid: int, dropper: Dropper) -> None:
        super().__init__(sock, uid)
        self._dropper = dropper
        for option in (socket.SO_PASSCRED, socket.SO_PASSSEC):
            # On a socket of systemd's these may be set. What they add looks like a descriptor.
            with contextlib.suppress(OSError):
                sock.setsockopt(_LEVEL, option, 0)

    def receive_now(self) -> bytes | None:
        """As Stream's. A passed descriptor is the end; it stays unread, with all that follows."""
        try:
            data, _, flags, _ = self.sock.recvmsg(READ_BYTES, 0, _PEEK)
            if flags & socket.MSG_CTRUNC:
                self._dropper.refuse()
                data = b""
            elif data:
                data = self.sock.recv(len(data), socket.MSG_DONTWAIT)
        except BlockingIOError:
            return None
        except OSError:
            data = b""
        self.received = True
        return data

    def close(self) -> None:
        """Close the connection; what is left unread of it is left to the dropper."""
        unread = b""
        with contextlib.suppress(OSError):
            # From here on nothing more can be sent to it.
            self.sock.shutdown(socket.SHUT_RDWR)
            unread, *_ = self.sock.recvmsg(1, 0, _PEEK)
        if unread:
            self._dropper.drop(self.sock)
        else:
            self.sock.close()


class Dropper:
    """Closes sockets whose unread bytes may have descriptors with them, and makes nobody wait.

    A thread takes a copy of the process's table of descriptors for its own; then the sockets are
    closed here, where that is not the end of them; then the thread exits, and the kernel ends them.
    It waits for no peer in a thread that exits, and frees what takes long in that thread's time.

    *refuse* is called for each caller that has passed a descriptor.
    """

    def __init__(self, refuse: Callable[[], None]) -> None:
        self.refuse = refuse
        self._doomed: list[int] = []
        self._wanted = trio.Event()
        self._ended = False

    def drop(self, sock: socket.SocketType) -> None:
        """Close *sock* soon. After the end of ``run`` it is left to the end of the process."""
        fd = sock.detach()
        if not self._ended:
            self._doomed.append(fd)
            self._wanted.set()

    async def run(self) -> None:
        """Close what is dropped, until cancelled."""
        try:
            while True:
                await self._wanted.wait()
                self._wanted = trio.Event()
                while self._doomed:
                    await self._close(self._doomed.copy())
        finally:
            self._ended = True

    async def _close(self, fds: list[int]) -> None:
        copied, closed = trio.Event(), threading.Event()
        token = trio.lowlevel.current_trio_token()
        own = False

        def outlive() -> None:
            nonlocal own
            own = _own_table()
            with contextlib.suppress(trio.RunFinishedError):
                token.run_sync_soon(copied.set)
            if own:
                closed.wait()
            else:
                # Then this thread closes them, however long it has to wait.
                _close_all(fds)

        try:
            threading.Thread(target=outlive, daemon=True).start()
        except RuntimeError:
            # The host, or the service's cgroup, is out of processes.
            await trio.sleep(PAUSE)
            return
        try:
            await copied.wait()
            del self._doomed[: len(fds)]
            if own:
                _close_all(fds)
        finally:
            closed.set()


def _close_all(fds: list[int]) -> None:
    for fd in fds:
        os.close(fd)


def _own_table() -> bool:
    """Give this thread a table of descriptors of its own, a copy; whether that could be.

    A container may forbid unshare(2); kernels before 5.9 have no close_range(2).
    """
    libc = ctypes.CDLL(None, use_errno=True)
    first, last, flags = map(ctypes.c_uint, (PAST_ALL, 0xFFFFFFFF, CLOSE_RANGE_UNSHARE))
    return not (libc.syscall(CLOSE_RANGE, first, last, flags) and libc.unshare(CLONE_FILES))
