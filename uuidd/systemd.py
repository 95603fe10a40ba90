"""What systemd passes to a service and hears from it: sd_listen_fds(3), sd_notify(3)."""

from __future__ import annotations

import contextlib
import os
import re
import socket

from uuidd.refused import Refused

FIRST_FD = 3
"""The first descriptor that systemd passes (SD_LISTEN_FDS_START)."""


KERNEL_LOG = "kmsg"
"""The name under which the unit passes the kernel's log (OpenFile=)."""


def inherited_socket() -> socket.socket:
    """Return the one listening Unix stream socket that systemd passed.

    Raises Refused, which says what was passed instead.
    """
    if not _is_passed():
        raise Refused(
            "no socket was passed (LISTEN_PID is not ours);"
            " start through uuidd.socket, or without --socket-activation"
        )
    sockets = [fd for fd, name in _passed() if name != KERNEL_LOG]
    if len(sockets) != 1:
        passed = os.environ.get("LISTEN_FDS", "")
        raise Refused(f"LISTEN_FDS is {passed!r}; exactly one socket is served (see uuidd.socket)")
    (fd,) = sockets
    with contextlib.suppress(OSError):
        sock = socket.socket(fileno=fd)
        listening = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
        if (sock.family, sock.type) == (socket.AF_UNIX, socket.SOCK_STREAM) and listening:
            sock.set_inheritable(False)
            return sock
        sock.detach()
    raise Refused(
        f"descriptor {fd}, passed by systemd, is not a listening Unix stream socket; use"
        " ListenStream= with a path"
    )


def inherited_kernel_log() -> int | None:
    """Return the descriptor of /dev/kmsg that systemd passed (OpenFile=), or None."""
    if not _is_passed():
        return None
    fd = next((fd for fd, name in _passed() if name == KERNEL_LOG), None)
    if fd is not None:
        # Whoever reads it will see what it is.
        with contextlib.suppress(OSError):
            os.set_inheritable(fd, False)
    return fd


def _is_passed() -> bool:
    return os.environ.get("LISTEN_PID") == str(os.getpid())


def _passed() -> list[tuple[int, str]]:
    """Return the descriptors that systemd passed, and their names, "" without one."""
    count = os.environ.get("LISTEN_FDS", "")
    # systemd passes no more descriptors than a process may have.
    if not re.fullmatch("[1-9][0-9]{0,3}", count):
        return []
    names = os.environ.get("LISTEN_FDNAMES", "").split(":") + [""] * int(count)
    return list(enumerate(names[: int(count)], FIRST_FD))


class Notifier:
    """Reports the state of the service to systemd (sd_notify(3)), if systemd gave it a socket.

    *connected* says whether it did. *watchdog* is the number of seconds without a report after
    which systemd restarts the service; None if there is no such limit.
    """

    def __init__(self, sock: socket.socket | None, watchdog: float | None) -> None:
        self._sock = sock
        self.connected = sock is not None
        self.watchdog = watchdog

    def notify(self, **values: str | int) -> None:
        """Send variables of sd_notify(3), named in lower case: ``ready=1, status="..."``."""
        if self._sock is not None:
            lines = "\n".join(f"{name.upper()}={value}" for name, value in values.items())
            # If systemd is gone or restarts, the daemon serves on.
            with contextlib.suppress(OSError):
                self._sock.send(lines.encode(errors="replace"))

    def close(self) -> None:
        """Send no more reports."""
        if self._sock is not None:
            self._sock.close()
            self._sock = None


def notifier() -> Notifier:
    """Return a notifier for NOTIFY_SOCKET and WATCHDOG_USEC, which leave the environment.

    Raises Refused if the socket cannot be connected to.
    """
    path = os.environ.pop("NOTIFY_SOCKET", "")
    watchdog = _watchdog(os.environ.pop("WATCHDOG_USEC", ""), os.environ.pop("WATCHDOG_PID", ""))
    if not path:
        return Notifier(None, None)
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        # A name that begins with @ is an abstract one (unix(7)).
        sock.connect("\0" + path[1:] if path.startswith("@") else path)
        sock.setblocking(False)
    except OSError as error:
        sock.close()
        raise Refused(
            f"NOTIFY_SOCKET is {path!r}: {error.strerror or error};"
            " start as a service of systemd, or without that variable"
        ) from error
    return Notifier(sock, watchdog)


def _watchdog(microseconds: str, pid: str) -> float | None:
    if pid not in ("", str(os.getpid())) or not (microseconds.isascii() and microseconds.isdigit()):
        return None
    return int(microseconds) / 1e6 or None


def logs_to_journal() -> bool:
    """Whether standard error leads to the journal, by JOURNAL_STREAM (systemd.exec(5))."""
    try:
        found = os.fstat(2)
    except OSError:
        return False
    return os.environ.get("JOURNAL_STREAM") == f"{found.st_dev}:{found.st_ino}"
