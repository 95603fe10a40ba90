"""The client's socket: safe after a fork or a closed descriptor, and at the interpreter's end."""

from __future__ import annotations

# Not socket, whose class gevent and eventlet replace by classes of their own.
import _socket
import os
from collections.abc import Callable
from contextlib import suppress
from struct import Struct

from uuidd.core.typed import Any
from uuidd_client.life import Life, Over

_INT = Struct("i")

_ONE_PASSED = _socket.CMSG_LEN(_INT.size)
"""Room for one descriptor; the kernel closes others, which CMSG_SPACE could have room for."""

_CLOEXEC = getattr(_socket, "MSG_CMSG_CLOEXEC", 0x4000_0000)
"""So that programs which are started do not inherit a passed descriptor."""


class Stream(_socket.socket):
    """A Unix stream socket that checks whether its descriptor is still its own.

    It waits in system calls, also under gevent and eventlet: greenlets wait with it.

    A process that becomes a daemon closes all descriptors; then the number is free, or a file's.

    A signal handler may fork in the middle of any call here, and return in the child too. The
    connection is the parent's then: in the child each connect, read or write raises Over. CPython
    runs handlers when calls return, and while a system call waits. So each call that could connect,
    read or write directly follows a check of *alive*, and does not wait.
    """

    identity: tuple[int, int] | None = None
    """The device and the inode of the socket that was opened."""

    # Kept here for ``__del__``: at the interpreter's end, the names of a module may be gone first.
    fstat = staticmethod(os.fstat)
    getpid = staticmethod(os.getpid)
    both_ways = _socket.SHUT_RDWR
    pid = 0

    def __init__(self, life: Life) -> None:
        # First: a child must not inherit a descriptor for which it is alive.
        self.alive = life.alive
        self.pid = os.getpid()
        super().__init__(_socket.AF_UNIX, _socket.SOCK_STREAM)
        info = self.fstat(self.fileno())
        self.identity = (info.st_dev, info.st_ino)

    def __del__(self) -> None:
        # A program does not close the client of uuid1(), so an open socket is not a leak here.
        self.close_own()

    def at_once(self, call: Callable[..., Any], *args: Any) -> Any:
        """Return what a method of the socket returns, which does not wait.

        Raises BlockingIOError where it would wait, and ConnectionResetError if the descriptor is
        not the socket's any more.
        """
        if not self.is_open():
            raise ConnectionResetError
        self.settimeout(0)
        if not self.alive[0]:
            raise Over
        return call(*args)

    def receive(self, count: int, seconds: float) -> tuple[bytes, list[int]]:
        """Return up to *count* bytes that have come, and the descriptors passed with them.

        Waits for *seconds* if there are none. Raises BlockingIOError if none have come then.
        """
        self.wait_for_bytes(seconds)
        data, passed, _, _ = self.at_once(self.recvmsg, count, _ONE_PASSED, _CLOEXEC)
        return data, [_INT.unpack(each[: _INT.size])[0] for *_, each in passed]

    def wait_for_bytes(self, seconds: float) -> None:
        """Wait until something can be read, for *seconds* at most. A read after it never waits."""
        self.settimeout(seconds)
        if not self.alive[0]:
            # The parent takes the answer, so the child would wait for its whole time-out.
            raise Over
        with suppress(BlockingIOError, TimeoutError):
            # Waits, but leaves the bytes there.
            self.recv(1, _socket.MSG_PEEK)

    def is_quiet(self) -> bool:
        """Whether nothing has come: no byte, no end of file and no error. Does not wait."""
        try:
            self.at_once(self.recv, 1)
        except BlockingIOError:
            return True
        except OSError:
            pass
        return False

    def is_open(self) -> bool:
        """Whether the descriptor is still the socket that was opened."""
        try:
            info = self.fstat(self.fileno())
        except OSError:
            return False
        return (info.st_dev, info.st_ino) == self.identity

    def close_own(self) -> None:
        """End the connection, and close the descriptor, unless another file has it by now.

        Only the process that made the connection ends it: also for its children, which may have a
        copy of the socket.
        """
        # Without an identity __init__ was interrupted, so no other file can have the number.
        if self.identity is None or self.is_open():
            try:
                if self.getpid() == self.pid:
                    self.shutdown(self.both_ways)
            except OSError:
                # It is not connected.
                pass
            self.close()
        else:
            self.detach()
