"""Who is at the other end of a Unix socket (SO_PEERCRED, unix(7))."""

from __future__ import annotations

import socket
from pathlib import Path
from struct import Struct

ALL_UIDS = 2**32 - 1
"""How many uids there are."""

OVERFLOW_UID = 65534
"""The uid that stands for those that a user namespace does not map; a host may say another."""

_UCRED = Struct("3i")
_SIZE = _UCRED.size
_LEVEL, _PEERCRED = int(socket.SOL_SOCKET), int(socket.SO_PEERCRED)


def peer_pid(sock: socket.SocketType) -> int:
    """Give the process that connected or, to a caller, the one that listens."""
    pid: int = _UCRED.unpack(sock.getsockopt(_LEVEL, _PEERCRED, _SIZE))[0]
    return pid


def peer_uid(sock: socket.SocketType) -> int:
    """Give the user that connected or, to a caller, the one that made the socket."""
    uid: int = _UCRED.unpack(sock.getsockopt(_LEVEL, _PEERCRED, _SIZE))[1]
    return uid


def outsiders_uid(
    uid_map: Path = Path("/proc/self/uid_map"),
    overflow_uid: Path = Path("/proc/sys/kernel/overflowuid"),
) -> int | None:
    """Give the uid that all users outside of this user namespace have in it; None: there are none.

    The kernel tells them apart for nobody inside (user_namespaces(7)).
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
