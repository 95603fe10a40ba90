from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tools import need_root
from uuidd.refused import Refused
from uuidd.server.pidfile import pid_file

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
    """A place for a pid file that others can reach."""
    folder = tmp_path / "run"
    folder.mkdir()
    return folder / "uuidd.pid"


def test_the_file_names_this_process_while_it_is_held(path: Path) -> None:
    """All may read it; nothing is left of it, nor beside it, in the end."""
    with pid_file(path):
        assert int(path.read_text()) == os.getpid()
        assert path.stat().st_mode & 0o777 == 0o644
        assert [each.name for each in path.parent.iterdir()] == [path.name]
    assert list(path.parent.iterdir()) == []


@pytest.mark.process
def test_the_file_of_a_process_that_lives_is_left_to_it(path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"\n"
        with pytest.raises(Refused, match=f"is held by the uuidd with pid {holder.pid};"):
            pid_file(path).__enter__()
        assert int(path.read_text()) == holder.pid


def test_a_pid_that_is_another_process_by_now_is_no_holder(path: Path) -> None:
    """A pid comes again, by chance or because a user sees to it."""
    path.write_text(f"{os.getppid():>8}\n")
    with pid_file(path):
        assert int(path.read_text()) == os.getpid()


def test_the_lock_of_one_who_may_only_read_is_no_hold(path: Path) -> None:
    """Every user can take such a lock."""
    path.write_text(f"{os.getppid():>8}\n")
    fd = os.open(path, os.O_RDONLY)
    fcntl.flock(fd, fcntl.LOCK_EX)
    with pid_file(path):
        assert int(path.read_text()) == os.getpid()
    os.close(fd)


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
    """Somebody has tidied up."""
    with pid_file(path):
        path.unlink()


@pytest.mark.parametrize("uid", [1, NOBODY])
def test_the_file_of_another_user_is_refused_to_root(path: Path, uid: int) -> None:
    """That user could write into it."""
    need_root()
    path.write_text("1\n")
    os.chown(path, uid, uid)
    with pytest.raises(Refused, match=f"belongs to uid {uid}, or"):
        pid_file(path).__enter__()
    assert path.read_text() == "1\n"


def test_a_file_that_cannot_be_put_in_place_leaves_nothing(path: Path) -> None:
    need_root()
    path.parent.chmod(0o755)
    os.seteuid(NOBODY)
    try:
        with pytest.raises(Refused, match=r"cannot be written: Permission denied; name"):
            pid_file(path).__enter__()
    finally:
        os.seteuid(0)
    assert list(path.parent.iterdir()) == []
