"""Giving up root: what is left of it (nothing), and whose the state is."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.rig import Connection, Daemon
from tests.tools import need, output, run
from uuidd import privileges
from uuidd.privileges import User, hand_over, user
from uuidd.refused import Refused
from uuidd.statefile import decode

NOBODY = pwd.getpwnam("nobody")
AS_NOBODY = User("nobody", NOBODY.pw_uid, NOBODY.pw_gid)

as_root = pytest.mark.usefixtures("as_root")

WITHOUT_SETUID = ("--bounding-set=-setuid,-setgid", "--inh-caps=-setuid,-setgid")
"""Options of setpriv, by which root cannot change its user."""


def refusal(act: Callable[[], object]) -> str:
    """Return the one line with which *act* is refused."""
    with pytest.raises(Refused) as refused:
        act()
    (line,) = str(refused.value).splitlines()
    return line


def child(code: str, *before: str) -> list[str]:
    """Return the lines that a process of its own prints, whose user changes for good."""
    done = run(*before, sys.executable, "-c", code, cwd=Path(__file__).parents[2])
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


# --- which user

UNKNOWN = ("no-such-user", "0", "no\0body", "n\nx")


def test_a_user_is_known_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert user("nobody") == User("nobody", NOBODY.pw_uid, NOBODY.pw_gid)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        *((name, "there is no such user; create it, or name another") for name in UNKNOWN),
        ("root", "that is root; name a user without privileges"),
    ],
)
def test_an_unknown_user_and_root_are_refused(name: str, why: str) -> None:
    assert refusal(lambda: user(name)) == f"--user {name!r}: {why}"


def test_only_root_can_become_another_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 4711)
    assert refusal(lambda: user("nobody")) == (
        "--user 'nobody': only root can become another user, and this is uid 4711;"
        " start as root, or without --user"
    )


def test_a_process_of_that_user_may_name_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: NOBODY.pw_uid)
    monkeypatch.setattr(os, "getuid", lambda: NOBODY.pw_uid)
    found = user("nobody")
    monkeypatch.setattr(os, "setresuid", None)
    privileges.become(found)


# --- becoming

BECOME = """
import os
from uuidd.privileges import become, user
os.setgroups([0, 4])
become(user("nobody"))
"""


@pytest.mark.process
@as_root
def test_nothing_of_roots_is_left() -> None:
    calls = "setuid(0), seteuid(0), setresuid(0, 0, 0), setgid(0), setegid(0), setgroups([0])"
    code = f"""
print(os.getresuid(), os.getresgid(), os.getgroups())
for call in {calls.split("), ")!r}:
    try:
        eval("os." + call.rstrip(")") + ")")
    except PermissionError:
        print("refused")
print(open('/proc/self/status').read())
"""
    ids, *lines = child(BECOME + code)
    uid, gid = NOBODY.pw_uid, NOBODY.pw_gid
    assert ids == f"{(uid,) * 3} {(gid,) * 3} {[gid]}"
    assert lines[:6] == ["refused"] * 6
    found = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
    assert [int(found[name], 16) for name in ("CapPrm", "CapEff", "CapAmb")] == [0, 0, 0]
    assert found["NoNewPrivs"] == "1"


@pytest.mark.process
@as_root
def test_all_threads_become_the_user() -> None:
    code = f"""
import threading
go = threading.Event()
def look():
    go.wait()
    print(os.getresuid(), open("/proc/thread-self/status").read().split("CapEff:")[1].split()[0])
thread = threading.Thread(target=look)
thread.start()
{BECOME}
go.set()
thread.join()
"""
    assert child("import os\n" + code) == [f"{(NOBODY.pw_uid,) * 3} {0:016x}"]


@pytest.mark.process
@as_root
@pytest.mark.parametrize(
    ("started", "why"),
    [
        (WITHOUT_SETUID, "Operation not permitted"),
        (("--securebits=+no_setuid_fixup",), "privileges are left (capabilities "),
    ],
    ids=["without CAP_SETUID", "with capabilities that stay"],
)
def test_a_change_that_fails_or_leaves_privileges_is_refused(
    started: tuple[str, ...], why: str
) -> None:
    """In a line: a container may drop CAP_SETUID, and securebits keep capabilities."""
    code = """
from uuidd.privileges import become, user
from uuidd.refused import Refused
try:
    become(user("nobody"))
except Refused as refused:
    print(refused)
"""
    (line,) = child(code, need("setpriv"), *started)
    assert line.startswith(f"--user 'nobody': {why}")


# --- the state folder


@pytest.fixture
def state(place: Path) -> Path:
    """A state folder of root's, with a state, that all users can reach."""
    folder = place / "state"
    folder.mkdir(mode=0o755)
    for name in ("state", "lock", "state.new"):
        (folder / name).write_text("x")
    return folder


def owners(folder: Path) -> set[int]:
    """Return the owners of the folder and of what is in it."""
    return {path.lstat().st_uid for path in (folder, *folder.iterdir())}


@as_root
def test_roots_own_folder_is_handed_over(state: Path) -> None:
    """With the state, the lock, and what a killed save left, so that the user can go on."""
    hand_over(state, AS_NOBODY)
    assert owners(state) == {NOBODY.pw_uid}
    assert (state.stat().st_mode, state.stat().st_gid) == (0o40755, NOBODY.pw_gid)
    hand_over(state, AS_NOBODY)
    assert owners(state) == {NOBODY.pw_uid}


@as_root
@pytest.mark.parametrize(
    ("change", "left"),
    [
        (lambda state: os.chown(state, 4711, 4711), {0, 4711}),
        (lambda state: state.chmod(0o775), {0}),
        (lambda state: state.chmod(0o757), {0}),
        (lambda state: state.chmod(0o1777), {0}),
        (lambda state: (state / "systemd").mkdir(), {0}),
    ],
    ids=["another's", "group writes", "others write", "sticky", "has more, as /var/lib"],
)
def test_another_folder_than_a_state_folder_of_roots_is_left_alone(
    state: Path, change: Callable[[Path], None], left: set[int]
) -> None:
    """It may not be root's to give, or not only a state's; opening the store refuses it."""
    change(state)
    hand_over(state, AS_NOBODY)
    assert owners(state) == left


@as_root
def test_a_folder_is_handed_over_beside_states_set_aside_and_a_disks_own_folder(
    state: Path,
) -> None:
    """They stay root's, because the daemon has no use for them."""
    (state / "state.unusable-1").write_text("x")
    (state / "lost+found").mkdir()
    hand_over(state, AS_NOBODY)
    assert state.stat().st_uid == NOBODY.pw_uid
    assert (state / "state.unusable-1").stat().st_uid == 0


@as_root
def test_links_are_not_followed(state: Path, tmp_path: Path) -> None:
    other = tmp_path / "shadow"
    other.write_text("x")
    (state / "state").unlink()
    (state / "state").symlink_to(other)
    link = tmp_path / "link"
    link.symlink_to(state)
    hand_over(link, AS_NOBODY)
    assert state.stat().st_uid == 0
    hand_over(state, AS_NOBODY)
    assert (state.stat().st_uid, other.stat().st_uid) == (NOBODY.pw_uid, 0)


@as_root
def test_a_folder_that_is_not_there_is_left_to_the_store(tmp_path: Path) -> None:
    hand_over(tmp_path / "none", AS_NOBODY)


@as_root
def test_a_folder_that_cannot_be_given_is_refused(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a file system that has no owners."""

    def chown(*_: object, **__: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "chown", chown)
    assert refusal(lambda: hand_over(state, AS_NOBODY)) == (
        f"the state folder {state} cannot be given to nobody: Operation not permitted"
    )


# --- a whole daemon


@pytest.fixture
def daemon() -> Daemon:
    """A daemon to be started as root in a folder that its user can enter."""
    daemon = Daemon("--user", "nobody", fresh=True)
    daemon.folder.chmod(0o755)
    return daemon


@as_root
@pytest.mark.system
def test_a_daemon_started_by_root_serves_saves_and_stops_as_the_user(daemon: Daemon) -> None:
    with daemon, daemon.connect() as connection:
        block = connection.call("take", "utc", 5)
        status = Path(f"/proc/{daemon.process.pid}/status").read_text()
        assert f"Uid:\t{NOBODY.pw_uid}\t{NOBODY.pw_uid}\t{NOBODY.pw_uid}\t" in status
        assert f"Groups:\t{NOBODY.pw_gid} \n" in status
        assert "CapEff:\t0000000000000000" in status
        assert "NoNewPrivs:\t1" in status
        assert owners(daemon.state) == {NOBODY.pw_uid}
        connection.sock.close()
        assert daemon.stop() == 0
        assert daemon.lines[-1] == "uuidd: INFO: stopped: state saved"
        assert not [said for said in daemon.lines if "running as root" in said]
        kept = decode((daemon.state / "state").read_bytes())
        assert kept.marks[kept.generation] == block["first"] + block["count"]


@as_root
@pytest.mark.system
def test_a_daemon_in_the_background_serves_as_the_user() -> None:
    daemon = Daemon()
    daemon.folder.chmod(0o755)
    with contextlib.ExitStack() as undo:
        undo.callback(shutil.rmtree, daemon.folder)
        options = [f"--socket={daemon.socket}", f"--state={daemon.state}", "--user=nobody"]
        started = [sys.executable, "-m", "uuidd", *options, f"--pid={daemon.folder}/pid"]
        output(*started)
        pid = int((daemon.folder / "pid").read_text())
        pidfd = os.pidfd_open(pid)
        undo.callback(os.close, pidfd)
        undo.callback(signal.pidfd_send_signal, pidfd, signal.SIGKILL)
        with Connection(daemon.socket) as connection:
            assert connection.call("take", "utc", 1)["count"] == 1


@as_root
@pytest.mark.system
def test_a_daemon_of_root_goes_on_as_the_user(daemon: Daemon) -> None:
    daemon.arguments = []
    with daemon:
        assert [said for said in daemon.lines if "running as root, which is not needed" in said]
        node = daemon.call("take", "utc", 1)["node"]
        assert owners(daemon.state) == {0}
        daemon.kill()
        (daemon.state / "state.new").write_text("torn")
        daemon.arguments = ["--user", "nobody"]
        for _ in range(2):
            # What root left in its folder would keep the user from listening there.
            daemon.start()
            assert daemon.call("take", "utc", 1)["node"] == node
            assert daemon.stop() == 0
        assert owners(daemon.state) == {NOBODY.pw_uid}


@as_root
@pytest.mark.system
def test_a_refused_start_removes_as_root_what_it_made_as_root(place: Path) -> None:
    """Socket and pid file, though the state was to be saved as the user."""
    state = place / "state"
    (state / "state.new").mkdir(parents=True)
    before = sorted(place.rglob("*"))
    start = [sys.executable, "-m", "uuidd", "-F", f"-p{place / 'pid'}", f"-s{place / 's'}"]
    done = run(*start, f"--state={state}", "--user", "nobody")
    assert (done.returncode, done.stdout) == (1, "")
    assert sorted(place.rglob("*")) == before
    assert done.stderr == f"uuidd: {state}/state.new is not a plain file; remove it\n"


@pytest.mark.process
@as_root
def test_acting_as_a_user_ends_as_root(place: Path) -> None:
    secret = place / "secret"
    secret.touch(0o600)
    code = f"""
import os
from pathlib import Path
from uuidd.privileges import acting_as, user
os.setgroups([0, 4])
os.chown({str(place)!r}, {NOBODY.pw_uid}, -1)
with acting_as(user("nobody")):
    print(os.geteuid(), os.getegid(), os.getgroups())
    Path({str(place)!r}, "made").touch()
    print(os.access({str(secret)!r}, os.R_OK, effective_ids=True))
print(os.getresuid(), os.getresgid(), os.getgroups())
"""
    uid, gid = NOBODY.pw_uid, NOBODY.pw_gid
    assert child(code) == [f"{uid} {gid} [{gid}]", "False", "(0, 0, 0) (0, 0, 0) [0, 4]"]
    assert (place / "made").stat().st_uid == uid


@pytest.mark.process
@as_root
def test_root_without_the_right_to_change_cannot_act_as_a_user() -> None:
    """As in a container that dropped CAP_SETUID: in a line, not half changed."""
    code = """
import os
from uuidd.privileges import acting_as, user
from uuidd.refused import Refused
try:
    with acting_as(user("nobody")):
        print("acted")
except Refused as refused:
    print(refused)
print(os.getresuid(), os.getresgid())
"""
    assert child(code, need("setpriv"), *WITHOUT_SETUID) == [
        "uuidd cannot act as user 'nobody': Operation not permitted; let it have CAP_SETUID and"
        " CAP_SETGID, or start it as that user",
        "(0, 0, 0) (0, 0, 0)",
    ]
