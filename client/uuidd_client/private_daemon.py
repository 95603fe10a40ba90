"""A daemon in a temporary folder, for one command or test."""

from __future__ import annotations

import contextlib
import ctypes
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from queue import Empty, SimpleQueue

STARTED = b"uuidd: INFO: started:"
"""What the daemon logs when it is ready."""

ROUTINE = b"uuidd: INFO:"

PR_SET_PDEATHSIG = 1

START_SECONDS = 30.0
STOP_SECONDS = 15.0


class CannotRun(Exception):
    """Raised if the daemon cannot be run; the text says why."""


@contextlib.contextmanager
def folder() -> Iterator[Path]:
    """Make a temporary folder with a folder for the state in it; remove both at the end.

    Raises CannotRun if there is no place for it.
    """
    try:
        made = tempfile.TemporaryDirectory(prefix="uuidd-", ignore_cleanup_errors=True)
        Path(made.name, "state").mkdir()
    except OSError as error:
        raise CannotRun(
            f"no temporary folder can be made: {error.strerror}; name one in TMPDIR"
        ) from error
    with made as name:
        yield Path(name)


@contextlib.contextmanager
def daemon(folder: Path, socket: Path, worker: str | None) -> Iterator[int]:
    """Run a daemon with its state and *socket* in *folder*, and return its pid.

    It is ended at the end, and also if the thread that started it ends. Raises CannotRun.
    """
    command = [sys.executable, "-m", "uuidd", "-F", "-P", f"--socket={socket}"]
    command.append(f"--state={folder / 'state'}")
    if worker is not None:
        command.append(f"--worker={worker}")
    # In a session of its own: a terminal's Ctrl-C reaches the command, and not the daemon.
    try:
        started = subprocess.Popen(  # noqa: S603  (our own interpreter and module)
            command,
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
            preexec_fn=_end_with_parent,
        )
    except OSError as error:
        raise CannotRun(f"the daemon cannot be run: {error.strerror}") from error
    with started as process:
        told: SimpleQueue[str] = SimpleQueue()
        reader = threading.Thread(target=_read, args=(process.stderr, told), daemon=True)
        try:
            reader.start()
            try:
                last = told.get(timeout=START_SECONDS)
            except Empty:
                last = f"it said nothing of it within {START_SECONDS:g} s"
            if last:
                raise CannotRun(f"the daemon did not start: {last}")
            yield process.pid
        finally:
            process.terminate()
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
            if reader.ident is not None:
                # Not if a signal came before the thread was started.
                reader.join()


def _end_with_parent() -> None:
    """Let the kernel send this process SIGTERM when its parent dies (prctl(2))."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def _read(log: Iterable[bytes], told: SimpleQueue[str]) -> None:
    """Read a daemon's log to its end, so that the daemon never blocks.

    Tell "" when it has started, and from then on show its warnings and errors; at the end tell its
    last line.
    """
    last, started = "it said nothing", False
    for line in log:
        last = line.decode(errors="replace").rstrip()
        if line.startswith(STARTED):
            started = True
            told.put("")
        elif started and not line.startswith(ROUTINE):
            print(last, file=sys.stderr)  # noqa: T201  (as the daemon itself would)
    told.put(last)
