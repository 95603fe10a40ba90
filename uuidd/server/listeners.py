"""The listening socket: made, found in use or stale, and removed again."""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import socket
import stat
import time
from collections.abc import Iterator
from errno import EACCES, EAGAIN, ECONNREFUSED
from pathlib import Path

from uuidd.core.wire import MOST_PATH_BYTES
from uuidd.privileges import irremovable, lacking, lacks_room
from uuidd.refused import Refused
from uuidd.server.descriptors import bar_descriptors
from uuidd.server.peers import peer_pid

BACKLOG = 512
"""Connections that the kernel queues while the daemon is busy. They are accepted in order, so a
full queue delays the next caller by some 20 ms. A caller that finds it full waits in connect."""

SYSTEMD = Path("/run/systemd/system")
"""This exists where systemd is process 1 (sd_booted(3))."""

LOCK_TRIES = 100
"""How often to try, every 10 ms, to lock a folder where another daemon is making its socket."""

log = logging.getLogger("uuidd")


class Listener:
    """A listening socket; *path* is its file, None if systemd made it and will remove it."""

    def __init__(self, sock: socket.socket, path: Path | None) -> None:
        sock.setblocking(False)
        bar_descriptors(sock)
        self.sock = sock
        self.path = path
        name = sock.getsockname()
        place = Path(name) if isinstance(name, str) and name.startswith("/") else None
        # A container may have got it from outside, where its folder is another.
        self._place = place if place and place.parent.is_dir() else None
        self._file: os.stat_result | None = None
        with contextlib.suppress(OSError):
            if self._place is not None:
                self._file = self._place.lstat()
        self._trouble = ""

    def unreachable(self) -> str:
        """Return a line on why no program can connect, and the way out; "" if programs can.

        The socket's file may have been removed, or replaced. Each change of that is logged.
        """
        if self._place is None:
            return ""
        trouble = ""
        if not self._has_file_at(self._place):
            way = "restart uuidd" if self.path else "systemctl restart uuidd.socket"
            trouble = f"no program can connect: the socket is no longer at {self._place}; {way}"
        if trouble and not self._trouble:
            log.error("unreachable: %s", trouble)
        elif self._trouble and not trouble:
            log.info("programs can connect again: the socket is at %s", self._place)
        self._trouble = trouble
        return trouble

    def _has_file_at(self, place: Path) -> bool:
        try:
            return self._file is not None and os.path.samestat(place.lstat(), self._file)
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError:
            # As in a folder that this user cannot look into, and others can.
            return True

    def stop_listening(self) -> None:
        """Remove the file, if it is still this socket's, and refuse further connections.

        Connections that are queued can still be accepted. A socket that systemd made stays as it
        is, for the next daemon.
        """
        # Only once: an inode number that is free again may be that of another daemon's socket.
        file, self._place, self._file = self._file, None, None
        if self.path is None or file is None:
            return
        with contextlib.suppress(OSError):
            if os.path.samestat(self.path.lstat(), file):
                self.path.unlink()
        # This also stops callers that opened the file before, or find one that was not removed.
        self.sock.shutdown(socket.SHUT_RD)

    def close(self) -> None:
        """Stop listening, and remove the file if it is still this socket's."""
        self.stop_listening()
        self.sock.close()


def open_listener(path: Path) -> Listener:
    """Listen at *path*, open to every user (mode 0666, like util-linux's); replace a stale socket.

    Raises Refused, and changes nothing, if a daemon listens there, if there is a file that is
    not a socket, or if the socket cannot be made.
    """
    _is_there(path)
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
            raise _unusable(path, "made", error.errno) from error
        finally:
            os.umask(old_mask)
        return Listener(sock, path)


def check_listener(path: Path) -> None:
    """Check what ``open_listener`` needs, but change nothing, and connect to nothing.

    A socket at which a daemon listens passes. Raises Refused.
    """
    is_there = _is_there(path)
    os.close(_opened(path.parent))
    if number := lacking(path, os.W_OK):
        raise _unusable(path, "connected to", number)
    number = lacking(path.parent, os.W_OK | os.X_OK) or irremovable(path)
    if number := number or (0 if is_there else lacks_room(path.parent)):
        raise _unusable(path, "replaced" if is_there else "made", number)


def _unusable(path: Path, done: str, number: int | None) -> Refused:
    """Return the refusal of a socket that cannot be *done*."""
    way = " remove it, or"
    if done == "made":
        # As in a volume that is bound into a container, and has the host's owner.
        way = f" chown its folder to uid {os.geteuid()}, or" if number == EACCES else ""
    return Refused(
        f"the socket {path} cannot be {done}: {os.strerror(number or 0)};{way} name another with"
        " --socket"
    )


def _is_there(path: Path) -> bool:
    """Whether there is a socket at *path*. Raises Refused if there cannot be one."""
    size = len(os.fsencode(path))
    if size > MOST_PATH_BYTES:
        raise Refused(
            f"the socket path {path} has {size} bytes, and at most {MOST_PATH_BYTES} are allowed;"
            " name a shorter one with --socket"
        )
    try:
        mode = path.lstat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise Refused(
            f"the socket {path} cannot be examined: {error.strerror}; name another with --socket"
        ) from error
    if not stat.S_ISSOCK(mode):
        raise Refused(f"{path} is not a socket; remove it, or name another with --socket")
    return True


@contextlib.contextmanager
def _only_one(folder: Path) -> Iterator[None]:
    """Keep two daemons that start at once from removing each other's socket.

    It locks the folder, but does not wait for long: in /tmp any user may hold such a lock.
    """
    fd = _opened(folder)
    try:
        for _ in range(LOCK_TRIES):
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            time.sleep(0.01)
        else:
            # The lock of the state still stops one of them.
            log.warning(
                "the socket's folder is locked by another process; starting without a lock:"
                " folder=%s",
                folder,
            )
        yield
    finally:
        os.close(fd)


def _opened(folder: Path) -> int:
    try:
        return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise Refused(
            f"the socket's folder {folder} cannot be opened: {error.strerror};"
            " create it, or name another socket with --socket"
        ) from error


def _clear(path: Path) -> None:
    """Remove the socket of a daemon that has ended. Raises Refused if it is another file."""
    if not _is_there(path):
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        number = probe.connect_ex(os.fspath(path))
        pid = peer_pid(probe)
    if number == ECONNREFUSED:
        try:
            path.unlink()
        except OSError as error:
            raise _unusable(path, "replaced", error.errno) from error
    elif number not in (0, EAGAIN):
        raise _unusable(path, "connected to", number)
    elif pid == 1 and SYSTEMD.exists():
        raise Refused(
            f"systemd listens at {path}, for a service; start that one (systemctl start uuidd), or"
            " name another socket with --socket"
        )
    else:
        # Not known of one whose queue is full, or that is in another pid namespace.
        with_pid = f" with pid {pid}" if pid else ""
        raise Refused(
            f"a daemon{with_pid} is listening at {path};"
            " stop that one, or name another socket with --socket"
        )
