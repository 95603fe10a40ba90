"""Who is at the other end of a Unix socket (SO_PEERCRED, unix(7))."""

from __future__ import annotations

import socket
from struct import Struct

_UCRED = Struct("3i")
_SIZE = _UCRED.size
_LEVEL, _PEERCRED = int(socket.SOL_SOCKET), int(socket.SO_PEERCRED)


def peer_pid(sock: socket.SocketType) -> int:
    """Give the process that connected or, to a caller, the one that listens."""
    pid: int = _UCRED.unpack(sock.getsockopt(_LEVEL, _PEERCRED, _SIZE))[0]
    return pid


def peer_uid(sock: socket.SocketType) -> int:
    """Give the user that connected."""
    uid: int = _UCRED.unpack(sock.getsockopt(_LEVEL, _PEERCRED, _SIZE))[1]
    return uid
