"""``uuidctl run``: runs a command with a private daemon."""

from __future__ import annotations

import argparse
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
from typing import Any

from uuidd_client.command.common import CommandError

STARTED = b"uuidd: INFO: started:"
"""What the daemon logs when it is ready."""

ROUTINE = b"uuidd: INFO:"

PASSED_ON = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)

PR_SET_PDEATHSIG = 1

START_SECONDS = 30.0
STOP_SECONDS = 15.0


def add_to(commands: Any) -> None:
    """Add the command to an argparse parser's commands."""
    command = commands.add_parser(
        "run",
        help="run a command with a private daemon",
        description="Run a command with a private daemon in a temporary folder. The daemon and the"
        " folder are removed when the command ends.",
    )
    command.add_argument(
        "--worker", metavar="N", help="the daemon's worker number, which Snowflakes need"
    )
    command.add_argument(
        "command",
        nargs=argparse.REMAINDER,
        metavar="-- CMD ...",
        help="the command and its arguments; its environment variable UUIDD_SOCKET has the path"
        " of the private daemon",
    )
    command.set_defaults(do=lambda given: _do(command, given))


def _do(parser: argparse.ArgumentParser, given: argparse.Namespace) -> int:
    command = given.command[1:] if given.command[:1] == ["--"] else given.command
    if not command:
        parser.error("a command is missing: uuidctl run -- CMD ...")
    with _signals() as signals, _folder() as folder:
        socket = folder / "request"
        with _daemon(folder, socket, given.worker):
            return _run(command, {**os.environ, "UUIDD_SOCKET": str(socket)}, signals)


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    """Make a temporary folder with a folder for the state in it; remove both at the end."""
    try:
        made = tempfile.TemporaryDirectory(prefix="uuidd-", ignore_cleanup_errors=True)
        Path(made.name, "state").mkdir()
    except OSError as error:
        raise CommandError(
            f"no temporary folder can be made: {error.strerror}; name one in TMPDIR"
        ) from error
    with made as folder:
        yield Path(folder)


@contextlib.contextmanager
def _daemon(folder: Path, socket: Path, worker: str | None) -> Iterator[None]:
    """Run a daemon with its state and *socket* in *folder*."""
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
        raise CommandError(f"the daemon cannot be run: {error.strerror}") from error
    with started as daemon:
        log = _Log(daemon)
        reader = threading.Thread(target=log.read, daemon=True)
        try:
            reader.start()
            log.await_start()
            yield
        finally:
            daemon.terminate()
            try:
                daemon.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                daemon.kill()
            if reader.ident is not None:
                # Not if a signal came before the thread was started.
                reader.join()


def _end_with_parent() -> None:
    """Let the kernel send this process SIGTERM when its parent dies (prctl(2))."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


class _Log:
    """The log of *daemon*. It is read to its end, so that the daemon never blocks."""

    def __init__(self, daemon: subprocess.Popen[bytes]) -> None:
        self._lines: Iterable[bytes] = daemon.stderr or ()
        self._settled = threading.Event()
        self._started = False
        self._last = "it said nothing"

    def read(self) -> None:
        """Read all lines; once the daemon has started, show the warnings and errors."""
        for line in self._lines:
            self._last = line.decode(errors="replace").rstrip()
            if line.startswith(STARTED):
                self._started = True
                self._settled.set()
            elif self._started and not line.startswith(ROUTINE):
                print(self._last, file=sys.stderr)
        self._settled.set()

    def await_start(self) -> None:
        """Wait until the daemon has started. Raises CommandError with its last line if it ends."""
        if not self._settled.wait(START_SECONDS):
            raise CommandError(f"the daemon did not start within {START_SECONDS:g} s")
        if not self._started:
            raise CommandError(f"the daemon did not start: {self._last}")


def _run(command: list[str], environment: dict[str, str], signals: _Signals) -> int:
    """Run *command* and return its exit status: 128 plus the signal's number if one ended it."""
    # Blocked until the process is known that they are passed on to. The command gets them all.
    signal.pthread_sigmask(signal.SIG_BLOCK, PASSED_ON)
    try:
        process = signals.process = subprocess.Popen(  # noqa: S603  (the user's own)
            command,
            env=environment,
            preexec_fn=_unblock,
        )
    except OSError as error:
        raise CommandError(f"{command[0]} cannot be run: {error.strerror}") from error
    finally:
        _unblock()
    with process:
        status = process.wait()
    return status if status >= 0 else 128 - status


def _unblock() -> None:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, PASSED_ON)


class _Signals:
    """Signals end this process, or are passed on to *process* once there is one."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[bytes] | None = None

    def handle(self, number: int, _: object) -> None:
        """Handle a signal. SIGINT is not passed on: the terminal sends it to the command too."""
        if self.process is None:
            # An exception, so that the daemon is ended and its folder removed.
            raise SystemExit(128 + number)
        if number != signal.SIGINT:
            self.process.send_signal(number)


@contextlib.contextmanager
def _signals() -> Iterator[_Signals]:
    """Handle signals while the context lasts."""
    signals = _Signals()
    before = {number: signal.signal(number, signals.handle) for number in PASSED_ON}
    try:
        yield signals
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
