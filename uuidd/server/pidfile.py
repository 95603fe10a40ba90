"""The pid file: which daemon runs, for scripts that look there."""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
from collections.abc import Iterator
from pathlib import Path


class PidFileError(Exception):
    """The pid file cannot be had; one line that says why, and what to do."""


@contextlib.contextmanager
def pid_file(path: Path) -> Iterator[None]:
    """Hold *path*, locked, with this process's pid in it, and remove it at any end.

    Raises PidFileError when it cannot be written, or is held by another daemon; a file that was
    there is then as it was.
    """
    fd = _opened(path)
    try:
        if not _claim(fd, path):
            # Its uuidd was killed; another holds a lock, for which it is enough to read a file.
            os.close(fd)
            path.unlink()
            fd = _opened(path)
            _claim(fd, path)
        try:
            yield
        finally:
            with contextlib.suppress(OSError):
                path.unlink()
    finally:
        os.close(fd)


def _opened(path: Path) -> int:
    try:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
    except OSError as error:
        raise _refusal(path, f"cannot be written: {error.strerror}") from error
    try:
        _check(fd, path)
    except PidFileError:
        os.close(fd)
        raise
    return fd


def _check(fd: int, path: Path) -> None:
    """See to it that nobody else could change the file, and nothing else is changed by it."""
    found = os.fstat(fd)
    if not stat.S_ISREG(found.st_mode):
        raise _refusal(path, "is no file")
    if found.st_uid not in (0, os.geteuid()) or found.st_nlink > 1:
        raise _refusal(path, f"belongs to uid {found.st_uid}, or has another name")


def _claim(fd: int, path: Path) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.pread(fd, 32, 0).decode("ascii", "replace").strip() or "unknown"
        if holder.isdigit() and not Path("/proc", holder).exists():
            return False
        raise _refusal(path, f"is held by the uuidd with pid {holder}") from None
    try:
        os.ftruncate(fd, 0)
        os.pwrite(fd, f"{os.getpid():>8}\n".encode("ascii"), 0)
    except OSError as error:
        with contextlib.suppress(OSError):
            path.unlink()
        raise _refusal(path, f"cannot be written: {error.strerror}") from error
    return True


def _refusal(path: Path, why: str) -> PidFileError:
    return PidFileError(
        f"the pid file {path} {why}; name another with --pid, or none with --no-pid"
    )
