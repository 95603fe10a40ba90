"""The listening socket: made, found alive or stale, and removed again."""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import socket
import stat
import time
from collections.abc import Iterator
from pathlib import Path

from uuidd.server.descriptors import bar_descriptors
from uuidd.server.peers import peer_pid

MAX_PATH = 107
"""Bytes of a Unix socket's path: sun_path has 108, one for the NUL (unix(7))."""

BACKLOG = 512
"""Connections that the kernel holds while the daemon is busy. They are accepted in their order, so
a storm of them delays who comes after it: here by some 20 ms. Who finds no room waits for it."""

LOCK_SECONDS = 1.0
"""How long to wait for another daemon that is making its socket in the same folder."""


log = logging.getLogger("uuidd")


class ListenerError(Exception):
    """The socket cannot be made; one line that says why, and what to do."""


class Listener:
    """A listening socket; *path* is its file, None when somebody else made and will remove it."""

    def __init__(self, sock: socket.socket, path: Path | None) -> None:
        sock.setblocking(False)
        bar_descriptors(sock)
        self.sock = sock
        self.path = path
        self._file = _identity(path) if path else None

    def stop_listening(self) -> None:
        """Remove the file, if it is still this socket's, and let nobody else connect.

        Those who have connected can be accepted yet. A socket that somebody else made stays as it
        is, for the next who listens.
        """
        if self._file is None:
            return
        if self.path and _identity(self.path) == self._file:
            with contextlib.suppress(OSError):
                self.path.unlink()
        # Only once: a number that is free may be that of another daemon's socket by then.
        self._file = None
        # Also who has found the file before, or finds one that could not be removed.
        self.sock.shutdown(socket.SHUT_RD)

    def close(self) -> None:
        """Stop listening, and remove the file if it is still this socket's."""
        self.stop_listening()
        self.sock.close()


def open_listener(path: Path) -> Listener:
    """Listen at *path*, open to every user (mode 0666, like util-linux's); replace a stale socket.

    Raises ListenerError, and leaves all as it was, when a daemon lives there, something that is no
    socket stands there, or the socket cannot be made.
    """
    size = len(os.fsencode(path))
    if size > MAX_PATH:
        raise ListenerError(
            f"the socket path {path} has {size} bytes, and {MAX_PATH} is the most;"
            " name a shorter one with --socket"
        )
    with _only_one(path.parent):
        _clear(path)
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        old_mask = os.umask(0o111)
        try:
            sock.bind(os.fspath(path))
            # Before it listens, so that it holds for every connection.
            bar_descriptors(sock)
            sock.listen(BACKLOG)
        except OSError as error:
            if sock.getsockname():
                path.unlink()
            sock.close()
            raise ListenerError(
                f"the socket {path} cannot be made: {error.strerror}; name another with --socket"
            ) from error
        finally:
            os.umask(old_mask)
        return Listener(sock, path)


@contextlib.contextmanager
def _only_one(folder: Path) -> Iterator[None]:
    """Keep two daemons that start at once from each taking the other's new socket for stale."""
    try:
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise ListenerError(
            f"the socket's folder {folder} cannot be opened: {error.strerror};"
            " create it, or name another socket with --socket"
        ) from error
    try:
        _lock(fd, folder)
        yield
    finally:
        os.close(fd)


def _lock(fd: int, folder: Path) -> None:
    """Lock the folder, but not for ever: in /tmp anybody may hold such a lock."""
    deadline = time.monotonic() + LOCK_SECONDS
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                # Any user can lock what he can read. Without, two that start at once might each
                # take the other's new socket for stale; the state's lock keeps them apart.
                log.warning(
                    "the socket's folder is locked, started without its lock: folder=%s", folder
                )
                return
            time.sleep(0.01)
        else:
            return


def _clear(path: Path) -> None:
    """Remove the socket that a dead daemon left."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    except OSError as error:
        raise ListenerError(f"the socket {path} cannot be looked at: {error.strerror}") from error
    if not stat.S_ISSOCK(mode):
        raise ListenerError(f"{path} is not a socket; remove it, or name another with --socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        try:
            probe.connect(os.fspath(path))
        except ConnectionRefusedError:
            pass
        except BlockingIOError:
            # Its backlog is full: it lives, if badly.
            raise ListenerError(f"a daemon is listening at {path}; stop that one first") from None
        except OSError as error:
            raise ListenerError(f"the socket {path} cannot be tried: {error.strerror}") from error
        else:
            pid = peer_pid(probe)
            raise ListenerError(
                f"a daemon with pid {pid} is listening at {path};"
                " stop that one, or name another socket with --socket"
            )
    try:
        path.unlink()
    except OSError as error:
        raise ListenerError(
            f"the stale socket {path} cannot be removed: {error.strerror}"
        ) from error


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.lstat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
