"""The two daemons that are compared: ours, and util-linux's."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.benchmarks.place import Missing, Place, private
from uuidd.core.wire import libuuid
from uuidd.core.wire.libuuid import Op

UTIL_LINUX = Path("/usr/sbin/uuidd")
LIBUUID_SOCKET = Path("/run/uuidd/request")
LIBUUID_STATE = Path("/var/lib/libuuid")
"""Both paths are compiled into libuuid."""

START_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Running:
    """A daemon that answers at *socket*."""

    pid: int
    socket: Path

    def cpu_seconds(self) -> float:
        """Give for how long its main thread, which does the serving, has used a core."""
        return int(Path(f"/proc/{self.pid}/schedstat").read_text().split()[0]) / 1e9


@contextlib.contextmanager
def ours(place: Place, *arguments: str, at: Path | None = None) -> Iterator[Running]:
    """Run our daemon on a socket and a state of its own, where $UUIDD_SOCKET points meanwhile."""
    with tempfile.TemporaryDirectory(dir=place.folder) as folder:
        # The same path each time: the client's module-level functions keep to one.
        path = at or place.folder / "request"
        command = [sys.executable, "-m", "uuidd", "-F", "-P", "-q", *arguments]
        os.environ.update(UUIDD_SOCKET=str(path), UUIDD_FALLBACK="0", UUIDD_TIMEOUT="20")
        with _running(
            [*command, f"--socket={path}", f"--state={folder}"], path, place.environment
        ) as running:
            yield running


@contextlib.contextmanager
def util_linux(place: Place, *, at: Path = LIBUUID_SOCKET) -> Iterator[Running]:
    """Run util-linux's daemon where libuuid looks for it, or beside, unseen by all others.

    Raises Missing without it, or without root.
    """
    if not UTIL_LINUX.exists():
        raise Missing(f"it needs util-linux's {UTIL_LINUX} (Debian: uuid-runtime)")
    with no_daemon():
        command = [str(UTIL_LINUX), "-F", "-P", "-q", "-s", str(at)]
        with _running(command, at, place.environment) as running:
            _leave_only_the_daemon(at)
            yield running


@contextlib.contextmanager
def side_by_side(place: Place) -> Iterator[tuple[Running, Running]]:
    """Run both daemons, ours first, where ``let_answer`` can turn libuuid to either."""
    folder = LIBUUID_SOCKET.parent
    with (
        util_linux(place, at=folder / "util-linux") as other,
        ours(place, at=folder / "ours") as mine,
    ):
        yield mine, other


def let_answer(daemon: Running) -> None:
    """Have libuuid find *daemon*, in programs started from now on: it keeps what it has got."""
    with contextlib.suppress(FileNotFoundError):
        LIBUUID_SOCKET.unlink()
    LIBUUID_SOCKET.symlink_to(daemon.socket)


@contextlib.contextmanager
def no_daemon() -> Iterator[None]:
    """Let libuuid find no daemon, and a state of its own. Raises Missing without root."""
    with private(LIBUUID_SOCKET.parent, LIBUUID_STATE):
        yield


@contextlib.contextmanager
def _running(command: list[str], path: Path, environment: dict[str, str]) -> Iterator[Running]:
    with subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL) as process:
        try:
            _await_answer(process, path)
            yield Running(process.pid, path)
        finally:
            process.terminate()
            try:
                process.wait(START_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()


def _leave_only_the_daemon(path: Path) -> None:
    """Let libuuid make nothing that is safe without a daemon.

    Alone it does so under a lock on a file of state. The daemon has that open since its first id,
    and goes on with it.
    """
    _asked(path, Op.TIME_UUID)
    state = LIBUUID_STATE / "clock.txt"
    state.unlink()
    state.mkdir()


def _await_answer(process: subprocess.Popen[bytes], path: Path) -> None:
    end = time.monotonic() + START_SECONDS
    while process.poll() is None and time.monotonic() < end:
        with contextlib.suppress(OSError):
            if _asked(path, Op.GETPID):
                return
        time.sleep(0.01)
    raise RuntimeError(f"{process.args!r} does not answer at {path}")


def _asked(path: Path, op: Op) -> bytes:
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(START_SECONDS)
        sock.connect(str(path))
        sock.sendall(libuuid.request(op))
        return sock.recv(64)
