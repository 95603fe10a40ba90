"""The pid file: which daemon runs, for scripts that look there."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path


class PidFileError(Exception):
    """The pid file cannot be had; one line that says why, and what to do."""


@contextlib.contextmanager
def pid_file(path: Path) -> Iterator[None]:
    """Hold *path*, locked, with this process's pid in it, and remove it at the end.

    Raises PidFileError when it cannot be written, or is held by another daemon; a file that was
    there is then as it was.
    """
    try:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
    except OSError as error:
        raise _refusal(path, f"cannot be written: {error.strerror}") from error
    try:
        _claim(fd, path)
        yield
        with contextlib.suppress(OSError):
            path.unlink()
    finally:
        os.close(fd)


def _claim(fd: int, path: Path) -> None:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.pread(fd, 32, 0).decode("ascii", "replace").strip() or "unknown"
        raise _refusal(path, f"is held by the uuidd with pid {holder}") from None
    try:
        os.ftruncate(fd, 0)
        os.pwrite(fd, f"{os.getpid():>8}\n".encode("ascii"), 0)
    except OSError as error:
        with contextlib.suppress(OSError):
            path.unlink()
        raise _refusal(path, f"cannot be written: {error.strerror}") from error


def _refusal(path: Path, why: str) -> PidFileError:
    return PidFileError(
        f"the pid file {path} {why}; name another with --pid, or none with --no-pid"
    )
