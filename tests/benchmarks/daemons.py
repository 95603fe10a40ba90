"""The daemons that are compared: ours, another checkout's, and util-linux's."""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.benchmarks.rows import OTHER_CHECKOUT, Missing
from tests.benchmarks.workspace import (
    LIBUUID_SOCKET,
    LIBUUID_STATE,
    THIS,
    Checkout,
    Workspace,
)
from tests.rig import connected
from uuidd.core.wire import libuuid
from uuidd.core.wire.libuuid import Op

UTIL_LINUX = Path("/usr/sbin/uuidd")
START_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Running:
    """A daemon that answers at *socket*, and the *environment* in which our client finds it."""

    name: str
    pid: int
    socket: Path
    environment: dict[str, str]

    @property
    def cpu_clock(self) -> int:
        """The clock that shows for how long it has used a core, for ``time.clock_gettime``."""
        # As clock_getcpuclockid(3) makes it.
        return ~self.pid << 3 | 2


@contextlib.contextmanager
def ours(space: Workspace, *arguments: str, checkout: Checkout = THIS) -> Iterator[Running]:
    """Run a checkout's daemon, with a socket and a state of its own."""
    with tempfile.TemporaryDirectory(dir=space.folder) as folder:
        # A benchmark with two users needs a way to the socket for both.
        Path(folder).chmod(0o711)
        path, state = Path(folder, "request"), Path(folder, "state")
        state.mkdir()
        paths = f"--socket={path}", f"--state={state}"
        command = checkout.command("-m", "uuidd", "-F", "-P", "-q", *paths, *arguments)
        environment = {
            **space.environment,
            "UUIDD_SOCKET": str(path),
            "UUIDD_FALLBACK": "0",
            "UUIDD_TIMEOUT": "20",
        }
        name = "our daemon" if checkout is THIS else OTHER_CHECKOUT
        with _running(name, command, path, environment) as running:
            yield running


@contextlib.contextmanager
def util_linux(space: Workspace, *, at: Path = LIBUUID_SOCKET) -> Iterator[Running]:
    """Run util-linux's daemon where libuuid looks for it, or at another path; nobody else sees it.

    Raises Missing without it, or without root.
    """
    if not UTIL_LINUX.exists():
        raise Missing(f"it needs util-linux's {UTIL_LINUX} (Debian: uuid-runtime)")
    with no_daemon():
        command = [str(UTIL_LINUX), "-F", "-P", "-q", "-s", str(at)]
        with _running("C uuidd", command, at, space.environment) as running:
            _leave_only_the_daemon(at)
            yield running


def rival(space: Workspace) -> contextlib.AbstractContextManager[Running]:
    """Run the daemon that ours is compared with: another checkout's, or else util-linux's."""
    return ours(space, checkout=space.other) if space.other else util_linux(space)


@contextlib.contextmanager
def no_daemon() -> Iterator[None]:
    """Let libuuid find no daemon, and an empty state. Raises Missing without root."""
    if not os.path.ismount(LIBUUID_STATE):
        raise Missing("it needs root, for a mount namespace of its own")
    try:
        yield
    finally:
        for path in (*LIBUUID_STATE.iterdir(), *LIBUUID_SOCKET.parent.iterdir()):
            path.rmdir() if path.is_dir() else path.unlink()


@contextlib.contextmanager
def _running(
    name: str, command: list[str], path: Path, environment: dict[str, str]
) -> Iterator[Running]:
    with subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL) as process:
        try:
            _await_answer(process, path)
            yield Running(name, process.pid, path, environment)
        finally:
            process.terminate()
            try:
                process.wait(START_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()


def _leave_only_the_daemon(path: Path) -> None:
    """Let libuuid make no id that is safe without a daemon.

    Without one it makes such ids under a lock on a file of state. The daemon has opened that file
    with its first id, and keeps it.
    """
    _answer(path, Op.TIME_UUID)
    state = LIBUUID_STATE / "clock.txt"
    state.unlink()
    state.mkdir()


def _await_answer(process: subprocess.Popen[bytes], path: Path) -> None:
    end = time.monotonic() + START_SECONDS
    while process.poll() is None and time.monotonic() < end:
        with contextlib.suppress(OSError):
            if _answer(path, Op.GETPID):
                return
        time.sleep(0.01)
    raise RuntimeError(f"{process.args!r} does not answer at {path}")


def _answer(path: Path, op: int) -> bytes:
    with connected(path) as sock:
        sock.sendall(libuuid.pack_request(op))
        # In pieces: util-linux's daemon writes the length and the rest apart, and then closes.
        return b"".join(iter(lambda: sock.recv(64), b""))
