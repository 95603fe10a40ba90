"""Starts that cannot be: one line that says what to do, status 1, and nothing left half made."""

from __future__ import annotations

import os
import select
import sys
from pathlib import Path

import pytest

from tests.rig import PATIENCE, Daemon, ended
from tests.tools import need, output, run, with_own_mounts

UUIDD = (sys.executable, "-m", "uuidd")


@pytest.fixture
def place(place: Path) -> Path:
    (place / "state").mkdir()
    return place


def at(place: Path, *more: str) -> list[str]:
    """Return the arguments of a daemon in *place*; *more* may name another of its files."""
    return ["-F", "-P", f"--socket={place / 's'}", f"--state={place / 'state'}", *more]


def everything(place: Path) -> set[str]:
    return {str(path.relative_to(place)) for path in place.rglob("*")}


def assert_refused(place: Path, line: str, *before: object, **options: object) -> None:
    """Check that a start in *place*, with a command *before* it, ends with one line."""
    done = run(*before, *UUIDD, *at(place), **options)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"uuidd: {line}\n")
    assert everything(place) - {"s"} == {"state"}


def test_a_socket_whose_folder_is_not_there(place: Path) -> None:
    line = (
        f"uuidd: the socket's folder {place}/none cannot be opened: No such file or directory;"
        " create it, or name another socket with --socket\n"
    )
    assert ended(*at(place, f"--socket={place}/none/s")) == (1, "", line)
    assert everything(place) == {"state"}


LINES = {
    "run": "the socket {path}/s cannot be made: {why}; name another with --socket",
    "pids": "the pid file {path}/pid cannot be written: {why}; name another with --pid, or none"
    " with --no-pid",
    "state": "the state folder {path} is not writable: {why}; change that, or name another with"
    " --state",
}
"""What is said of a folder that takes no file."""

READ_ONLY, FULL = "Read-only file system", "No space left on device"


@pytest.mark.parametrize(
    ("folder", "mounted", "why"),
    [
        *((name, "--bind -o ro {path}", READ_ONLY) for name in LINES),
        *((name, "-t tmpfs -o nr_inodes=1,mode=0755 none", FULL) for name in LINES),
        ("pids", "-t tmpfs -o size=4k,mode=0755 none", FULL),
    ],
)
def test_a_folder_that_takes_no_file(place: Path, folder: str, mounted: str, why: str) -> None:
    """A check says so too, also of a folder that is not the daemon's own."""
    for name in LINES:
        (place / name).mkdir(exist_ok=True)
    path = place / folder
    script = f"""
        mount {mounted.format(path=path)} {path}
        head -c 4096 /dev/zero | dd of={path}/more status=none 2>/dev/null
        exec "$@"
    """
    words = [f"--socket={place}/run/s", f"--pid={place}/pids/pid", f"--state={place}/state"]
    words.append("--user=nobody")
    for command in ("--check", "-F"):
        done = run(*with_own_mounts("sh", "-c", script, "sh"), *UUIDD, command, *words)
        told = f"uuidd: {LINES[folder].format(path=path, why=why)}\n"
        assert (done.returncode, done.stdout, done.stderr) == (1, "", told)
    assert everything(place) == set(LINES)


@pytest.mark.usefixtures("as_root")
@pytest.mark.parametrize(
    ("roots", "line"),
    [
        (
            "",
            "the socket {place}/s cannot be made: Permission denied; chown its folder to uid 10001,"
            " or name another with --socket",
        ),
        (
            "state",
            "the state folder {place}/state is not writable: Permission denied; chown it to uid"
            " 10001, or name another with --state",
        ),
    ],
)
def test_a_folder_that_root_has_mounted_for_another_user(
    place: Path, roots: str, line: str
) -> None:
    for path in {place, place / "state"} - {place / roots}:
        os.chown(path, 10001, 10001)
    assert_refused(place, line.format(place=place), user=10001, group=10001)


def test_the_socket_of_a_daemon_that_lives(place: Path) -> None:
    with Daemon() as first:
        line = (
            f"uuidd: a daemon with pid {first.pid} is listening at {first.socket};"
            " stop that one, or name another socket with --socket\n"
        )
        assert ended(*at(place, f"--socket={first.socket}")) == (1, "", line)
        first.call("take", "utc", 1)


AS_SYSTEMD = """
import os, socket, subprocess, sys
os.makedirs("/run/systemd/system")
listening = socket.socket(socket.AF_UNIX)
listening.bind(sys.argv[1])
listening.listen()
sys.exit(subprocess.run(sys.argv[2:]).returncode)
"""


@pytest.mark.usefixtures("as_root")
def test_the_socket_of_a_service(place: Path) -> None:
    """Process 1 is systemd, which is not to be stopped."""
    own = (need("unshare"), "-m", "-p", "-f", "--propagation", "private")
    shell = ("sh", "-c", 'mount -t tmpfs none /run && exec "$@"', "sh")
    line = (
        f"systemd listens at {place}/s, for a service; start that one (systemctl start uuidd), or"
        " name another socket with --socket"
    )
    assert_refused(place, line, *own, *shell, sys.executable, "-c", AS_SYSTEMD, place / "s")


def test_a_start_in_the_background_ends_when_the_daemon_answers(place: Path) -> None:
    """Status 0 means that the daemon answers; -k ends it, and then its files are gone."""
    socket, pid = f"--socket={place / 's'}", place / "pid"
    output(*UUIDD, socket, f"--state={place / 'state'}", f"--pid={pid}")
    try:
        process = os.pidfd_open(int(pid.read_text()))
        assert len(output(*UUIDD, socket, "-t")) == 37
    finally:
        output(*UUIDD, socket, "-k")
    assert select.select([process], [], [], PATIENCE)[0]
    os.close(process)
    assert everything(place) == {"state", "state/lock", "state/state"}


def test_a_start_in_the_background_that_fails_says_why(place: Path) -> None:
    status, said, error = ended(*at(place, f"--state={place / 'none'}")[1:])
    assert (status, said) == (1, "")
    assert "does not exist" in error
