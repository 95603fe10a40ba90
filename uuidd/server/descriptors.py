"""Descriptors that clients pass along with their bytes (SCM_RIGHTS, unix(7)); uuidd accepts none.

Theory of operation

1. A passed descriptor waits in the socket's receive queue. It is closed by the thread that reads
   the bytes it came with, or that closes the socket. That may take seconds: a TCP socket with
   SO_LINGER waits for its peer, a memfd frees gigabytes. In the thread that serves, all other
   clients would wait as long.
2. If the kernel has SO_PASSRIGHTS (Linux 6.16), a listener with this option off bars descriptors: a
   client cannot send one. A connection inherits that when it is made, not when it is accepted.
3. So a connection that was made before, to a listener of systemd, and each one on an older kernel
   may hold descriptors. It is a WarySocket, which looks before it reads (MSG_PEEK closes nothing),
   and treats a passed descriptor as the end of the connection.
4. A WarySocket with something unread is closed by the Dropper, from a thread that exits.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import socket
import threading
from collections.abc import Callable

import trio

SO_PASSRIGHTS = 83
"""From <asm-generic/socket.h>; Python does not name it yet."""

PAUSE = 0.1
"""Seconds to wait when no thread can be started."""

CLOSE_RANGE = 436
"""The number of close_range(2), the same on every machine: not every C library has the call."""

CLOSE_RANGE_UNSHARE, CLONE_FILES = 2, 0x400
"""From <linux/close_range.h> and <linux/sched.h>."""

PAST_ALL = 0xFFFFFFF0
"""A number above those of all descriptors."""

# Plain integers: an operation on an enum is a call in Python.
_FAMILY, _TYPE, _LEVEL = int(socket.AF_UNIX), int(socket.SOCK_STREAM), int(socket.SOL_SOCKET)
_CTRUNC = int(socket.MSG_CTRUNC)
_PEEK = int(socket.MSG_PEEK) | int(socket.MSG_DONTWAIT)
_BOTH_WAYS = int(socket.SHUT_RDWR)

_OF_SYSTEMD = (int(socket.SO_PASSCRED), int(socket.SO_PASSSEC))
"""Options that may be set on a socket of systemd. What they add looks like a descriptor."""


def bar_descriptors(listener: socket.socket) -> None:
    """Bar descriptors from connections that are made from now on, if the kernel can."""
    with contextlib.suppress(OSError):
        listener.setsockopt(_LEVEL, SO_PASSRIGHTS, 0)


class WarySocket(socket.SocketType):
    """A connected socket *fd* that may hold descriptors. The thread that reads closes none."""

    __slots__ = ("dropper",)

    def __init__(self, fd: int, dropper: Dropper) -> None:
        super().__init__(_FAMILY, _TYPE, 0, fd)
        self.dropper = dropper
        for option in _OF_SYSTEMD:
            with contextlib.suppress(OSError):
                self.setsockopt(_LEVEL, option, 0)

    def recv(self, size: int, flags: int = 0, /) -> bytes:
        """Receive what has arrived. A passed descriptor is the end: what follows stays unread."""
        data, _, found, _ = self.recvmsg(size, 0, _PEEK)
        if found & _CTRUNC:
            self.dropper.refuse("descriptors")
            return b""
        return super().recv(len(data), flags) if data else data

    def close(self) -> None:
        """Close the socket, or let the dropper close it if something is unread."""
        unread = b""
        with contextlib.suppress(OSError):
            # From here on nothing more can be sent to it.
            self.shutdown(_BOTH_WAYS)
            unread, *_ = self.recvmsg(1, 0, _PEEK)
        if unread:
            self.dropper.drop(self)
        else:
            super().close()


class Dropper:
    """Closes sockets whose unread bytes may have descriptors with them, without making others wait.

    A thread takes a copy of the process's table of descriptors. Then the sockets are closed here,
    which frees nothing, because the copy still holds them. Then the thread exits, and the kernel
    frees them on that thread's time. In a thread that exits, it waits for no peer.

    *refuse* counts each client that has passed a descriptor.
    """

    def __init__(self, refuse: Callable[[str], None]) -> None:
        self.refuse = refuse
        self._doomed: list[int] = []
        self._wanted = trio.Event()

    def wary(self, sock: socket.SocketType) -> socket.SocketType:
        """Return an accepted *sock* itself, or a WarySocket if its peer could pass descriptors."""
        # An older kernel has no such option.
        with contextlib.suppress(OSError):
            if not sock.getsockopt(_LEVEL, SO_PASSRIGHTS):
                return sock
        return WarySocket(sock.detach(), self)

    def drop(self, sock: socket.SocketType) -> None:
        """Close *sock* soon. After the end of ``run``, the end of the process closes it."""
        self._doomed.append(sock.detach())
        self._wanted.set()

    async def run(self) -> None:
        """Close dropped sockets until cancelled."""
        while True:
            await self._wanted.wait()
            self._wanted = trio.Event()
            while self._doomed:
                await self._close(self._doomed.copy())

    async def _close(self, fds: list[int]) -> None:
        token, copied = trio.lowlevel.current_trio_token(), trio.Event()

        def close() -> None:
            copied.set()
            _close_all(fds)

        def outlive() -> None:
            # A signal that came after the daemon's handlers have ended would end the process.
            signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
            own = _own_table()
            with contextlib.suppress(trio.RunFinishedError):
                trio.from_thread.run_sync(close if own else copied.set, trio_token=token)
            if not own:
                # Then this thread closes them, however long it has to wait.
                _close_all(fds)

        try:
            threading.Thread(target=outlive, daemon=True).start()
        except RuntimeError:
            # The host, or the service's cgroup, is out of processes.
            await trio.sleep(PAUSE)
        else:
            await copied.wait()
            del self._doomed[: len(fds)]


def _close_all(fds: list[int]) -> None:
    for fd in fds:
        os.close(fd)


def _own_table() -> bool:
    """Give this thread a copy of the table of descriptors; return whether that succeeded.

    A container may forbid unshare(2); kernels before 5.9 have no close_range(2).
    """
    libc = ctypes.CDLL(None, use_errno=True)
    first, last, flags = map(ctypes.c_uint, (PAST_ALL, 0xFFFFFFFF, CLOSE_RANGE_UNSHARE))
    return not (libc.syscall(CLOSE_RANGE, first, last, flags) and libc.unshare(CLONE_FILES))
