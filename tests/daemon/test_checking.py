"""``uuidd --check``: what a start would be refused for, without a start."""

from __future__ import annotations

import errno
import os
import resource
import select
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tests.rig import Daemon
from tests.tools import output, with_own_mounts
from uuidd.cli import main
from uuidd.server.checking import problems
from uuidd.server.settings import Settings
from uuidd.store import FolderStore


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """A state folder in which no daemon has been."""
    folder = tmp_path / "state"
    folder.mkdir(mode=0o755)
    return folder


@pytest.fixture
def words(tmp_path: Path, state: Path) -> list[str]:
    """Options with which a start would succeed."""
    return ["--check", f"--state={state}", f"--socket={tmp_path}/s", f"--pid={tmp_path}/pid"]


def told(capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    """Return the lines of a check that fails, which has nothing on its standard output."""
    assert main(words) == 1
    out, err = capsys.readouterr()
    assert out == ""
    return [line.removeprefix("uuidd: ") for line in err.splitlines()]


def test_right_options_pass_in_silence(
    words: list[str], state: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*words, "--worker=5", "--node=0x448899365732"]) == 0
    assert capsys.readouterr() == ("", "")
    assert list(tmp_path.iterdir()) == [state]
    assert list(state.iterdir()) == []


def test_credentials_that_this_process_is_not_shown_are_not_missed(
    words: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Of some processes of a service, systemd tells the folder without showing it to them."""
    folder = tmp_path / "credentials"
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(folder))
    words += ["--worker=etcds://h1/uuidd", "--worker-user=u", "--worker-secret=s"]
    words += ["--worker-ca=ca", "--worker-cert=cert", "--worker-key=key"]
    assert main(words) == 0
    folder.mkdir()
    assert told(capsys, *words) == [
        f"--worker-ca: {folder}/ca cannot be read: No such file or directory"
    ]


IN_THE_PAST = "--epoch 4102444800000: a Snowflake's 41 bits then hold times from 2100"


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
            "--epoch 281474976710655: a Snowflake's 41 bits",
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
    words: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    start: str,
    option: str,
    line: str,
) -> None:
    """A service shows no usage, because its log is to have one line. Nothing is made."""
    before = sorted(tmp_path.rglob("*"))
    for asked in (words, [start, *words[1:]]):
        [found] = told(capsys, *asked, *option.split())
        assert found.startswith(line)
    assert sorted(tmp_path.rglob("*")) == before


def test_each_thing_that_is_wrong_has_a_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "socket").write_text("")
    node, epoch, socket, pid, state = told(
        capsys,
        *("--check", "--node=mac:none9", "--epoch=4102444800000", "--worker=0"),
        f"--socket={tmp_path}/socket",
        *(f"--pid={tmp_path}/none/pid", f"--state={tmp_path}/state"),
    )
    assert node.startswith("--node 'mac:none9': there is no such interface")
    assert epoch.startswith("--epoch 4102444800000: ")
    assert socket == f"{tmp_path}/socket is not a socket; remove it, or name another with --socket"
    assert pid == (
        f"the pid file {tmp_path}/none/pid cannot be written: No such file or directory; name"
        " another with --pid, or none with --no-pid"
    )
    assert state == (
        f"the state folder {tmp_path}/state does not exist; create it, or name another with --state"
    )


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


@pytest.mark.process
@pytest.mark.parametrize("limit", ["size=8k", "nr_inodes=2"])
def test_a_full_disk_is_told(tmp_path: Path, limit: str) -> None:
    """Without room for a file's bytes, or for a file, a start could not save its state there."""
    script = """
import subprocess, sys
from pathlib import Path
from uuidd.server.checking import problems
from uuidd.server.settings import Settings
folder, options = Path(sys.argv[1]), f"mode=0755,{sys.argv[2]}"
subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", folder], check=True)
print(problems(Settings(None, folder)))
(folder / "filler").write_bytes(bytes(8192))
print(*problems(Settings(None, folder)))
"""
    told = output(*with_own_mounts(sys.executable, "-c", script, tmp_path, limit))
    assert told.splitlines() == [
        "[]",
        f"the state folder {tmp_path} is on a full disk; a start would make v1 and v6 with a"
        " temporary node, and refuse the other kinds but v4; make room, or name another with"
        " --state",
    ]


@pytest.mark.parametrize(("bytes_left", "is_full"), [(0, True), (4096, False)])
def test_a_disk_whose_last_blocks_are_roots_is_full(
    state: Path, monkeypatch: pytest.MonkeyPatch, bytes_left: int, is_full: bool
) -> None:
    """The daemon is to run without root, so what root alone may fill is no room."""
    found = list(os.statvfs(state))
    # Of the blocks, so many are there, are free, and are free for others than root.
    found[1:5] = [4096, 1000, 50, bytes_left // 4096]
    monkeypatch.setattr(os, "statvfs", lambda _: os.statvfs_result(found))
    assert ["full disk" in line for line in problems(Settings(None, state))] == [True] * is_full


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
    words: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    module: ModuleType,
    name: str,
    value: object,
    line: str,
) -> None:
    before = sorted(tmp_path.rglob("*"))
    monkeypatch.setattr(module, name, value)
    assert told(capsys, *words) == [line]
    assert told(capsys, "-F", *words[1:]) == [line]
    assert sorted(tmp_path.rglob("*")) == before


@pytest.fixture
def held(state: Path) -> Iterator[None]:
    """A store that holds the state folder."""
    store = FolderStore(state, machine="")
    yield
    store.close()


@pytest.mark.usefixtures("held")
def test_a_folder_in_use_is_no_fault(state: Path) -> None:
    """Options are checked while the daemon runs that they are for."""
    assert problems(Settings(None, state)) == []


@pytest.mark.system
def test_a_running_daemon_is_neither_a_fault_nor_disturbed() -> None:
    with Daemon() as daemon, daemon.connect() as connection:
        assert main(["--check", "-P", f"--socket={daemon.socket}", f"--state={daemon.state}"]) == 0
        before = connection.call("status")["connections_highest"]
        assert before == 1
