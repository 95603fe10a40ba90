"""The client's socket: sound after a fork, a closed descriptor, and the interpreter's end."""

from __future__ import annotations

import os
import socket
from struct import Struct

from uuidd_client.clocks import elapsed
from uuidd_client.fork_guard import Forked, alive


class Stream(socket.socket):
    """A Unix stream socket that knows whether its descriptor is still its own.

    A process that becomes a daemon closes all descriptors; then the number is free, or a file's.

    A signal handler may fork in the middle of any call here, and return in the child too. The
    connection is the parent's then: what would connect, read or write in the child raises Forked.
    CPython runs handlers as calls return, and where a system call waits. So each call that could
    connect, read or write stands right behind a look at *alive*, and does not wait.
    """

    _identity: tuple[int, int] | None = None

    # Kept here for ``__del__``: at the interpreter's end, the names of a module may be gone first.
    _fstat = staticmethod(os.fstat)
    _close_descriptor = staticmethod(os.close)

    def __init__(self) -> None:
        # Before there is a descriptor that a child could inherit.
        self._alive = alive()
        super().__init__(socket.AF_UNIX, socket.SOCK_STREAM)
        # Whatever the program has set by setdefaulttimeout.
        self.setblocking(True)
        made = self._fstat(self.fileno())
        self._identity = (made.st_dev, made.st_ino)

    def __del__(self) -> None:
        # Nobody closes the client behind uuid1(); its socket is no leak to be warned of.
        self.hang_up()

    def reach(self, path: str, deadline: float) -> None:
        """Connect to the socket at *path*, and wait until *deadline* if its backlog is full.

        Raises BlockingIOError or TimeoutError when it stays full; other OSErrors as connect(2).
        """
        while True:
            left = deadline - elapsed()
            # A Unix socket's connect waits for a full backlog only on a socket that blocks.
            self.setblocking(left > 0)
            if left > 0:
                self.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, _timeval(left))
            if not self._alive[0]:
                raise Forked
            # It waits, but no child connects again: Python does not call connect(2) twice.
            self.connect(path)
            try:
                self.getpeername()
                return
            except OSError:
                # A signal broke off the wait, which Python takes for the end of it.
                if elapsed() >= deadline:
                    raise TimeoutError from None

    def send_all(self, data: bytes) -> None:
        """Send *data*, a request. Raises TimeoutError if unread requests have filled the socket."""
        self.settimeout(0)
        while data:
            if not self._alive[0]:
                raise Forked
            try:
                sent = self.send(data)
            except BlockingIOError:
                raise TimeoutError from None
            data = data[sent:]

    def receive(self, count: int, seconds: float) -> bytes:
        """Give what has come, up to *count* bytes; waits for *seconds* if there is nothing."""
        self.settimeout(seconds)
        if not self._alive[0]:
            # The parent takes the answer, so the child would wait for all of its time-out.
            raise Forked
        try:
            # Waits, and takes nothing away.
            self.recv(1, socket.MSG_PEEK)
        except TimeoutError:
            if self._alive[0]:
                raise
        if not self._alive[0]:
            raise Forked
        return self.recv(count)

    def is_quiet(self) -> bool:
        """Whether nothing has come: no byte, no end and no error. Does not wait."""
        if not self.is_there():
            return False
        try:
            self.settimeout(0)
            if not self._alive[0]:
                raise Forked
            self.recv(1)
        except BlockingIOError:
            return True
        except OSError:
            pass
        return False

    def is_there(self) -> bool:
        """Whether the descriptor is still the socket that was opened."""
        try:
            found = self._fstat(self.fileno())
        except OSError:
            return False
        return (found.st_dev, found.st_ino) == self._identity

    def hang_up(self) -> None:
        """Close the descriptor, unless it is another's by now."""
        if self.is_there():
            self.close()
            return
        descriptor = self.detach()
        # Without an identity its making was broken off, so it is nobody's yet.
        if self._identity is None and descriptor >= 0:
            self._close_descriptor(descriptor)


def _timeval(seconds: float) -> bytes:
    """Give a struct timeval; one of 0 would be no bound at all."""
    return Struct("@ll").pack(int(seconds), max(int(seconds % 1 * 1e6), 1))
