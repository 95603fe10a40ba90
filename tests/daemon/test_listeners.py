from __future__ import annotations

import contextlib
import errno
import fcntl
import logging
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from uuidd.refused import Refused
from uuidd.server import listeners
from uuidd.server.listeners import MAX_PATH, Listener, open_listener


@pytest.fixture
def folder(place: Path) -> Path:
    """An empty folder whose path is short, as sockets want it."""
    return place


@contextlib.contextmanager
def opened(path: Path) -> Iterator[Listener]:
    """An open listener, closed at the end."""
    listener = open_listener(path)
    try:
        yield listener
    finally:
        listener.close()


def leave_stale(path: Path) -> int:
    """Leave the socket of a daemon that died; return its inode."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        sock.bind(str(path))
        sock.listen()
    return path.stat().st_ino


def refusal(path: Path) -> str:
    """Return the line with which *path* is refused."""
    with pytest.raises(Refused) as caught:
        open_listener(path)
    line = str(caught.value)
    assert "\n" not in line
    return line


def connects(path: Path) -> bool:
    """Tell whether somebody listens at *path*."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as caller:
        return caller.connect_ex(str(path)) == 0


# --- opening


def test_a_listener_accepts_without_waiting(folder: Path) -> None:
    """A caller that connects is accepted; without one accept() does not block. No child has it."""
    with opened(folder / "s") as listener, socket.socket(socket.AF_UNIX) as caller:
        assert not listener.sock.get_inheritable()
        caller.connect(str(folder / "s"))
        listener.sock.accept()[0].close()
        with pytest.raises(BlockingIOError):
            listener.sock.accept()


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077, 0o777])
def test_a_listener_is_open_to_every_user(folder: Path, mask: int) -> None:
    old = os.umask(mask)
    try:
        with opened(folder / "s"):
            assert (folder / "s").stat().st_mode & 0o7777 == 0o666
    finally:
        assert os.umask(old) == mask


def test_a_stale_socket_is_replaced(folder: Path) -> None:
    leave_stale(folder / "s")
    with opened(folder / "s"):
        assert connects(folder / "s")


def test_a_path_of_107_bytes_is_used(folder: Path) -> None:
    path = folder / ("s" * (MAX_PATH - len(str(folder)) - 1))
    assert len(str(path)) == 107
    with opened(path):
        assert connects(path)


@pytest.mark.parametrize("letter", ["s", "\u00fc"])
def test_a_path_of_108_bytes_is_refused(folder: Path, letter: str) -> None:
    """A longer path is refused by its bytes, not letters, with both numbers and no file made."""
    room = 108 - len(str(folder)) - 1
    width = len(letter.encode())
    path = folder / (letter * (room // width) + "s" * (room % width))
    assert refusal(path) == (
        f"the socket path {path} has 108 bytes, and at most 107 are allowed;"
        " name a shorter one with --socket"
    )
    assert list(folder.iterdir()) == []


# --- what stands there already


def test_a_socket_that_is_too_busy_to_answer_is_refused(folder: Path) -> None:
    """A daemon whose queue is full is alive, and is not waited for."""
    path = folder / "s"
    with contextlib.ExitStack() as stack:
        busy = stack.enter_context(socket.socket(socket.AF_UNIX))
        busy.bind(str(path))
        busy.listen(0)
        full = False
        while not full:
            caller = stack.enter_context(socket.socket(socket.AF_UNIX))
            caller.setblocking(False)
            full = caller.connect_ex(str(path)) != 0
        assert refusal(path) == f"a daemon is listening at {path}; stop that one first"
        assert path.is_socket()


@pytest.mark.parametrize(
    "make",
    [
        lambda path: path.write_text("mine"),
        Path.mkdir,
        lambda path: path.symlink_to("missing"),
        lambda path: path.symlink_to("stale"),
    ],
    ids=["file", "folder", "dangling link", "link to a socket"],
)
def test_what_is_not_a_socket_is_refused(folder: Path, make: Callable[[Path], object]) -> None:
    """It is never removed, and a link is not followed."""
    path = folder / "s"
    leave_stale(folder / "stale")
    make(path)
    before = path.lstat()
    assert refusal(path) == f"{path} is not a socket; remove it, or name another with --socket"
    assert os.path.samestat(path.lstat(), before)
    assert (folder / "stale").is_socket()


def test_a_socket_of_another_type_is_refused(folder: Path) -> None:
    """A datagram socket belongs to another program, and stays."""
    path = folder / "s"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as other:
        other.bind(str(path))
        assert refusal(path) == (
            f"the socket {path} cannot be connected to: Protocol wrong type for socket; remove it,"
            " or name another with --socket"
        )
        assert path.is_socket()


# --- closing


@pytest.mark.parametrize("gone", [False, True])
def test_close_removes_the_file(folder: Path, gone: bool) -> None:
    with opened(folder / "s"):
        if gone:
            (folder / "s").unlink()
    assert list(folder.iterdir()) == []


def test_who_has_connected_can_be_accepted_after_nobody_else_connects(folder: Path) -> None:
    """Not even where the file could not be removed, for a moment or for good."""
    with opened(folder / "s") as listener, contextlib.ExitStack() as stack:
        one, other = (stack.enter_context(socket.socket(socket.AF_UNIX)) for _ in range(2))
        one.connect(str(folder / "s"))
        (folder / "kept").hardlink_to(folder / "s")
        listener.stop_listening()
        assert not (folder / "s").exists()
        with pytest.raises(ConnectionRefusedError):
            other.connect(str(folder / "kept"))
        stack.enter_context(listener.sock.accept()[0])
        with pytest.raises(BlockingIOError):
            listener.sock.accept()


def test_the_file_is_removed_only_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While this daemon ends, the next one's may get the inode number that is free again."""
    lstat = Path.lstat

    def same_inode(path: Path) -> os.stat_result:
        mode, _, *rest = lstat(path)
        return os.stat_result([mode, 1, *rest])

    monkeypatch.setattr(Path, "lstat", same_inode)
    with opened(folder / "s") as listener:
        listener.stop_listening()
        with opened(folder / "s"):
            listener.close()
            assert (folder / "s").exists()


def test_close_leaves_what_took_the_place_of_the_socket(folder: Path) -> None:
    """Another daemon's socket, which goes on to be served, or a file."""
    path = folder / "s"
    first = open_listener(path)
    path.unlink()
    with opened(path):
        first.close()
        assert connects(path)
        path.unlink()
        path.write_text("mine")
    assert path.read_text() == "mine"


def test_close_leaves_a_file_that_others_made(folder: Path) -> None:
    """The socket that systemd passed is closed, and its file is systemd's."""
    sock = socket.socket(socket.AF_UNIX)
    sock.bind(str(folder / "s"))
    sock.listen()
    listener = Listener(sock, None)
    listener.close()
    assert sock.fileno() == -1
    assert (folder / "s").is_socket()


# --- a socket that is no longer where programs look


@pytest.mark.parametrize("passed", [False, True])
def test_a_socket_whose_file_is_gone_is_told(
    folder: Path, caplog: pytest.LogCaptureFixture, passed: bool
) -> None:
    """Once in the log, with the way out for it; and that it is back."""
    caplog.set_level(logging.INFO)
    path = folder / "s"
    if passed:
        sock = socket.socket(socket.AF_UNIX)
        sock.bind(str(path))
        sock.listen()
        listener = Listener(sock, None)
    else:
        listener = open_listener(path)
    assert listener.unreachable() == ""
    path.rename(folder / "away")
    way = "systemctl restart uuidd.socket" if passed else "restart uuidd"
    line = f"no program can connect: the socket is no longer at {path}; {way}"
    assert listener.unreachable() == listener.unreachable() == line
    with opened(path):
        assert listener.unreachable() == line
    (folder / "away").rename(path)
    assert listener.unreachable() == listener.unreachable() == ""
    listener.close()
    assert listener.unreachable() == ""
    assert [(record.levelname, record.message) for record in caplog.records] == [
        ("ERROR", f"unreachable: {line}"),
        ("INFO", f"programs can connect again: the socket is at {path}"),
    ]


def test_a_socket_that_is_no_longer_served_is_not_missed(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A stop says nothing of it, not even that programs could connect again."""
    caplog.set_level(logging.INFO)
    path = folder / "s"
    with opened(path) as listener:
        path.unlink()
        listener.unreachable()
        caplog.clear()
        listener.stop_listening()
        assert listener.unreachable() == ""
    assert caplog.records == []


def test_a_socket_from_outside_a_container_is_not_missed(folder: Path) -> None:
    """Its path has no meaning here, so nothing is said of it."""
    (folder / "outside").mkdir()
    sock = socket.socket(socket.AF_UNIX)
    sock.bind(str(folder / "outside" / "s"))
    sock.listen()
    (folder / "outside").rename(folder / "elsewhere")
    listener = Listener(sock, None)
    assert listener.unreachable() == ""
    listener.close()


# --- two daemons at once


def test_the_folder_is_locked_from_the_look_to_the_listening(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody else may look between our removing the stale socket and our listening."""
    locked: list[bool] = []
    unlink, listen = Path.unlink, socket.socket.listen

    def look() -> None:
        fd = os.open(folder, os.O_RDONLY)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            locked.append(False)
        except BlockingIOError:
            locked.append(True)
        finally:
            os.close(fd)

    def looking_unlink(self: Path) -> None:
        look()
        unlink(self)

    def looking_listen(self: socket.socket, backlog: int) -> None:
        listen(self, backlog)
        look()

    leave_stale(folder / "s")
    with monkeypatch.context() as patched:
        patched.setattr(Path, "unlink", looking_unlink)
        patched.setattr(socket.socket, "listen", looking_listen)
        listener = open_listener(folder / "s")
    listener.close()
    assert locked == [True, True]


def test_an_open_listener_locks_no_folder(folder: Path) -> None:
    with opened(folder / "s"):
        refusal(folder / "s")
        with opened(folder / "other"):
            pass


RACER = """
import sys, time
from pathlib import Path
from uuidd.refused import Refused
from uuidd.server.listeners import open_listener
listeners = []
print("ready", flush=True)
for line in sys.stdin:
    path, start = line.split()
    while time.monotonic_ns() < int(start):
        pass
    try:
        listeners.append(open_listener(Path(path)))
        print("won", flush=True)
    except Refused as error:
        print("lost" if "is listening at" in str(error) else error, flush=True)
"""


def racer() -> subprocess.Popen[str]:
    """Start a process that opens each path it is told, at the time it is told."""
    return subprocess.Popen(
        [sys.executable, "-c", RACER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


@pytest.mark.process
def test_of_two_that_open_one_path_at_once_one_wins(folder: Path) -> None:
    """Two processes that find the same stale socket never both replace it: 20 races of 20."""
    with racer() as one, racer() as other:
        try:
            assert [said(one), said(other)] == ["ready", "ready"]
            for number in range(20):
                path = folder / f"s{number}"
                leave_stale(path)
                start = time.monotonic_ns() + 2_000_000
                for process in (one, other):
                    assert process.stdin
                    process.stdin.write(f"{path} {start}\n")
                    process.stdin.flush()
                assert sorted([said(one), said(other)]) == ["lost", "won"]
                assert connects(path)
        finally:
            one.kill()
            other.kill()


def said(process: subprocess.Popen[str]) -> str:
    """Return the next line that *process* prints."""
    assert process.stdout
    return process.stdout.readline().strip()


def test_a_folder_that_somebody_keeps_locked_stops_no_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Any user may lock a folder that it can read; the log has a line on it."""
    monkeypatch.setattr(listeners, "LOCK_SECONDS", 0.05)
    fd = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(fd, fcntl.LOCK_EX)
    listener = open_listener(tmp_path / "s")
    listener.close()
    os.close(fd)
    assert caplog.messages == [
        "the socket's folder is locked by another process; starting without a lock:"
        f" folder={tmp_path}"
    ]


def test_a_socket_that_cannot_listen_is_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Deaf(socket.socket):
        def listen(self, backlog: int = 0, /) -> None:
            raise OSError(errno.ENOBUFS, os.strerror(errno.ENOBUFS))

    monkeypatch.setattr(socket, "socket", Deaf)
    with pytest.raises(Refused, match="No buffer space available"):
        open_listener(tmp_path / "s")
    assert not (tmp_path / "s").exists()
