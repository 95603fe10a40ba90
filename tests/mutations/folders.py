"""Folders for copies of the checkout and for what runs write, which are gone after the run."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

PREFIX = "mutation-"
"""Of the folders that a run makes."""


def memory() -> Path:
    """Return where the folders are: in memory if possible, for tests are tried and no disk is."""
    shm = Path("/dev/shm")
    return shm if shm.is_dir() else Path(tempfile.gettempdir())


@contextlib.contextmanager
def folder(parent: Path | None = None) -> Iterator[Path]:
    """Provide an empty folder; first remove what runs have left that SIGKILL ended."""
    parent = parent or memory()
    remove_left(parent)
    with contextlib.ExitStack() as stack:
        while True:
            path = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
            lock = os.open(path, os.O_RDONLY)
            fcntl.flock(lock, fcntl.LOCK_EX)
            if path.exists():
                break
            # Another run took it for one that was left.
            os.close(lock)
        stack.callback(os.close, lock)
        stack.callback(shutil.rmtree, path, ignore_errors=True)
        yield path


def remove_left(parent: Path) -> None:
    """Remove the folders in *parent* whose runs have ended, and end the processes that use them."""
    for path in parent.glob(f"{PREFIX}*"):
        try:
            lock = os.open(path, os.O_RDONLY)
        except FileNotFoundError:
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            continue
        else:
            for process in _users(path):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
            shutil.rmtree(path, ignore_errors=True)
        finally:
            os.close(lock)


def _users(path: Path) -> Iterator[int]:
    """Yield the processes that a run has started: a variable of theirs names its folder."""
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if f"={path}/".encode() in (process / "environ").read_bytes():
                yield int(process.name)
