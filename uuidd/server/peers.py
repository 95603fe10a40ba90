"""Who is at the other end of a Unix socket (SO_PEERCRED, unix(7))."""

from __future__ import annotations

import socket
from struct import Struct

_UCRED = Struct("3i")


def peer_pid(sock: socket.SocketType) -> int:
    """Give the process that connected or, to a caller, the one that listens."""
    return _credentials(sock)[0]


def peer_uid(sock: socket.SocketType) -> int:
    """Give the user that connected."""
    return _credentials(sock)[1]


def _credentials(sock: socket.SocketType) -> tuple[int, int, int]:
    told = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size)
    pid, uid, gid = _UCRED.unpack(told)
    return pid, uid, gid
