"""Real daemons for tests: in a temporary folder, started ready, ended by their pid."""

from __future__ import annotations

import contextlib
import os
import random
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgpack

from tests import forks
from tests.forks import PATIENCE as PATIENCE

SOON = 5.0
"""Seconds within which happens what waits for nothing, also on a busy machine (load 8).

How fast it is on a quiet one, the benchmarks tell.
"""

LOOK = 0.01
"""Seconds between two looks at whether something has happened in another process."""

WATCHED = 2.0
"""Seconds for which an idle process is watched: one that has just started would save many times."""

SEED = os.environ.setdefault("TEST_SEED", str(random.SystemRandom().getrandbits(32)))
"""By what tests choose random moments: another one in each run, unless the environment has it."""

T = TypeVar("T")


def dice() -> random.Random:
    """Return what chooses the random moments of a test."""
    return random.Random(SEED)


def until(
    look: Callable[[], T | None], seconds: float = PATIENCE, *, instead: Callable[[], object] = str
) -> T:
    """Return the first result of *look* that is not empty; it has to come within *seconds*.

    A failure tells of the result of *instead*.
    """
    pause = threading.Event()
    deadline = time.monotonic() + seconds
    while not (found := look()):
        assert time.monotonic() < deadline, f"not seen in {seconds:g} s: {instead()}"
        pause.wait(LOOK)
    return found


def of_threads(pid: int, name: str) -> list[int]:
    """Return a number in the status of each thread of a process (proc(5))."""
    found = []
    for path in Path(f"/proc/{pid}/task").glob("*/status"):
        # A thread may end before its status is read.
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            found.append(int(path.read_text().split(f"\n{name}:")[1].split()[0]))
    return found


def sleeps(pid: int) -> int:
    """Return how often the threads of a process have begun to sleep."""
    return sum(of_threads(pid, "voluntary_ctxt_switches"))


def resident_kib(pid: int) -> int:
    """Return the resident memory of a process."""
    return int(Path(f"/proc/{pid}/status").read_text().split("VmRSS:")[1].split()[0])


def stays(look: Callable[[], object]) -> bool:
    """Return whether *look* finds the same before and after a while.

    It is watched up to three times. What happens once, such as the end of a save on a busy machine
    or of a thread, is over then. What wakes a process again and again does so each time. A while in
    which the kernel says something does not count: each record of its log wakes a daemon that may
    read it (uuidd/clones.py), and other tests mount file systems.
    """
    with contextlib.ExitStack() as stack:
        log = None
        # Otherwise the daemon may not read it either.
        with contextlib.suppress(OSError):
            log = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
            stack.callback(os.close, log)
        silent = 0
        for _ in range(30):
            if log is not None:
                os.lseek(log, 0, os.SEEK_END)
            before = look()
            threading.Event().wait(WATCHED)
            if look() == before:
                return True
            silent += log is None or not select.select([log], [], [], 0)[0]
            if silent == 3:
                break
        return False


def ended(*words: str) -> tuple[int, str, str]:
    """Run ``uuidd`` with these words; return its exit status, standard output and error."""
    with (
        open(os.devnull, "rb") as null,
        tempfile.TemporaryFile() as out,
        tempfile.TemporaryFile() as error,
    ):
        (process,) = forks.start("uuidd.cli", words, streams=(null, out, error))
        try:
            status = process.wait(PATIENCE)
        finally:
            process.kill()
        for file in (out, error):
            file.seek(0)
        return status, out.read().decode(), error.read().decode()


class Daemon:
    """A daemon in a temporary folder of its own, which lasts as long as the context.

    *arguments* come after those that name its socket and its state; *environment* is added to that
    of the test. *module* is whose ``main`` is the daemon. Inside the context, the daemon may be
    killed and started again.

    It is forked (see ``tests.forks``), unless *wrap* gives a command that runs the daemon's command
    as the same process, or the daemon is to be *fresh*: a Python that was started for it.
    """

    def __init__(
        self,
        *arguments: str,
        environment: Mapping[str, str] | None = None,
        socket: Path | None = None,
        module: str = "uuidd.cli",
        wrap: Callable[..., list[str]] | None = None,
        fresh: bool = False,
    ) -> None:
        # A short path, for a socket's has 107 bytes at most; in memory where that can be, for it is
        # the daemon that is tested, and not how long a busy disk takes to sync.
        shm = Path("/dev/shm")
        self.folder = Path(tempfile.mkdtemp(prefix="uuidd-", dir=shm if shm.is_dir() else "/tmp"))
        # Also when a test fails before the context begins.
        self._remove = weakref.finalize(self, shutil.rmtree, self.folder)
        self.socket = socket or self.folder / "s"
        self.state = self.folder / "state"
        self.state.mkdir()
        self.lines: list[str] = []
        self._pid_file = ["--no-pid"]
        self.arguments: Sequence[str] = arguments
        self._module = module
        self._wrap = (lambda *command: list(command)) if fresh and wrap is None else wrap
        self._environment = environment or {}
        self._process: forks.Process | subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Daemon:
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self.kill()
        self._remove()

    @property
    def pid(self) -> int:
        """The process id of the daemon that runs."""
        return self.process.pid

    @property
    def process(self) -> forks.Process | subprocess.Popen[bytes]:
        """The daemon that runs."""
        assert self._process is not None
        return self._process

    def rests(self) -> bool:
        """Return whether the daemon neither wakes up nor saves while it is watched."""
        return stays(lambda: (sleeps(self.pid), (self.state / "state").stat().st_mtime_ns))

    def start(self) -> None:
        """Start the daemon, and wait until it has logged that it can be asked."""
        words = ["-F", *self._pid_file, f"--socket={self.socket}", f"--state={self.state}"]
        words += self.arguments
        read_log, log = os.pipe()
        try:
            self._process = self._started_with(words, log)
        except BaseException:
            os.close(read_log)
            raise
        finally:
            os.close(log)
        settled = threading.Event()
        self._started = False
        self._reader = threading.Thread(target=self._read, args=[read_log, settled])
        self._reader.start()
        assert settled.wait(PATIENCE), f"the daemon did not start: {self.lines}"
        assert self._started, f"the daemon did not start: {self.lines}"

    def _started_with(self, words: list[str], log: int) -> forks.Process | subprocess.Popen[bytes]:
        if self._wrap is None:
            with open(os.devnull, "r+b") as null:
                streams = (null, null, log)
                (process,) = forks.start(
                    self._module, words, streams=streams, environment=self._environment
                )
            return process
        return subprocess.Popen(
            self._wrap(sys.executable, "-m", "uuidd", *words),
            stdin=subprocess.DEVNULL,
            stderr=log,
            env={**os.environ, **self._environment},
        )

    def start_with_pid_file(self, path: Path) -> None:
        """Start the daemon with a pid file at *path*."""
        self._pid_file = [f"--pid={path}"]
        self.start()

    def _read(self, descriptor: int, settled: threading.Event) -> None:
        """Read the daemon's log to its end, so that the daemon never has to wait."""
        with open(descriptor, "rb") as log:
            for line in log:
                self.lines.append(line.decode().rstrip())
                if b"INFO: started:" in line:
                    self._started = True
                    settled.set()
        settled.set()

    def kill(self) -> None:
        """End the daemon by SIGKILL, if it still runs."""
        self.process.kill()
        self._ended()

    def stop(self) -> int:
        """End the daemon by SIGTERM; return its exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self._ended()

    def _ended(self) -> int:
        status = self.process.wait(PATIENCE)
        self._reader.join(PATIENCE)
        # What libfaketime leaves of a process that was started with it, and killed.
        for name in (f"faketime_shm_{self.pid}", f"sem.faketime_sem_{self.pid}"):
            Path("/dev/shm", name).unlink(missing_ok=True)
        return status

    def connect(self) -> Connection:
        """Return a new connection to the daemon."""
        return Connection(self.socket)

    def call(self, method: str, *params: Any) -> Any:
        """Return the result of a request that has to succeed, over a connection of its own."""
        with self.connect() as connection:
            return connection.call(method, *params)


def connected(path: Path) -> socket.socket:
    """Return a socket that is connected."""
    sock = socket.socket(socket.AF_UNIX)
    try:
        # First, as libuuid's callers do: with a time-out it would not wait for a full backlog.
        sock.connect(str(path))
    except BaseException:
        sock.close()
        raise
    sock.settimeout(PATIENCE)
    return sock


class Connection:
    """A MessagePack-RPC connection that uses no code of our client or wire."""

    def __init__(self, path: Path) -> None:
        self.sock = connected(path)
        # Otherwise it allocates a megabyte, and some tests have thousands of connections.
        self._unpacker = msgpack.Unpacker(read_size=16384)
        self._msgid = 0

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self.sock.close()

    def ask(self, method: str, *params: Any) -> list[Any]:
        """Return the whole response to a request."""
        self._msgid += 1
        self.sock.sendall(msgpack.packb([0, self._msgid, method, list(params)]))
        return self.read()

    def read(self) -> list[Any]:
        """Return the next response."""
        while True:
            for response in self._unpacker:
                found: list[Any] = response
                return found
            more = self.sock.recv(65536)
            if not more:
                raise EOFError("the daemon closed the connection")
            self._unpacker.feed(more)

    def call(self, method: str, *params: Any) -> Any:
        """Return the result of a request that has to succeed."""
        _, msgid, error, result = self.ask(method, *params)
        assert (msgid, error) == (self._msgid, None)
        return result
