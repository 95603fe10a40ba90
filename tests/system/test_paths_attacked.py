"""Another user who can write to the folder of a path makes root's start change nothing of root's.

Root starts the daemon, which goes on as a user of its own.
"""

from __future__ import annotations

import os
import pwd
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.rig import Daemon, ended
from tests.tools import holding

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


def file(mode: int) -> Callable[[Path, Path], None]:
    def put(path: Path, _: Path) -> None:
        path.write_bytes(b"the attacker's\n")
        path.chmod(mode)

    return put


PLANTED: dict[str, Callable[[Path, Path], object]] = {
    "a link": lambda path, place: path.symlink_to(place / "theirs" / "secret"),
    "a link to nothing": lambda path, place: path.symlink_to(place / "theirs" / "new"),
    "a link to a folder": lambda path, place: path.symlink_to(place / "theirs"),
    "a file": file(0o644),
    "a file open to all": file(0o666),
    "a folder": lambda path, place: path.mkdir(),
    "a pipe": lambda path, place: os.mkfifo(path),
}
"""What the attacker puts in the place of what the daemon looks for."""


def everything(place: Path) -> dict[str, tuple[int, int, int, int, bytes]]:
    """Return all that is below *place*: inode, mode, owner, group and content of each.

    But for the daemon's own socket, which its user cannot remove from a folder of root's; and for
    the lock that a daemon makes to look into a folder.
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
    if found.get("state/lock", (0, 0, ATTACKER))[2] != ATTACKER:
        del found["state/lock"]
    return found


def assert_refused(place: Path, named: Path, *more: str, user: str) -> None:
    """Check that a check and a start in *place* name what is wrong, and leave all as it is."""
    before = everything(place)
    as_user = ["--user", user] if user else []
    words = ["-F", f"--socket={place / 's'}", f"--state={place / 'state'}", *more, *as_user]
    for way in ([], ["--check"]):
        status, said, error = ended(*way, *words)
        assert (status, said) == (1, ""), error
        (line,) = [said for said in error.splitlines() if "running as root" not in said]
        assert str(named) in line
        assert everything(place) == before


IN_THE_OPEN = {
    "socket": ("open/s", "-P", "--socket={path}"),
    # Its owner could make root's scripts signal any process.
    "pid file": ("open/uuidd.pid", "--pid={path}"),
    # No link is followed there, because it could lead to any folder of the daemon's user's.
    "state folder": ("open/state", "-P", "--state={path}"),
    "state": ("state/state", "-P"),
    "lock": ("state/lock", "-P"),
}


@pytest.mark.parametrize("kind", PLANTED)
@pytest.mark.parametrize("name", IN_THE_OPEN)
def test_what_stands_in_the_place_of_a_path_stays(place: Path, name: str, kind: str) -> None:
    inside, *options = IN_THE_OPEN[name]
    path = place / inside
    if path.parent == place / "state":
        # As a start as root makes it before it looks into it.
        nobody = pwd.getpwnam("nobody")
        os.chown(path.parent, nobody.pw_uid, nobody.pw_gid)
    PLANTED[kind](path, place)
    os.chown(path, ATTACKER, ATTACKER, follow_symlinks=False)
    named = path if inside.startswith("open") else path.parent
    assert_refused(place, named, *(each.format(path=path) for each in options), user="nobody")


@pytest.mark.parametrize(
    ("inside", "kind"),
    [("state", "a link to a folder"), ("state/state", "a link"), ("state/lock", "a file")],
)
def test_a_daemon_that_stays_root_uses_nothing_of_anothers(
    place: Path, inside: str, kind: str
) -> None:
    path = place / inside
    if inside == "state":
        path.rmdir()
    PLANTED[kind](path, place)
    os.chown(path, ATTACKER, ATTACKER, follow_symlinks=False)
    assert_refused(place, place / "state", "-P", user="")


def test_what_root_hands_over_is_roots_own(place: Path) -> None:
    """A file of another user in root's folder does not become the daemon's user's."""
    for name in ("state", "state.new", "lock"):
        file(0o644)(place / "state" / name, place)
        os.chown(place / "state" / name, ATTACKER, ATTACKER)
    before = everything(place / "state")
    ended("-F", "-P", f"--socket={place / 's'}", f"--state={place / 'state'}", "--user=nobody")
    assert everything(place / "state") == before


def folder_behind_a_link(place: Path) -> str:
    state = place / "state"
    state.symlink_to(state.rename(place / "elsewhere"))
    os.chown(state, ATTACKER, ATTACKER, follow_symlinks=False)
    return (
        f"the state folder {state} is a link that belongs to uid {ATTACKER}; remove it, or name"
        " another with --state"
    )


def pid_file_of_two_names(place: Path) -> str:
    (place / "pid").touch()
    os.link(place / "pid", place / "second")
    return (
        f"the pid file {place}/pid belongs to uid 0, or has a second name (a hard link); name"
        " another with --pid, or none with --no-pid"
    )


@pytest.mark.parametrize("leave", [folder_behind_a_link, pid_file_of_two_names])
def test_a_check_refuses_what_a_start_refuses(leave: Callable[[Path], str], place: Path) -> None:
    words = [f"--state={place / 'state'}", f"--socket={place / 's'}", f"--pid={place / 'pid'}"]
    assert ended("--check", *words) == (0, "", "")
    line = f"uuidd: {leave(place)}\n"
    before = everything(place)
    assert ended("--check", *words) == (1, "", line)
    assert ended("-F", *words) == (1, "", line)
    assert everything(place) == before


# --- locks, which need no right to write

LOCK = """
import fcntl, os, sys
os.setgroups([]), os.setresgid(*[int(sys.argv[1])] * 3)
os.setresuid(*[int(sys.argv[1])] * 3)
try:
    fcntl.flock(os.open(sys.argv[2], os.O_RDONLY), fcntl.LOCK_SH)
except OSError:
    pass
print(flush=True)
sys.stdin.read()
"""


def locked(path: Path) -> AbstractContextManager[int]:
    """Let the attacker hold a lock on *path*, if they can open it."""
    return holding(sys.executable, "-c", LOCK, ATTACKER, path)


@pytest.fixture
def daemon() -> Iterator[Daemon]:
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
