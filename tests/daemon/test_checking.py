"""``uuidd --check``: what a start would be refused for, without a start."""

from __future__ import annotations

import errno
import os
import resource
import select
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from tests.rig import Daemon
from uuidd.cli import main
from uuidd.server.checking import problems
from uuidd.server.settings import Settings


class Place:
    """A daemon's *folder*, in which only its folder *state* is; *words* name its files there."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self.state = folder / "state"
        self.state.mkdir(mode=0o755)
        self.words = [f"--state={self.state}", f"--socket={folder}/s", f"--pid={folder}/pid"]
        self._capsys = capsys

    def said(self, *words: str) -> tuple[int, list[str]]:
        """Return the status and the lines of a command, whose standard output stays empty."""
        before = sorted(self.folder.rglob("*"))
        status = main([*words[:1], *self.words, *words[1:]])
        assert sorted(self.folder.rglob("*")) == before
        out, err = self._capsys.readouterr()
        assert out == ""
        return status, [line.removeprefix("uuidd: ") for line in err.splitlines()]


@pytest.fixture
def place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Place:
    return Place(tmp_path, capsys)


@pytest.fixture
def state(place: Place) -> Path:
    return place.state


@pytest.mark.parametrize(
    "options",
    [
        ["--worker=5", "--node=0x448899365732"],
        # A board without a clock of its own begins in 1970, and makes UUIDs.
        ["--epoch=2100-01-01T00:00:00Z"],
    ],
)
def test_right_options_pass_in_silence(place: Place, options: list[str]) -> None:
    assert place.said("--check", *options) == (0, [])


def test_credentials_that_this_process_is_not_shown_are_not_missed(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of some processes of a service, systemd tells the folder without showing it to them."""
    folder = place.folder / "credentials"
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(folder))
    words = ["--check", "--worker=etcds://h1/uuidd", "--worker-user=u", "--worker-secret=s"]
    words += ["--worker-ca=ca", "--worker-cert=cert", "--worker-key=key"]
    assert place.said(*words) == (0, [])
    folder.mkdir()
    line = f"--worker-ca: {folder}/ca cannot be read: No such file or directory"
    assert place.said(*words) == (1, [line])


IN_THE_PAST = (
    "--epoch 4102444800000 (2100-01-01T00:00:00.000Z): a Snowflake's 41 bits then hold times from"
    " that to 2169-"
)


@pytest.mark.usefixtures("root")
@pytest.mark.parametrize(
    ("start", "option", "line"),
    [
        ("-S", "--worker=5000", "argument --worker: '5000' is not a whole number from 0 to 1023"),
        ("-S", "--wroker=5", "unrecognized arguments: --wroker=5"),
        ("-S", "--no-pid", "--pid and --no-pid exclude each other"),
        ("-F", "--datacenter=3", "--datacenter 3 needs a --worker beside it, 0 to 31, or a URL"),
        ("-F", "--datacenter=1 --worker=32", "--worker 32: beside --datacenter it must be 0 to 31"),
        (
            "-F",
            "--worker=5 --worker-hold=1m",
            "--worker-hold needs a URL as --worker, like etcd://h1",
        ),
        ("-F", "--socket=/s --pid=/s", "--socket and --pid both name /s; name two files"),
        ("-F", "--worker=0 --epoch=2100-01-01T00:00:00Z", IN_THE_PAST),
        (
            "-F",
            "--worker=0 --epoch=281474976710655",
            "--epoch 281474976710655 (+10889-08-02T05:31:50.655Z): a Snowflake's 41 bits",
        ),
        ("-F", "--node=mac:none9", "--node 'mac:none9': there is no such interface; there are: lo"),
        (
            "-F",
            "--user=no-such-user",
            "--user 'no-such-user': there is no such user; create it, or name",
        ),
    ],
)
def test_wrong_options_are_told_in_a_line_by_a_check_and_by_a_start(
    place: Place, start: str, option: str, line: str
) -> None:
    """A service shows no usage, because its log is to have one line."""
    for command in ("--check", start):
        status, [told] = place.said(command, *option.split())
        assert status == 1
        assert told.startswith(line)


def test_each_thing_that_is_wrong_has_a_line(place: Place) -> None:
    folder = place.folder
    (folder / "s").write_text("")
    place.state.rmdir()
    wrong = ["--node=mac:none9", "--epoch=4102444800000", "--worker=0", f"--pid={folder}/none/pid"]
    status, lines = place.said("--check", *wrong)
    begins = (
        "--node 'mac:none9': there is no such interface",
        "--epoch 4102444800000 (2100-01-01T00:00:00.000Z): ",
        f"{folder}/s is not a socket;",
        f"the pid file {folder}/none/pid cannot be written: No such file or directory; name",
        f"the state folder {folder}/state does not exist; create it, or",
    )
    assert (status, len(lines)) == (1, len(begins))
    assert all(line.startswith(begin) for line, begin in zip(lines, begins, strict=True))


@pytest.mark.parametrize(
    ("content", "why"),
    [("nonsense\n", "it is damaged"), ("uuidd-state 99 sha256:0\n", "it has format '99'")],
)
def test_a_state_that_cannot_be_used_is_told(state: Path, content: str, why: str) -> None:
    (state / "state").write_text(content)
    [line] = problems(Settings(None, state))
    assert line.startswith(f"{state}/state: {why}")
    assert line.endswith("a start would set it aside and make a new one")
    assert (state / "state").read_text() == content


@pytest.mark.parametrize(
    ("changed", "is_full"),
    [
        ({"f_bavail": 1}, False),
        # The daemon is to run without root, so what root alone may fill is no room.
        ({"f_bavail": 0}, True),
        ({"f_favail": 0}, True),
        # A file system that does not say how large it is.
        ({"f_bavail": 0, "f_blocks": 0}, False),
        ({"f_favail": 0, "f_files": 0}, False),
    ],
)
def test_a_full_disk_is_told(
    state: Path, monkeypatch: pytest.MonkeyPatch, changed: dict[str, int], is_full: bool
) -> None:
    """Without room for a file's bytes, or for a file, a start could not save its state there."""
    found = {"f_frsize": 4096, "f_blocks": 1000, "f_bfree": 50, "f_bavail": 50, "f_files": 1000}
    disk = SimpleNamespace(**{**found, "f_favail": 50, "f_flag": 0, **changed})
    monkeypatch.setattr(os, "statvfs", lambda _: disk)
    # Without it, and without room for a file, a start is refused.
    (state / "lock").touch(0o600)
    line = (
        f"the state folder {state} is on a full disk; a start would make v1 and v6 with a"
        " temporary node, and refuse the other kinds but v4; make room, or name another with"
        " --state"
    )
    assert problems(Settings(None, state)) == [line] * is_full


class NoWatches:
    """An epoll of a user who may watch no descriptor more."""

    def __enter__(self) -> NoWatches:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def register(self, fd: int, events: int) -> None:
        """Refuse, as a kernel with no watch left does."""
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.usefixtures("root")
@pytest.mark.parametrize(
    ("module", "name", "value", "line"),
    [
        (
            *(select, "epoll", NoWatches),
            "the kernel watches no more descriptors for this user: No space left on device; end"
            " other processes of this user, or raise fs.epoll.max_user_watches",
        ),
        (
            *(resource, "getrlimit", lambda _: (40, 40)),
            "at most 40 descriptors may be open, and uuidd needs 96 beside its connections; raise"
            " the limit (ulimit -n, LimitNOFILE=)",
        ),
    ],
    ids=["watches", "descriptors"],
)
def test_too_few_descriptors_are_told_by_a_check_and_by_a_start(
    place: Place,
    monkeypatch: pytest.MonkeyPatch,
    module: ModuleType,
    name: str,
    value: object,
    line: str,
) -> None:
    monkeypatch.setattr(module, name, value)
    assert place.said("--check") == place.said("-F") == (1, [line])


@pytest.mark.system
def test_a_running_daemon_is_neither_a_fault_nor_disturbed() -> None:
    """Options are checked while the daemon runs that they are for."""
    with Daemon() as daemon, daemon.connect() as connection:
        assert main(["--check", "-P", f"--socket={daemon.socket}", f"--state={daemon.state}"]) == 0
        assert connection.call("status")["connections_highest"] == 1
