from __future__ import annotations

import fcntl
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.tools import holding, refusal
from uuidd.server.pidfile import check_pid_file, pid_file

NOBODY = 65534

HOLD = """
import sys
from pathlib import Path
from uuidd.server.pidfile import pid_file
with pid_file(Path(sys.argv[1])):
    print(flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    folder.mkdir()
    return folder / "uuidd.pid"


def refused(path: Path) -> str:
    return refusal(lambda: pid_file(path).__enter__())


def test_the_file_names_this_process_while_it_is_held(path: Path) -> None:
    with pid_file(path):
        assert int(path.read_text()) == os.getpid()
        assert path.stat().st_mode & 0o777 == 0o644
        assert list(path.parent.iterdir()) == [path]
    assert list(path.parent.iterdir()) == []


@pytest.mark.process
def test_the_file_of_a_process_that_lives_is_left_to_it(path: Path) -> None:
    with holding(sys.executable, "-c", HOLD, path) as pid:
        assert f"is held by the uuidd with pid {pid};" in refused(path)
        assert int(path.read_text()) == pid


@pytest.mark.parametrize("locked", [False, True])
def test_a_pid_without_a_lock_of_one_who_may_write_is_no_holder(path: Path, locked: bool) -> None:
    """A pid comes again, and every user can lock a file that it can read."""
    path.write_text(f"{os.getppid():>8}\n")
    with path.open() as file:
        if locked:
            fcntl.flock(file, fcntl.LOCK_EX)
        with pid_file(path):
            assert int(path.read_text()) == os.getpid()


def test_a_new_file_is_nobodys_to_open_until_it_is_locked(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else another could lock it first."""
    modes = []
    lock = fcntl.lockf

    def look_and_lock(fd: int, how: int) -> None:
        modes.append(os.fstat(fd).st_mode & 0o777)
        lock(fd, how)

    monkeypatch.setattr(fcntl, "lockf", look_and_lock)
    with pid_file(path):
        assert modes == [0o600]


def test_anothers_file_is_not_removed(path: Path) -> None:
    """One that has come into its place since is that of the next daemon."""
    with pid_file(path):
        other = path.with_name("other")
        other.write_text("1234\n")
        other.rename(path)
    assert path.read_text() == "1234\n"


def test_a_file_that_was_removed_meanwhile_is_no_failure(path: Path) -> None:
    with pid_file(path):
        path.unlink()


@pytest.mark.parametrize("check", [refused, lambda path: refusal(lambda: check_pid_file(path))])
def test_a_file_that_says_something_else_is_left_alone(
    path: Path, check: Callable[[Path], str]
) -> None:
    """An option that names the daemon's own state would replace it."""
    path.write_text("uuidd-state 6\n")
    assert "has something else in it than a pid; name another with --pid" in check(path)
    assert path.read_text() == "uuidd-state 6\n"


def test_an_empty_file_may_become_the_pid_file(path: Path) -> None:
    path.touch()
    with pid_file(path):
        assert int(path.read_text()) == os.getpid()


@pytest.mark.usefixtures("as_root")
@pytest.mark.parametrize("uid", [1, NOBODY])
def test_the_file_of_another_user_is_refused_to_root(path: Path, uid: int) -> None:
    """That user could write into it."""
    path.write_text("1\n")
    os.chown(path, uid, uid)
    assert f"belongs to uid {uid}, or" in refused(path)
    assert path.read_text() == "1\n"


@pytest.mark.usefixtures("as_root")
def test_a_file_that_cannot_be_put_in_place_leaves_nothing(path: Path) -> None:
    path.parent.chmod(0o755)
    os.seteuid(NOBODY)
    try:
        assert "cannot be written: Permission denied; name" in refused(path)
    finally:
        os.seteuid(0)
    assert list(path.parent.iterdir()) == []
