"""A daemon in a temporary folder, for one command or test."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import NamedTuple

from uuidd.core.wire import MOST_PATH_BYTES

STARTED = b"uuidd: INFO: started:"
"""What the daemon logs when it is ready."""

ROUTINE = b"uuidd: INFO:"

PR_SET_PDEATHSIG = 1

START_SECONDS = 30.0
STOP_SECONDS = 15.0


class CannotRun(RuntimeError):
    """Raised if the daemon cannot be run; the text says why."""


class PrivateDaemon(NamedTuple):
    """A daemon that runs: the path of its *socket*, and its *pid*."""

    socket: Path
    pid: int


@contextlib.contextmanager
def running(worker: int | str | None) -> Iterator[PrivateDaemon]:
    """Run a daemon with its socket and its state in a temporary folder.

    It is ended at the end, and also if the thread that started it ends; then the folder is removed.
    Raises CannotRun.
    """
    try:
        folder = tempfile.TemporaryDirectory(prefix="uuidd-", ignore_cleanup_errors=True)
        state = Path(folder.name, "state")
        state.mkdir()
    except OSError as error:
        raise CannotRun(
            f"no temporary folder can be made: {error.strerror}; name one in TMPDIR"
        ) from error
    socket = state.with_name("request")
    size = len(os.fsencode(socket))
    if size > MOST_PATH_BYTES:
        folder.cleanup()
        raise CannotRun(
            f"the socket {socket} would have a path of {size} bytes, and at most {MOST_PATH_BYTES}"
            " are allowed; name a shorter folder in TMPDIR"
        )
    command = [sys.executable, "-m", "uuidd", "-F", "-P", f"--socket={socket}", f"--state={state}"]
    if worker is not None:
        command.append(f"--worker={worker}")
    with folder, _run(command) as pid:
        yield PrivateDaemon(socket, pid)


@contextlib.contextmanager
def _run(command: list[str]) -> Iterator[int]:
    # Before the daemon runs: a signal could come meanwhile, and nobody would end the daemon.
    told: SimpleQueue[str] = SimpleQueue()
    reader = threading.Thread(target=lambda: read_log(process.stderr or (), told), daemon=True)
    # In a session of its own: a terminal's Ctrl-C reaches the command, and not the daemon.
    try:
        process = subprocess.Popen(  # noqa: S603  (our own interpreter and module)
            command,
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
            preexec_fn=_end_with_parent,
        )
    except OSError as error:
        raise CannotRun(f"the daemon cannot be run: {error.strerror}") from error
    with process:
        try:
            reader.start()
            try:
                last = told.get(timeout=START_SECONDS)
            except Empty:
                last = f"its log did not say so within {START_SECONDS:g} s"
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


def read_log(log: Iterable[bytes], told: SimpleQueue[str]) -> None:
    """Read a daemon's log to its end, so that the daemon never blocks.

    Tell "" when it has started, and from then on show its warnings and errors; at the end tell its
    last line.
    """
    # Signals are for the thread that waits for them, also those that it has blocked for a while.
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    last, started = "it said nothing", False
    for line in log:
        last = line.decode(errors="replace").rstrip()
        if line.startswith(STARTED):
            started = True
            told.put("")
        elif started and not line.startswith(ROUTINE) and sys.stderr is not None:
            # Where nobody reads what is shown, the daemon must not block either.
            with contextlib.suppress(OSError, ValueError):
                print(last, file=sys.stderr)  # noqa: T201  (as the daemon itself would)
    told.put(last)
