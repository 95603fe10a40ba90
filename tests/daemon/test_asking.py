"""``uuidd -t -r -k`` against a server that is none: a line, and no signal to a wrong process."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from struct import pack

import pytest

from tests.client.fakes import Server, full_backlog
from tests.client.raw import of_child
from tests.daemon.test_listeners import connects
from tests.rig import PATIENCE, until
from tests.tools import failing, need, need_root, need_their_uuidd, refusal
from uuidd.cli import asking
from uuidd.refused import Refused

NOBODY = 65534


@pytest.fixture
def path() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="uuidd-") as folder:
        yield Path(folder) / "s"


@contextlib.contextmanager
def answering(path: Path, reply: bytes, *, uid: int | None = None) -> Iterator[None]:
    """Answer whatever is asked at *path* with *reply*, on a socket that *uid* made."""
    before = os.geteuid()
    with contextlib.ExitStack() as stack:
        os.seteuid(before if uid is None else uid)
        try:
            stack.enter_context(Server(path, lambda _: reply))
        finally:
            os.seteuid(before)
        yield


@pytest.mark.parametrize("told", ["0", "-1", "1", "", "abc", "99999999999", "\u0663"])
def test_kill_signals_nobody_unless_it_was_told_a_daemons_pid(
    path: Path, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """0 and -1 would be groups of processes, 1 is init, and the rest is no pid."""
    for way in ("kill", "pidfd_open"):
        monkeypatch.setattr(os, way, lambda *_: pytest.fail("a process was to be signalled"))
    with (
        telling(path, told),
        pytest.raises(Refused, match="which is not the pid of a daemon"),
    ):
        asking.kill(path)


def test_kill_refuses_a_path_that_it_may_not_reach(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket.socket, "connect", failing(errno.EACCES))
    line = "error calling uuidd daemon at /root/s: Permission denied"
    assert refusal(asking.kill, Path("/root/s")) == line


def test_a_socket_that_a_crash_left_behind_has_no_daemon_to_kill(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(os.fspath(path))
    assert asking.kill(path) is None


def test_below_a_file_is_no_daemon_to_kill(path: Path) -> None:
    path.touch()
    assert asking.kill(path / "s") is None


@contextlib.contextmanager
def silent(path: Path) -> Iterator[None]:
    """Listen, and take no connection."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.fspath(path))
        listener.listen()
        yield


@pytest.mark.parametrize("full", [False, True])
def test_a_daemon_that_hangs_is_refused_with_a_way_out(
    path: Path, monkeypatch: pytest.MonkeyPatch, full: bool
) -> None:
    """Also once the connections that it does not take have filled the kernel's queue."""
    monkeypatch.setattr(asking, "PATIENCE", 0.01)
    with full_backlog(path) if full else silent(path):
        assert refusal(asking.kill, path) == (
            f"error calling uuidd daemon at {path}: timed out;"
            " if it hangs, restart its service, or end the process of its pid file"
        )


def test_a_path_that_is_too_long_is_refused_with_its_limit() -> None:
    path = Path("/", "x" * 107)
    assert refusal(asking.time_uuids, path, None) == (
        f"error calling uuidd daemon at {path}: the path has 108 bytes, and a socket's at most 107"
    )


def telling(path: Path, pid: int | str, *, uid: int | None = None) -> AbstractContextManager[None]:
    """Answer with *pid*, on a socket that *uid* made."""
    body = str(pid).encode() + b"\0"
    return answering(path, len(body).to_bytes(4, "little") + body, uid=uid)


@contextlib.contextmanager
def process(name: str, uid: int) -> Iterator[subprocess.Popen[bytes]]:
    """A process of a user's that has a name, and ends with the context at the latest."""
    running = subprocess.Popen([name, "60"], executable=need("sleep"), user=uid)
    cmdline = Path("/proc", str(running.pid), "cmdline")
    try:
        # execve(2) closes the pipe that Popen waits for before it sets the new command line.
        until(lambda: cmdline.read_bytes() == f"{name}\0".encode() + b"60\0")
        yield running
    finally:
        running.kill()
        running.wait()


@pytest.mark.process
@pytest.mark.usefixtures("as_root")
@pytest.mark.parametrize("pidfds", [True, False])
@pytest.mark.parametrize(
    ("maker", "name", "owner", "ends"),
    [
        (NOBODY, "uuidd", 0, False),
        (NOBODY, "uuidd", 1234, False),
        (NOBODY, "sleep", NOBODY, False),
        (0, "sleep", 0, False),
        (0, "/usr/sbin/uuidd", 0, True),
        # Root may have made the socket for another user, as systemd and --user do.
        (0, "uuidd", NOBODY, True),
        (NOBODY, "uuidd", NOBODY, True),
    ],
)
def test_kill_ends_a_uuidd_of_the_sockets_maker_and_no_other_process(
    path: Path,
    monkeypatch: pytest.MonkeyPatch,
    maker: int,
    name: str,
    owner: int,
    ends: bool,
    pidfds: bool,
) -> None:
    """A false socket must not have a bystander ended. A kernel before 5.3 has no pidfds."""
    if not pidfds:
        monkeypatch.setattr(os, "pidfd_open", failing(errno.ENOSYS))
    path.parent.chmod(0o777)
    with process(name, owner) as running, telling(path, running.pid, uid=maker):
        if ends:
            assert asking.kill(path) == running.pid
            assert running.wait(PATIENCE) == -signal.SIGTERM
        else:
            with pytest.raises(Refused) as refused:
                asking.kill(path)
            whose = f" of uid {maker}, who made the socket" if maker else ""
            assert str(refused.value) == (
                f"what answers at {path} sent the pid {running.pid}, which is not a uuidd{whose};"
                " nothing was ended"
            )
            assert running.poll() is None


def test_kill_names_a_process_that_is_gone(path: Path) -> None:
    # No process gets this pid, unlike one that was another's.
    gone = int(Path("/proc/sys/kernel/pid_max").read_text())
    with telling(path, gone):
        line = f"couldn't kill uuidd running at pid {gone}: No such process"
        assert refusal(asking.kill, path) == line


@pytest.mark.process
@pytest.mark.usefixtures("as_root")
def test_kill_by_a_user_without_the_right_ends_nothing(path: Path) -> None:
    path.parent.chmod(0o755)

    def kill_as_nobody() -> bytes:
        os.setresuid(NOBODY, NOBODY, NOBODY)
        return refusal(asking.kill, path).encode()

    with process("uuidd", 0) as running, telling(path, running.pid, uid=0):
        path.chmod(0o666)
        line = f"couldn't kill uuidd running at pid {running.pid}: Operation not permitted"
        assert of_child(kill_as_nobody).decode() == line
        assert running.poll() is None


@pytest.mark.process
def test_kill_ends_nothing_across_pid_namespaces(path: Path) -> None:
    """The pid that a daemon of a container tells is another process's here, and the other way."""
    need_root()
    with process("uuidd", 0) as bystander, telling(path, bystander.pid, uid=0):
        command = [need("unshare"), "--pid", "--fork", sys.executable, "-m", "uuidd", "-k"]
        done = subprocess.run(
            [*command, f"--socket={path}"], capture_output=True, text=True, check=False
        )
        assert done.returncode == 1
        assert f"so here its pid {bystander.pid} is that of another process" in done.stderr
        assert bystander.poll() is None


@pytest.mark.process
def test_kill_ends_util_linuxs_own_daemon(path: Path) -> None:
    need_root()
    with subprocess.Popen([need_their_uuidd(), "-F", "-P", "-s", str(path)]) as daemon:
        try:
            until(lambda: connects(path))
            assert asking.kill(path) == daemon.pid
            daemon.wait(PATIENCE)
        finally:
            daemon.kill()


@pytest.mark.parametrize(
    ("reply", "ask", "why"),
    [
        (bytes(4), asking.time_uuids, "0 bytes, and a UUID has 16"),
        (b"\xff\xff\xff\x7f", asking.time_uuids, "is not a uuidd"),
        (
            pack("=ii", 4, 0),
            lambda path, _: list(asking.random_uuids(path, 5)),
            "answered without UUIDs",
        ),
    ],
    ids=["empty", "of absurd length", "none of a list"],
)
def test_a_reply_that_is_of_no_use_ends_in_a_line(
    path: Path, reply: bytes, ask: Callable[[Path, None], object], why: str
) -> None:
    with answering(path, reply), pytest.raises(Refused, match=why):
        ask(path, None)


def test_more_than_a_daemon_reserves_is_not_asked_for(path: Path) -> None:
    with pytest.raises(Refused, match="-n is 1000001, and a daemon reserves at most 1000000 UUIDs"):
        asking.time_uuids(path, 1_000_001)
