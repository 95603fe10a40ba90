"""What systemd hands to a service: sockets (sd_listen_fds(3))."""

from __future__ import annotations

import os
import socket
import stat

FIRST_FD = 3
"""Descriptors are passed from here on (SD_LISTEN_FDS_START)."""


class ActivationError(Exception):
    """The sockets that were passed are none that can be served."""


def inherited_socket() -> socket.socket:
    """Give the one listening Unix stream socket that systemd passed.

    Raises ActivationError, saying what was passed instead.
    """
    if os.environ.get("LISTEN_PID") != str(os.getpid()):
        raise ActivationError(
            "no socket was passed (LISTEN_PID is not ours);"
            " start through uuidd.socket, or without --socket-activation"
        )
    passed = os.environ.get("LISTEN_FDS", "")
    if passed != "1":
        raise ActivationError(
            f"LISTEN_FDS is {passed!r}; exactly one socket is served (see uuidd.socket)"
        )
    if not _is_socket(FIRST_FD):
        raise ActivationError(f"descriptor {FIRST_FD}, passed by systemd, is no socket")
    sock = socket.socket(fileno=FIRST_FD)
    listening = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
    if (sock.family, sock.type) != (socket.AF_UNIX, socket.SOCK_STREAM) or not listening:
        sock.detach()
        raise ActivationError(
            f"descriptor {FIRST_FD} is no listening Unix stream socket;"
            " use ListenStream= with a path"
        )
    sock.set_inheritable(False)
    return sock


def _is_socket(fd: int) -> bool:
    try:
        return stat.S_ISSOCK(os.fstat(fd).st_mode)
    except OSError:
        return False
