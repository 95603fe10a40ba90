"""The daemons that are compared: ours, another checkout's, and util-linux's."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.benchmarks.rows import OTHER_CHECKOUT, Missing
from tests.benchmarks.workspace import THIS, Checkout, Workspace, private
from uuidd.core.wire import libuuid
from uuidd.core.wire.libuuid import Op

UTIL_LINUX = Path("/usr/sbin/uuidd")
LIBUUID_SOCKET = Path("/run/uuidd/request")
LIBUUID_STATE = Path("/var/lib/libuuid")
"""Both paths are compiled into libuuid."""

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

    def node(self) -> int:
        """Return the node of the ids that it makes for callers of libuuid."""
        return int.from_bytes(_answer(self.socket, Op.TIME_UUID)[-6:], "big")


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


@contextlib.contextmanager
def side_by_side(space: Workspace) -> Iterator[tuple[Running, Running]]:
    """Run our daemon and what it is compared with; ``let_answer`` turns libuuid to either."""
    with contextlib.ExitStack() as stack:
        if space.other:
            stack.enter_context(no_daemon())
            rival = stack.enter_context(ours(space, checkout=space.other))
        else:
            # libuuid's own path is for the link that let_answer makes.
            at = LIBUUID_SOCKET.with_name("util-linux")
            rival = stack.enter_context(util_linux(space, at=at))
        yield stack.enter_context(ours(space)), rival


def let_answer(daemon: Running) -> None:
    """Let libuuid find *daemon*, in programs that are started from now on."""
    with contextlib.suppress(FileNotFoundError):
        LIBUUID_SOCKET.unlink()
    LIBUUID_SOCKET.symlink_to(daemon.socket)


@contextlib.contextmanager
def no_daemon() -> Iterator[None]:
    """Let libuuid find no daemon, and a state of its own. Raises Missing without root."""
    with private(LIBUUID_SOCKET.parent, LIBUUID_STATE):
        yield


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


def _answer(path: Path, op: Op) -> bytes:
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(START_SECONDS)
        sock.connect(str(path))
        sock.sendall(libuuid.pack_request(op))
        # In pieces: util-linux's daemon writes the length and the rest apart, and then closes.
        return b"".join(iter(lambda: sock.recv(64), b""))
