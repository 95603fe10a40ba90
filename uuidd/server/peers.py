"""The process and the user at the other end of a Unix socket (SO_PEERCRED, unix(7))."""

from __future__ import annotations

import socket
from pathlib import Path
from struct import Struct

ALL_UIDS = 2**32 - 1
"""The number of uids."""

OVERFLOW_UID = 65534
"""The uid that stands for all that a user namespace does not map; a host may choose another."""

_UCRED = Struct("iII")
_SIZE = _UCRED.size
_LEVEL, _PEERCRED = int(socket.SOL_SOCKET), int(socket.SO_PEERCRED)


def peer_pid(sock: socket.SocketType) -> int:
    """Return the pid of the process that connected; for a client, of the one that listens."""
    pid: int = _UCRED.unpack(sock.getsockopt(_LEVEL, _PEERCRED, _SIZE))[0]
    return pid


def peer_uid(sock: socket.SocketType) -> int:
    """Return the uid of the user that connected; for a client, of the one that listens."""
    uid: int = _UCRED.unpack(sock.getsockopt(_LEVEL, _PEERCRED, _SIZE))[1]
    return uid


def outsiders_uid(
    uid_map: Path = Path("/proc/self/uid_map"),
    overflow_uid: Path = Path("/proc/sys/kernel/overflowuid"),
) -> int | None:
    """Return the uid that all users outside of this user namespace share in it; None if none are.

    Inside, nothing tells those users apart (user_namespaces(7)).
    """
    try:
        mapped = sum(int(line.split()[2]) for line in uid_map.read_text().splitlines())
    except OSError:
        return None
    if mapped >= ALL_UIDS:
        return None
    try:
        return int(overflow_uid.read_text())
    except OSError:
        return OVERFLOW_UID
