"""Starts that cannot be: one line that says what to do, status 1, and nothing left half made."""

from __future__ import annotations

import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.rig import PATIENCE, Connection, Daemon, ended
from tests.tools import in_private_mounts, need


@pytest.fixture
def place() -> Iterator[Path]:
    """A short folder, for a socket's path has 107 bytes at most, with a state folder in it."""
    folder = Path(tempfile.mkdtemp(prefix="uuidd-test-", dir="/tmp"))
    (folder / "state").mkdir()
    yield folder
    shutil.rmtree(folder)


def refusal(*arguments: str, before: str = "") -> str:
    """Return the one line that a start with these arguments ends with.

    *before* is shell code to run before it, in a mount namespace of its own.
    """
    if before:
        shell = ["sh", "-c", f'{before} && exec "$@"', "sh", sys.executable, "-m", "uuidd"]
        command = [need("unshare"), "-m", "--propagation", "private", *shell, *arguments]
        done = subprocess.run(
            command, capture_output=True, timeout=PATIENCE, text=True, check=False
        )
        status, said, error = done.returncode, done.stdout, done.stderr
    else:
        status, said, error = ended(*arguments)
    assert (status, said) == (1, ""), error
    (line,) = error.splitlines()
    assert line.startswith("uuidd: ")
    return line.removeprefix("uuidd: ")


def at(place: Path, *more: str) -> list[str]:
    """Return the arguments of a daemon in *place*."""
    return ["-F", "-P", f"--socket={place / 's'}", f"--state={place / 'state'}", *more]


def everything(place: Path) -> set[str]:
    """Return the names of all files below *place*."""
    return {str(path.relative_to(place)) for path in place.rglob("*")}


def test_a_state_folder_that_is_not_there(place: Path) -> None:
    """The line names the folder and both ways out; no socket stays."""
    (place / "state").rmdir()
    line = refusal(*at(place))
    assert line == (
        f"the state folder {place / 'state'} does not exist;"
        " create it, or name another with --state"
    )
    assert everything(place) == set()


def test_a_state_folder_that_cannot_be_written(place: Path) -> None:
    """A read-only folder is refused before anything is served."""
    state = place / "state"
    before = f"mount -t tmpfs -o ro,mode=0755 none {state}"
    assert refusal(*at(place), before=before) == (
        f"the state folder {state} is not writable: Read-only file system;"
        " change that, or name another with --state"
    )
    assert everything(place) == {"state"}


@pytest.mark.parametrize("pages", [0, 1])
def test_a_state_folder_on_a_full_disk(place: Path, pages: int) -> None:
    """Whether the lock or only the state does not fit, the line says to make room."""
    state = place / "state"
    before = (
        f"mount -t tmpfs -o size=16k,mode=0755 none {state} &&"
        f" head -c {16384 - 4096 * pages} /dev/zero >{state}/full"
    )
    assert "No space left on device; make room" in refusal(*at(place), before=before)
    assert everything(place) == {"state"}


def test_a_socket_folder_that_is_not_there(place: Path) -> None:
    """The line names the folder, and nothing is written to the state."""
    socket = place / "nowhere" / "s"
    line = refusal("-F", "-P", f"--socket={socket}", f"--state={place / 'state'}")
    assert line == (
        f"the socket's folder {socket.parent} cannot be opened: No such file or directory;"
        " create it, or name another socket with --socket"
    )
    assert everything(place) == {"state"}


def test_a_socket_path_that_is_too_long(place: Path) -> None:
    """The line gives the length and the most there may be."""
    socket = str(place / ("s" * 107))
    line = refusal("-F", "-P", f"--socket={socket}", f"--state={place / 'state'}")
    assert line == (
        f"the socket path {socket} has {len(socket)} bytes, and at most 107 are allowed;"
        " name a shorter one with --socket"
    )
    assert everything(place) == {"state"}


def test_a_pid_file_that_cannot_be_written(place: Path) -> None:
    """It is wanted before the state is touched, and its failure takes the socket back."""
    line = refusal("-F", f"-p{place / 'no' / 'pid'}", *at(place)[2:])
    assert line.startswith(f"the pid file {place / 'no' / 'pid'} cannot be written: No such file")
    assert everything(place) == {"state"}


def test_an_unknown_interface(place: Path) -> None:
    """The line lists the interfaces that there are, and nothing is made."""
    line = refusal(*at(place, "--node=mac:nosuch0"))
    assert "nosuch0" in line
    assert "lo" in line
    assert everything(place) == {"state"}


def test_the_socket_of_a_daemon_that_lives(place: Path) -> None:
    """A second daemon on a live socket names the first's pid and leaves it alone."""
    with Daemon() as first:
        line = refusal("-F", "-P", f"--socket={first.socket}", f"--state={place / 'state'}")
        assert line.startswith(
            f"a daemon with pid {first.process.pid} is listening at {first.socket};"
        )
        with first.connect() as other:
            other.call("take", "utc", 1)


def test_the_state_folder_of_a_daemon_that_lives(place: Path) -> None:
    """A second daemon on a folder in use names the first's pid, and leaves no socket."""
    with Daemon() as first:
        line = refusal("-F", "-P", f"--socket={place / 's'}", f"--state={first.state}")
        assert line.startswith(
            f"the state folder {first.state} is in use by the uuidd with pid {first.process.pid};"
        )
    assert everything(place) == {"state"}


def test_a_start_in_the_background_ends_when_the_daemon_answers(place: Path) -> None:
    """Status 0 means that it can be asked; -k ends it, and then its files are gone."""
    uuidd = [sys.executable, "-m", "uuidd", f"--socket={place / 's'}"]
    pid = place / "pid"
    start = [*uuidd, f"--state={place / 'state'}", f"--pid={pid}"]
    subprocess.run(start, check=True, timeout=PATIENCE, capture_output=True)
    try:
        number = int(pid.read_text())
        asked = subprocess.run([*uuidd, "-t"], capture_output=True, check=True, timeout=PATIENCE)
        assert len(asked.stdout) == 37
    finally:
        subprocess.run([*uuidd, "-k"], capture_output=True, check=True, timeout=PATIENCE)
    _await_end(number)
    assert everything(place) == {"state", "state/lock", "state/state"}


def _await_end(pid: int) -> None:
    """Wait until a process that is not our child has ended."""
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    ended, _, _ = select.select([fd], [], [], PATIENCE)
    os.close(fd)
    assert ended


def test_a_start_in_the_background_that_fails_says_why(place: Path) -> None:
    """Going to the background does not swallow the line, nor the status."""
    (place / "state").rmdir()
    assert "does not exist" in refusal(
        "-P", f"--socket={place / 's'}", f"--state={place / 'state'}"
    )


def test_another_node_moves_the_clock_sequence() -> None:
    """A state of another node is adapted: its marks stay, and the next generation is opened."""
    need("unshare")
    # Without libuuid's clock file, which would have a say in where a fixed node goes on.
    with Daemon("--node=0x02aabbccddee", wrap=in_private_mounts) as daemon:
        with daemon.connect() as connection:
            before = connection.call("take", "utc", 1)
        daemon.stop()
        daemon.arguments = ["--node=0x02aabbccddef"]
        daemon.start()
        with daemon.connect() as connection:
            after = connection.call("take", "utc", 1)
    assert before["node"].hex() == "02aabbccddee"
    assert after["node"].hex() == "02aabbccddef"
    assert after["clock_seq"] == (before["clock_seq"] + 16) % (1 << 14)


def test_an_idle_timeout_ends_the_daemon() -> None:
    """-T ends a daemon without requests, in order."""
    with Daemon("-T1") as daemon:
        assert daemon.process.wait(PATIENCE) == 0


def test_a_signal_stops_the_daemon_with_its_exact_state_saved() -> None:
    """SIGTERM: status 0, the socket gone, the mark where the last tick was."""
    with Daemon() as daemon:
        with daemon.connect() as connection:
            block = connection.call("take", "utc", 1)
        assert daemon.stop() == 0
        assert not daemon.socket.exists()
        assert str(block["first"] + 1) in (daemon.state / "state").read_text()


def test_a_killed_daemon_is_followed_by_another_at_the_same_socket() -> None:
    """After SIGKILL the stale socket is replaced, and ids go on where they were."""
    with Daemon() as daemon:
        with daemon.connect() as connection:
            before = connection.call("take", "utc", 1)
        daemon.kill()
        assert daemon.socket.exists()
        daemon.start()
        with daemon.connect() as connection:
            after = connection.call("take", "utc", 1)
    assert after["node"] == before["node"]
    assert after["first"] > before["first"]


def test_a_pid_file_of_a_daemon_that_lives(place: Path) -> None:
    """A second daemon does not take the first's pid file, and leaves it in its place."""
    pid = place / "pid"
    with Daemon() as first:
        first.stop()
        first.start_with_pid_file(pid)
        line = refusal("-F", f"-p{pid}", *at(place)[2:])
        assert line == (
            f"the pid file {pid} is held by the uuidd with pid {first.process.pid};"
            " name another with --pid, or none with --no-pid"
        )
        assert int(pid.read_text()) == first.process.pid
        first.stop()
    assert not pid.exists()


def test_a_start_with_closed_standard_descriptors(place: Path) -> None:
    """A program that closed them to detach gets a daemon all the same, and one that works."""
    words = [f"--socket={place / 's'}", f"--state={place / 'state'}", f"--pid={place / 'pid'}"]
    shell = ["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", sys.executable, "-m", "uuidd", *words]
    try:
        subprocess.run(shell, check=True, timeout=PATIENCE)
        with Connection(place / "s") as connection:
            assert connection.call("take", "utc", 1)["count"] == 1
    finally:
        pid = int((place / "pid").read_text())
        os.kill(pid, signal.SIGTERM)
        _await_end(pid)
