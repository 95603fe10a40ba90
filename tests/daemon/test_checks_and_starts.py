"""``--check`` and a start, of broken set-ups: both say the same line, or neither says any."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given
from hypothesis import settings as examples
from hypothesis import strategies as st

from tests.daemon.test_listeners import leave_stale
from tests.daemon.test_statefile import WITH_EPOCHS
from tests.daemon.test_store import Put as Break
from tests.daemon.test_store import each, with_mode
from uuidd.cli.logs import complaint
from uuidd.privileges import User, acting_as
from uuidd.refused import Refused
from uuidd.server import startup
from uuidd.server.checking import problems
from uuidd.server.settings import Settings
from uuidd.statefile import encode, machine_hash

ROOT = os.geteuid() == 0

DAEMON = User("nobody", 65534, 65534)
SOCKET, PID, FOLDER = "run/s", "pids/pid", "state"
LOCK, STATE, NEW = "state/lock", "state/state", "state/state.new"
"""The paths of the daemon's files and of its folder, which breaks first."""

MANAGER = "n"
"""The path of the service manager's socket, which the daemon is told if something is there."""

ROOTS = 65532
"""The owner, for the while, of what is to be root's though the daemon is not."""

STRANGER = 65533
"""A user who is neither root nor the one that the daemon runs as."""

USERS = ("root", "nobody", "root to nobody") if ROOT else ("this one",)
"""Who checks and starts; the last of root's gives up root."""


def kept(path: Path) -> None:
    """Leave it as it is, or is not."""


stale = each(leave_stale, with_mode(0o666))


def file(mode: int = 0o644, uid: int = -1, text: str = "") -> Break:

    def put(path: Path) -> None:
        path.write_text(text)
        path.chmod(mode)
        os.chown(path, uid, -1)

    return put


def link(to: str, uid: int = -1) -> Break:
    """Return what moves what is at a path to *to* beside it, and puts a link to that there."""

    def put(path: Path) -> None:
        if path.exists() and to != "nowhere":
            path.rename(path.with_name(to))
        elif path.is_dir():
            path.rmdir()
        path.symlink_to(path.with_name(to))
        os.chown(path, uid, -1, follow_symlinks=False)

    return put


def folder_with(mode: int, uid: int = -1) -> Break:
    def put(path: Path) -> None:
        path.parent.chmod(mode)
        os.chown(path.parent, uid, -1)

    return put


def no_folder(path: Path) -> None:
    path.parent.rmdir()


def file_as_folder(path: Path) -> None:
    path.parent.rmdir()
    path.parent.touch()


def owner(uid: int) -> Break:
    return lambda path: os.chown(path, uid, -1)


def saved(machine: str) -> str:
    return encode(replace(WITH_EPOCHS, machine=machine)).decode()


FILES: dict[str, Break] = {
    "nothing wrong": kept,
    "a folder": Path.mkdir,
    "a pipe": os.mkfifo,
    "a dangling link": link("nowhere"),
    "an unreadable file": file(0),
    "a read-only file": file(0o400),
    "a file that all may write": file(0o666),
}
"""What may be in the place of a file of the daemon's."""

PARENTS: dict[str, Break] = {
    "no folder": no_folder,
    "a file as the folder": file_as_folder,
    "a folder that cannot be written": folder_with(0o555),
    "a folder that cannot be read": folder_with(0o333),
    "a folder that cannot be searched": folder_with(0o666),
}
"""What may be wrong with the folder of a socket or a pid file."""

FOLDERS: dict[str, Break] = {
    "nothing wrong": kept,
    "none": Path.rmdir,
    "a file": each(Path.rmdir, Path.touch),
    "a link to a folder": link("elsewhere"),
    "a dangling link": link("nowhere"),
    "writable by all": with_mode(0o777),
    "read-only": with_mode(0o555),
    "not readable": with_mode(0o333),
    "closed": with_mode(0),
    "with another file": lambda path: (path / "other").touch(),
}
"""What may be wrong with the state folder."""

if ROOT:
    FILES |= {
        "a stranger's file": file(uid=STRANGER),
        "root's file": file(uid=ROOTS),
        "root's secret file": file(0o600, uid=ROOTS),
    }
    PARENTS |= {
        "a stranger's folder": folder_with(0o755, STRANGER),
        "a folder like /tmp": folder_with(0o1777, STRANGER),
    }
    FOLDERS |= {
        "a stranger's": owner(STRANGER),
        "root's": owner(ROOTS),
        "root's secret": each(owner(ROOTS), with_mode(0o700)),
        "a stranger's link": link("elsewhere", STRANGER),
    }

SHARED = "a stranger's stale socket where all may write"

SOCKETS: dict[str, Break] = {
    **FILES,
    **PARENTS,
    "a stale socket": stale,
    "a stale socket in a folder that cannot be written": each(stale, folder_with(0o555)),
    "a closed stale socket": each(stale, with_mode(0)),
    "a link to a stale socket": each(stale, link("elsewhere")),
}
if ROOT:
    SOCKETS |= {
        "a stranger's stale socket": each(stale, owner(STRANGER), folder_with(0o755, STRANGER)),
        SHARED: each(stale, owner(STRANGER), folder_with(0o1777, STRANGER)),
    }

PIDS: dict[str, Break] = {
    **FILES,
    **PARENTS,
    "a file of a daemon that died": file(text="  999999\n"),
    "a file of something else": file(text="nonsense"),
    "a link to a file": each(Path.touch, link("elsewhere")),
    "a file with two names": each(Path.touch, lambda path: os.link(path, path.with_name("two"))),
}

STATES: dict[str, Break] = {
    **FILES,
    "a damaged state": file(text="nonsense"),
    "another machine's state": file(text=saved("there")),
    "a state with an earlier epoch": file(text=saved(machine_hash())),
}

MANAGERS: dict[str, Break] = {
    "nothing wrong": kept,
    "a folder": Path.mkdir,
    "a dangling link": link("nowhere"),
    "a stale socket": stale,
    "a closed stale socket": each(stale, with_mode(0)),
}

OPTIONS: dict[str, dict[str, Any]] = {
    "nothing wrong": {},
    "worker 5": {"worker": 5, "epoch": 1288834974658},
    "no such card": {"node": "mac:none9"},
    "a wide node": {"node": "0x1234567890123"},
    "a fixed node": {"node": "0x1"},
    "a long socket path": {"socket": "/tmp/" + "s" * 103},
    "a long name of the pid file": {"pid_file": "p" * 255},
    "too long a name of the pid file": {"pid_file": "p" * 256},
    "too long a name of the folder": {"state": "s" * 256},
    "no socket's folder": {"socket": "/nowhere/s"},
    "a socket's folder of two lines": {"socket": "two\nlines/s"},
}
"""What may be chosen; a path is relative to the folder of all."""


@contextlib.contextmanager
def acting(who: str) -> Iterator[None]:
    with acting_as(DAEMON) if who == "nobody" else contextlib.nullcontext():
        yield


@contextlib.contextmanager
def broken(who: str, option: str, breaks: dict[str, Break]) -> Iterator[Settings]:
    """Settings of a daemon whose files are right, but for what *breaks* do to each."""
    with tempfile.TemporaryDirectory(prefix="uuidd-test-", dir="/tmp") as name:
        place = Path(name)
        place.chmod(0o755)
        for folder in ("run", "pids", "state"):
            (place / folder).mkdir(0o755)
        for path, broke in breaks.items():
            # Another may have removed its folder.
            with contextlib.suppress(OSError):
                broke(place / path)
        if ROOT:
            daemon = {"root": 0, "nobody": DAEMON.uid, "root to nobody": 0}[who]
            for found in place.rglob("*"):
                uid = {0: daemon, ROOTS: 0}.get(found.lstat().st_uid, STRANGER)
                os.chown(found, uid, -1, follow_symlinks=False)
        chosen = {"socket": SOCKET, "state": FOLDER, "pid_file": PID, **OPTIONS[option]}
        for path in ("socket", "state", "pid_file"):
            chosen[path] = place / chosen[path]
        yield Settings(**chosen, user=DAEMON if who == "root to nobody" else None)


def name_manager(settings: Settings) -> None:
    """Name the service manager's socket in the environment, of which each start takes it out."""
    path = settings.state.parent / MANAGER
    if path.is_symlink() or path.exists():
        os.environ["NOTIFY_SOCKET"] = str(path)


def refusal(settings: Settings) -> str:
    """Return the line with which a start is refused, "" if it is not."""
    name_manager(settings)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    try:
        with startup.started(settings):
            return ""
    except Refused as refused:
        return str(refused)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        # One that is refused early leaves it there.
        os.environ.pop("NOTIFY_SOCKET", None)


@pytest.fixture(autouse=True)
def _never_give_up_root(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a start end as root, because this process goes on."""
    monkeypatch.setattr(startup, "become", lambda user: None)
    # Whatever runs these tests is not told of them.
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)


def left(settings: Settings) -> set[str]:
    """Return the names of all that is there, but for what a daemon that died may have left."""
    place = settings.state.parent
    return {str(path.relative_to(place)) for path in place.rglob("*")} - {SOCKET, PID}


Verdicts = tuple[list[str], str, list[str]]
"""What a check says, what a start says, and what it made though it was refused."""


def verdicts(who: str, settings: Settings) -> Verdicts:
    with acting(who):
        before = left(settings)
        name_manager(settings)
        found = problems(settings)
        line = refusal(settings)
        return found, line, sorted(left(settings) ^ before) if line else []


def without(capabilities: set[int], settings: Settings) -> Verdicts:
    """Return the verdicts of a process that gives up *capabilities* of root's for good."""
    read, write = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            libc, header, sets = ctypes.CDLL(None), (ctypes.c_uint32 * 2)(), (ctypes.c_uint32 * 6)()
            header[0] = LINUX_CAPABILITY_VERSION_3
            assert libc.capget(header, sets) == 0
            for number in range(3):
                sets[number] &= ~sum(1 << each for each in capabilities)
            assert libc.capset(header, sets) == 0
            os.write(write, json.dumps(verdicts("root", settings)).encode())
        finally:
            os._exit(0)
    os.close(write)
    with open(read, "rb") as told:
        found, line, made = json.load(told)
    os.waitpid(pid, 0)
    return found, line, made


def agree(found: list[str], line: str, made: list[str]) -> None:
    """Assert that the check says first what the start says, and nothing if it says nothing."""
    # What a start goes on without, the check tells of too.
    fatal = [each for each in found if "; a start would " not in each]
    assert (fatal[:1], made) == ([line] * bool(line), [])
    assert "\n" not in complaint(line)


def compare(who: str, option: str, breaks: dict[str, Break]) -> None:
    with broken(who, option, breaks) as settings:
        agree(*verdicts(who, settings))


SETUPS = {SOCKET: SOCKETS, PID: PIDS, FOLDER: FOLDERS, LOCK: FILES, STATE: STATES, NEW: FILES}
SETUPS[MANAGER] = MANAGERS
SINGLE = [
    (who, "nothing wrong", path, name)
    for who in USERS
    for path, breaks in SETUPS.items()
    for name in breaks
] + [(who, option, SOCKET, "nothing wrong") for who in USERS for option in OPTIONS]
# Refused once the witness was made.
SINGLE += [(who, "worker 5", FOLDER, "none") for who in USERS]


@pytest.mark.parametrize(("who", "option", "path", "name"), SINGLE)
def test_a_check_says_what_a_start_says(who: str, option: str, path: str, name: str) -> None:
    compare(who, option, {path: SETUPS[path][name]})


CAPABILITIES = {"chown": 0, "dac_override": 1, "dac_read_search": 2, "fowner": 3}
CAPABILITIES |= {"setgid": 6, "setuid": 7}
"""What a container may take from root, by the numbers of <linux/capability.h>."""

LINUX_CAPABILITY_VERSION_3 = 0x20080522

OF_ROOT = [each for each in SINGLE if each[0].startswith("root")]


@pytest.mark.process
@pytest.mark.usefixtures("as_root")
@examples(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@example({"chown"}, ("root to nobody", "nothing wrong", FOLDER, "nothing wrong"))
@example({"fowner"}, ("root", "nothing wrong", SOCKET, SHARED))
@example({"setuid"}, ("root to nobody", "nothing wrong", FOLDER, "nothing wrong"))
@given(st.sets(st.sampled_from(sorted(CAPABILITIES))), st.sampled_from(OF_ROOT or SINGLE))
def test_a_check_says_what_a_start_says_of_a_root_that_lacks_rights(
    gone: set[str], setup: tuple[str, str, str, str]
) -> None:
    who, option, path, name = setup
    with broken(who, option, {path: SETUPS[path][name]}) as settings:
        agree(*without({CAPABILITIES[each] for each in gone}, settings))


DRAWN = st.fixed_dictionaries(
    {path: st.sampled_from(sorted(each)) for path, each in SETUPS.items()}
)


@examples(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(USERS), st.sampled_from(sorted(OPTIONS)), DRAWN)
def test_a_check_says_what_a_start_says_of_several_things(
    who: str, option: str, names: dict[str, str]
) -> None:
    compare(who, option, {path: SETUPS[path][name] for path, name in names.items()})
