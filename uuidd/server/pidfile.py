"""The pid file: it tells scripts which daemon runs.

Any user who can read the file can lock it with flock(2), or with a read lock of fcntl(2). So the
daemon holds a write lock of fcntl(2), which needs the right to write. It takes the lock before the
file has its name, while no other user can open it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from uuidd.privileges import irremovable, lacking, lacks_room
from uuidd.refused import Refused


@contextlib.contextmanager
def pid_file(path: Path) -> Iterator[None]:
    """Hold *path*, locked, with this process's pid in it, and remove it at the end of the context.

    A file that has taken its place meanwhile is not removed. Raises Refused, and changes
    nothing, if the file cannot be written, or another daemon holds it.
    """
    _check_kind(path)
    _check_free(path)
    try:
        fd = _put(path)
    except OSError as error:
        raise _unwritten(path, error.errno) from error
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            if os.path.samestat(os.fstat(fd), os.lstat(path)):
                path.unlink()
        os.close(fd)


def check_pid_file(path: Path) -> None:
    """Check what ``pid_file`` needs, but change nothing.

    A file that a daemon holds passes. Raises Refused.
    """
    _check_kind(path)
    number = lacking(path, os.R_OK | os.W_OK) or lacking(path.parent, os.W_OK | os.X_OK)
    if number := number or irremovable(path) or lacks_room(path.parent, 1):
        raise _unwritten(path, number)
    with contextlib.suppress(FileNotFoundError), path.open("rb") as file:
        _check_text(path, file.read(32))


def _check_kind(path: Path) -> None:
    """Check that what is at *path*, if anything, can be the pid file of a daemon."""
    try:
        path.parent.stat()
        with contextlib.suppress(FileNotFoundError):
            _check_file(path, path.lstat())
    except OSError as error:
        raise _unwritten(path, error.errno) from error


def _check_file(path: Path, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise _refusal(path, "is not a plain file")
    if found.st_uid not in (0, os.geteuid()) or found.st_nlink > 1:
        raise _refusal(path, f"belongs to uid {found.st_uid}, or has a second name (a hard link)")


def _check_text(path: Path, text: bytes) -> None:
    """Check that the file says no more than a pid: what else it says would be lost."""
    if text.strip(b" \n0123456789"):
        raise _refusal(path, "has something else in it than a pid")


def _check_free(path: Path) -> None:
    """Check that no daemon holds the pid file at *path*, if there is one."""
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return
    except OSError as error:
        raise _unwritten(path, error.errno) from error
    try:
        _check_file(path, os.fstat(fd))
        try:
            # A read lock is refused only if another process has a write lock.
            fcntl.lockf(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            holder = os.pread(fd, 32, 0).decode("ascii", "replace").strip() or "unknown"
            raise _refusal(path, f"is held by the uuidd with pid {holder}") from None
        _check_text(path, os.pread(fd, 32, 0))
    finally:
        os.close(fd)


def _put(path: Path) -> int:
    """Replace what is at *path* by a new file, locked and with this process's pid."""
    name = path.with_name(f".uuidd-pid.{os.urandom(8).hex()}")
    # Only its owner can open it; others may, once it is locked.
    fd = os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.write(fd, f"{os.getpid():>8}\n".encode("ascii"))
        os.fchmod(fd, 0o644)
        os.rename(name, path)
    except OSError:
        os.unlink(name)
        os.close(fd)
        raise
    return fd


def _unwritten(path: Path, number: int | None) -> Refused:
    return _refusal(path, f"cannot be written: {os.strerror(number or 0)}")


def _refusal(path: Path, why: str) -> Refused:
    return Refused(f"the pid file {path} {why}; name another with --pid, or none with --no-pid")
