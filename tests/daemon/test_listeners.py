from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.tools import failing, refusal
from uuidd.server import listeners
from uuidd.server.listeners import Listener, open_listener


@contextlib.contextmanager
def opened(path: Path) -> Iterator[Listener]:
    with contextlib.closing(open_listener(path)) as listener:
        yield listener


def passed(path: Path) -> Listener:
    """Return a listener with a socket that systemd made at *path*."""
    sock = socket.socket(socket.AF_UNIX)
    sock.bind(str(path))
    sock.listen()
    return Listener(sock, None)


def leave_stale(path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        sock.bind(str(path))
        sock.listen()


def connects(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as caller:
        return caller.connect_ex(str(path)) == 0


def test_a_listener_accepts_without_waiting(place: Path) -> None:
    with opened(place / "s") as listener, socket.socket(socket.AF_UNIX) as caller:
        assert not listener.sock.get_inheritable()
        caller.connect(str(place / "s"))
        listener.sock.accept()[0].close()
        with pytest.raises(BlockingIOError):
            listener.sock.accept()


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077, 0o777])
def test_a_listener_is_open_to_every_user(place: Path, mask: int) -> None:
    old = os.umask(mask)
    try:
        with opened(place / "s"):
            assert (place / "s").stat().st_mode & 0o7777 == 0o666
    finally:
        assert os.umask(old) == mask


def test_a_path_of_107_bytes_is_used(place: Path) -> None:
    path = place / ("s" * (107 - len(str(place)) - 1))
    assert len(str(path)) == 107
    with opened(path):
        assert connects(path)


@pytest.mark.parametrize("letter", ["s", "\u00fc"])
def test_a_path_of_108_bytes_is_refused(place: Path, letter: str) -> None:
    room = 108 - len(str(place)) - 1
    width = len(letter.encode())
    path = place / (letter * (room // width) + "s" * (room % width))
    assert refusal(open_listener, path) == (
        f"the socket path {path} has 108 bytes, and at most 107 are allowed;"
        " name a shorter one with --socket"
    )
    assert list(place.iterdir()) == []


def test_a_socket_that_is_too_busy_to_answer_is_refused(place: Path) -> None:
    """A daemon whose queue is full is alive, and is not waited for."""
    path = place / "s"
    with contextlib.ExitStack() as stack:
        busy = stack.enter_context(socket.socket(socket.AF_UNIX))
        busy.bind(str(path))
        busy.listen(0)
        full = False
        while not full:
            caller = stack.enter_context(socket.socket(socket.AF_UNIX))
            caller.setblocking(False)
            full = caller.connect_ex(str(path)) != 0
        line = (
            f"a daemon is listening at {path}; stop that one, or name another socket with --socket"
        )
        assert refusal(open_listener, path) == line
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
def test_what_is_not_a_socket_is_refused(place: Path, make: Callable[[Path], object]) -> None:
    path = place / "s"
    leave_stale(place / "stale")
    make(path)
    before = path.lstat()
    line = f"{path} is not a socket; remove it, or name another with --socket"
    assert refusal(open_listener, path) == line
    assert os.path.samestat(path.lstat(), before)
    assert (place / "stale").is_socket()


def test_a_socket_of_another_type_is_refused(place: Path) -> None:
    path = place / "s"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as other:
        other.bind(str(path))
        assert refusal(open_listener, path) == (
            f"the socket {path} cannot be connected to: Protocol wrong type for socket; remove it,"
            " or name another with --socket"
        )
        assert path.is_socket()


@pytest.mark.parametrize("gone", [False, True])
def test_close_removes_the_file(place: Path, gone: bool) -> None:
    with opened(place / "s"):
        if gone:
            (place / "s").unlink()
    assert list(place.iterdir()) == []


@pytest.mark.parametrize("make", [open_listener, passed])
def test_each_listener_bars_descriptors(
    place: Path, monkeypatch: pytest.MonkeyPatch, make: Callable[[Path], Listener]
) -> None:
    """Also systemd's, which listened before; and ours before it listens, on a kernel that can."""
    bars: list[tuple[socket.socket, bool]] = []

    def bar(sock: socket.socket) -> None:
        bars.append((sock, bool(sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))))

    monkeypatch.setattr(listeners, "bar_descriptors", bar)
    with contextlib.closing(make(place / "s")) as listener:
        assert bars[0] == (listener.sock, make is passed)


def test_who_has_connected_can_be_accepted_after_nobody_else_connects(place: Path) -> None:
    """Not even where the file could not be removed, for a moment or for good."""
    with opened(place / "s") as listener, contextlib.ExitStack() as stack:
        one, other = (stack.enter_context(socket.socket(socket.AF_UNIX)) for _ in range(2))
        one.connect(str(place / "s"))
        (place / "kept").hardlink_to(place / "s")
        listener.stop_listening()
        assert not (place / "s").exists()
        with pytest.raises(ConnectionRefusedError):
            other.connect(str(place / "kept"))
        stack.enter_context(listener.sock.accept()[0])
        with pytest.raises(BlockingIOError):
            listener.sock.accept()


def test_the_file_is_removed_only_once(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While this daemon ends, the next one's may get the inode number that is free again."""
    lstat = Path.lstat

    def same_inode(path: Path) -> os.stat_result:
        mode, _, *rest = lstat(path)
        return os.stat_result([mode, 1, *rest])

    monkeypatch.setattr(Path, "lstat", same_inode)
    with opened(place / "s") as listener:
        listener.stop_listening()
        with opened(place / "s"):
            listener.close()
            assert (place / "s").exists()


def test_close_leaves_what_took_the_place_of_the_socket(place: Path) -> None:
    """Another daemon's socket, which goes on to be served, or a file."""
    path = place / "s"
    first = open_listener(path)
    path.unlink()
    with opened(path):
        first.close()
        assert connects(path)
        path.unlink()
        path.write_text("mine")
    assert path.read_text() == "mine"


def test_close_leaves_a_file_that_systemd_made(place: Path) -> None:
    listener = passed(place / "s")
    listener.close()
    assert listener.sock.fileno() == -1
    assert (place / "s").is_socket()


@pytest.mark.parametrize(
    ("make", "way"),
    [(open_listener, "restart uuidd"), (passed, "systemctl restart uuidd.socket")],
)
def test_a_socket_whose_file_is_gone_is_told(
    place: Path, log: pytest.LogCaptureFixture, make: Callable[[Path], Listener], way: str
) -> None:
    """Once in the log, with the way out for it; and that it is back."""
    path = place / "s"
    with contextlib.closing(make(path)) as listener:
        assert listener.unreachable() == ""
        path.rename(place / "away")
        line = f"no program can connect: the socket is no longer at {path}; {way}"
        assert listener.unreachable() == listener.unreachable() == line
        with opened(path):
            assert listener.unreachable() == line
        (place / "away").rename(path)
        assert listener.unreachable() == listener.unreachable() == ""
    assert listener.unreachable() == ""
    assert [(record.levelname, record.message) for record in log.records] == [
        ("ERROR", f"unreachable: {line}"),
        ("INFO", f"programs can connect again: the socket is at {path}"),
    ]


def test_a_socket_that_is_no_longer_served_is_not_missed(
    place: Path, log: pytest.LogCaptureFixture
) -> None:
    """A stop says nothing of it, not even that programs could connect again."""
    with opened(place / "s") as listener:
        (place / "s").unlink()
        listener.unreachable()
        log.clear()
        listener.stop_listening()
        assert listener.unreachable() == ""
    assert log.records == []


def test_a_socket_from_outside_a_container_is_not_missed(place: Path) -> None:
    """Its path has no meaning here."""
    (place / "outside").mkdir()
    sock = socket.socket(socket.AF_UNIX)
    sock.bind(str(place / "outside" / "s"))
    sock.listen()
    (place / "outside").rename(place / "elsewhere")
    with contextlib.closing(Listener(sock, None)) as listener:
        assert listener.unreachable() == ""


def test_the_folder_is_locked_from_the_look_to_the_listening_and_no_longer(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody else may look between our removing the stale socket and our listening."""
    locked: list[bool] = []
    unlink, listen = Path.unlink, socket.socket.listen

    def look() -> None:
        fd = os.open(place, os.O_RDONLY)
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

    leave_stale(place / "s")
    with monkeypatch.context() as patched:
        patched.setattr(Path, "unlink", looking_unlink)
        patched.setattr(socket.socket, "listen", looking_listen)
        listener = open_listener(place / "s")
    look()
    listener.close()
    assert locked == [True, True, False]


def test_a_folder_that_somebody_keeps_locked_stops_no_start(
    place: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Any user may lock a folder that it can read."""
    monkeypatch.setattr(listeners, "LOCK_TRIES", 5)
    fd = os.open(place, os.O_RDONLY)
    fcntl.flock(fd, fcntl.LOCK_EX)
    with opened(place / "s"):
        os.close(fd)
    assert caplog.messages == [
        f"the socket's folder is locked by another process; starting without a lock: folder={place}"
    ]


def test_a_socket_that_cannot_listen_is_taken_back(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket.socket, "listen", failing(errno.ENOBUFS))
    assert "No buffer space available" in refusal(open_listener, place / "s")
    assert not (place / "s").exists()
