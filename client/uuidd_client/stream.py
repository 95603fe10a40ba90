"""A stream socket that bears what programs do to their descriptors, and the interpreter's end."""

from __future__ import annotations

import os
import socket
from struct import Struct

from uuidd_client.clocks import elapsed


class Stream(socket.socket):
    """A Unix stream socket that knows whether its descriptor is still its own.

    A process that becomes a daemon closes all descriptors; then the number is free, or a file's.
    """

    _identity: tuple[int, int] | None = None

    # Kept here for ``__del__``: at the interpreter's end, the names of a module may be gone first.
    _fstat = staticmethod(os.fstat)
    _close_descriptor = staticmethod(os.close)

    def __init__(self) -> None:
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
            self.connect(path)
            try:
                self.getpeername()
                return
            except OSError:
                # A signal broke off the wait, which Python takes for the end of it.
                if elapsed() >= deadline:
                    raise TimeoutError from None

    def is_quiet(self) -> bool:
        """Whether nothing has come: no byte, no end and no error. Does not wait."""
        if not self.is_there():
            return False
        try:
            self.settimeout(0)
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
