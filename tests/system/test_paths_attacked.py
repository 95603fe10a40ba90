"""Paths in which another user has planted something: refused in a line, and left as they were.

Root starts the daemon, which goes on as a user of its own. The attacker can write to the folder of
the socket and the pid file, as in /tmp, or could write to the state's folder once.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pwd
import socket
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.rig import Daemon, ended

pytestmark = pytest.mark.usefixtures("as_root")

ATTACKER = 12345
"""A user without a name, a group or a right."""

SECRET = b"root:$y$j9T$none\n"


@pytest.fixture
def place(place: Path) -> Path:
    """A folder with one that all can write to, a good state folder, and what is the victim's."""
    for name, mode in (("state", 0o755), ("open", 0o1777), ("theirs", 0o755)):
        (place / name).mkdir()
        (place / name).chmod(mode)
    (place / "theirs" / "secret").write_bytes(SECRET)
    (place / "theirs" / "secret").chmod(0o600)
    return place


# --- what the attacker plants


@contextlib.contextmanager
def planted(kind: str, path: Path, place: Path) -> Iterator[None]:
    """Let something of the attacker's stand at *path*."""
    with socket.socket(socket.AF_UNIX) as listening:
        match kind:
            case "a link":
                path.symlink_to(place / "theirs" / "secret")
            case "a link to nothing":
                path.symlink_to(place / "theirs" / "new")
            case "a link to a folder":
                path.symlink_to(place / "theirs")
            case "a file" | "a file open to all":
                path.write_bytes(b"the attacker's\n")
                path.chmod(0o666 if kind == "a file open to all" else 0o644)
            case "a folder":
                path.mkdir()
            case "a pipe":
                os.mkfifo(path, 0o666)
            case "a socket":
                listening.bind(str(path))
                listening.listen()
        os.chown(path, ATTACKER, ATTACKER, follow_symlinks=False)
        yield


FOREIGN = ("a link", "a link to nothing", "a link to a folder", "a file", "a folder", "a pipe")
"""What is tried where a folder or a state should be."""


# --- what is seen of it


def everything(place: Path) -> dict[str, tuple[int, int, int, int, bytes]]:
    """Return all that is below *place*: inode, mode, owner, group and content of each.

    But for the daemon's own socket, which its user cannot remove from a folder of root's.
    """
    found = {}
    for path in set(place.rglob("*")) - {place / "s"}:
        told = path.lstat()
        content = b""
        if stat.S_ISREG(told.st_mode):
            content = path.read_bytes()
        elif stat.S_ISLNK(told.st_mode):
            content = os.fsencode(path.readlink())
        name = str(path.relative_to(place))
        found[name] = (told.st_ino, told.st_mode, told.st_uid, told.st_gid, content)
    return found


def refusal(place: Path, *more: str, user: str = "nobody", checked: int = 1) -> str:
    """Return the one line with which a start in *place* is refused.

    *checked* is the exit status of a check, which takes all that listens for a daemon.
    """
    as_user = ["--user", user] if user else []
    words = ["-F", f"--socket={place / 's'}", f"--state={place / 'state'}", *more, *as_user]
    status, said, error = ended("--check", *words)
    assert (status, said) == (checked, ""), error
    status, said, error = ended(*words)
    assert (status, said) == (1, ""), error
    (line,) = [said for said in error.splitlines() if "running as root" not in said]
    return line


def _nobody() -> tuple[int, int]:
    found = pwd.getpwnam("nobody")
    return found.pw_uid, found.pw_gid


# --- the socket


def assert_refused(place: Path, kind: str, name: str, *options: str, user: str = "nobody") -> None:
    """Plant something; check that a start with *options* names it, and leaves all as it is."""
    path = place / "open" / name
    with planted(kind, path, place):
        before = everything(place)
        given = [option.format(path=path) for option in options]
        checked = 0 if kind == "a socket" else 1
        assert str(path) in refusal(place, *given, user=user, checked=checked)
        assert everything(place) == before


@pytest.mark.parametrize("kind", [*FOREIGN, "a socket"])
def test_what_stands_in_the_sockets_place_stays(place: Path, kind: str) -> None:
    """A daemon of root's neither follows, nor replaces, nor listens."""
    assert_refused(place, kind, "s", "-P", "--socket={path}")


# --- the pid file


@pytest.mark.parametrize("kind", ["a file open to all", *FOREIGN])
def test_what_stands_in_the_pid_files_place_stays(place: Path, kind: str) -> None:
    """The owner of the file could make root's scripts signal any process."""
    assert_refused(place, kind, "uuidd.pid", "--pid={path}")


# --- the state folder


@pytest.mark.parametrize(
    ("kind", "user"), [*((kind, "nobody") for kind in FOREIGN), ("a link to a folder", "")]
)
def test_what_stands_in_the_state_folders_place_stays(place: Path, kind: str, user: str) -> None:
    """No link is followed there, because it could lead to any folder of the daemon's user's."""
    if user:
        os.chown(place / "theirs", *_nobody())
    assert_refused(place, kind, "state", "-P", "--state={path}", user=user)


# --- what is in it


@pytest.mark.parametrize("name", ["state", "lock"])
@pytest.mark.parametrize(
    ("kind", "user"), [*((kind, "nobody") for kind in FOREIGN), ("a link", ""), ("a file", "")]
)
def test_what_stands_in_the_states_place_stays(
    place: Path, kind: str, name: str, user: str
) -> None:
    """What another user left there is neither used nor changed."""
    if user:
        # As a start as root makes it before it looks into it.
        os.chown(place / "state", *_nobody())
    path = place / "state" / name
    with planted(kind, path, place):
        before = everything(place)
        assert str(place / "state") in refusal(place, "-P", user=user)
        after = everything(place)
        if name == "state":
            # A daemon that looks into the folder locks it.
            after.pop("state/lock", None)
        assert after == before


def test_what_root_hands_over_is_roots_own(place: Path) -> None:
    """A file of another user in root's folder does not become the daemon's user's."""
    for name in ("state", "state.new", "lock"):
        (place / "state" / name).write_bytes(b"the attacker's\n")
        os.chown(place / "state" / name, ATTACKER, ATTACKER)
    before = everything(place / "state")
    refusal(place, "-P")
    assert everything(place / "state") == before


def folder_behind_a_link(place: Path) -> str:
    """Put another user's link in the place of the state folder; return what has to be said."""
    state = place / "state"
    state.symlink_to(state.rename(place / "elsewhere"))
    os.chown(state, ATTACKER, ATTACKER, follow_symlinks=False)
    return (
        f"the state folder {state} is a link that belongs to uid {ATTACKER}; remove it, or name"
        " another with --state"
    )


def pid_file_of_two_names(place: Path) -> str:
    """Make a pid file with a second name; return what has to be said of it."""
    (place / "pid").touch()
    os.link(place / "pid", place / "second")
    return (
        f"the pid file {place}/pid belongs to uid 0, or has a second name (a hard link); name"
        " another with --pid, or none with --no-pid"
    )


@pytest.mark.parametrize("leave", [folder_behind_a_link, pid_file_of_two_names])
def test_a_check_refuses_what_a_start_refuses(leave: Callable[[Path], str]) -> None:
    """In the same line, and both leave all as it is."""
    with Daemon() as daemon:
        assert daemon.stop() == 0
        place = daemon.folder
        words = [f"--state={daemon.state}", f"--socket={daemon.socket}", f"--pid={place / 'pid'}"]
        assert ended("--check", *words) == (0, "", "")
        line = f"uuidd: {leave(place)}\n"
        before = everything(place)
        assert ended("--check", *words) == (1, "", line)
        assert ended("-F", *words) == (1, "", line)
        assert everything(place) == before


# --- locks, which need no right to write


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Let the attacker hold a lock on *path*, if they can open it."""
    script = (
        "import fcntl, os, sys\n"
        "os.setgroups([]), os.setresgid(*[int(sys.argv[1])] * 3)\n"
        "os.setresuid(*[int(sys.argv[1])] * 3)\n"
        "try:\n"
        "    fcntl.flock(os.open(sys.argv[2], os.O_RDONLY), fcntl.LOCK_SH)\n"
        "except OSError:\n"
        "    pass\n"
        "print(flush=True)\n"
        "sys.stdin.read()\n"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", script, str(ATTACKER), str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"\n"
        yield
    finally:
        holder.communicate()


@pytest.fixture
def daemon() -> Iterator[Daemon]:
    """A daemon that runs as "nobody", in folders that all can read."""
    daemon = Daemon("--user", "nobody")
    daemon.folder.chmod(0o755)
    with daemon:
        yield daemon


@pytest.mark.parametrize("name", [".", "state/lock"])
def test_a_lock_on_a_folder_or_the_states_lock_stops_no_start(daemon: Daemon, name: str) -> None:
    """Any user can lock a folder that they can read; the state's lock only its owner can open."""
    daemon.kill()
    with locked(daemon.folder / name):
        daemon.start()
        assert daemon.call("take", "utc", 1)["count"] == 1


@pytest.mark.parametrize("holder", ["gone", "another process"])
def test_a_lock_on_the_pid_file_stops_no_start(daemon: Daemon, holder: str) -> None:
    """All may read the file of a daemon that was killed, lock it, and come by its pid."""
    daemon.kill()
    path = daemon.folder / "pid"
    daemon.start_with_pid_file(path)
    daemon.kill()
    if holder != "gone":
        path.write_text(f"{os.getpid():>8}\n")
    with locked(path):
        daemon.start()
        assert int(path.read_text()) == daemon.process.pid


def test_two_daemons_on_one_folder_are_kept_apart_all_the_same(daemon: Daemon) -> None:
    """The lock of a state that only its owner can open does what it is for."""
    mode = (daemon.state / "lock").stat().st_mode
    with (daemon.state / "lock").open() as lock, pytest.raises(BlockingIOError):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    assert not mode & 0o077
