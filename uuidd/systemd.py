"""What systemd hands to a service, and hears of it: sd_listen_fds(3), sd_notify(3)."""

from __future__ import annotations

import contextlib
import os
import socket
import stat

FIRST_FD = 3
"""Descriptors are passed from here on (SD_LISTEN_FDS_START)."""


class ActivationError(Exception):
    """What systemd passed cannot be used: one line that says why."""


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
        raise ActivationError(f"descriptor {FIRST_FD}, passed by systemd, is not a socket")
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


class Notifier:
    """Tells systemd how the service does (sd_notify(3)); tells nobody where nobody asked.

    *watchdog* is how many seconds it may be silent before systemd takes it for hung, None for ever.
    """

    def __init__(self, sock: socket.socket | None, watchdog: float | None) -> None:
        self._sock = sock
        self.watchdog = watchdog

    @property
    def connected(self) -> bool:
        """Whether anybody listens."""
        return self._sock is not None

    def notify(self, **values: str | int) -> None:
        """Send what systemd knows by these names, in upper case: ready=1, status="..."."""
        if self._sock is not None:
            lines = "\n".join(f"{name.upper()}={value}" for name, value in values.items())
            # The manager may be gone or be restarting, which is no reason to stop serving.
            with contextlib.suppress(OSError):
                self._sock.send(lines.encode(errors="replace"))

    def close(self) -> None:
        """Tell nothing more."""
        if self._sock is not None:
            self._sock.close()
            self._sock = None


def notifier() -> Notifier:
    """Give the way to tell systemd, as NOTIFY_SOCKET and WATCHDOG_USEC say, and take both away.

    Raises ActivationError when nothing can be sent there.
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
        raise ActivationError(
            f"NOTIFY_SOCKET is {path!r}: {error.strerror or error};"
            " start as a service of systemd's, or without that variable"
        ) from error
    return Notifier(sock, watchdog)


def _watchdog(microseconds: str, pid: str) -> float | None:
    if pid not in ("", str(os.getpid())) or not (microseconds.isascii() and microseconds.isdigit()):
        return None
    return int(microseconds) / 1e6 or None


def logs_to_journal() -> bool:
    """Whether standard error is the journal's, as JOURNAL_STREAM says (systemd.exec(5))."""
    try:
        found = os.fstat(2)
    except OSError:
        return False
    return os.environ.get("JOURNAL_STREAM") == f"{found.st_dev}:{found.st_ino}"
