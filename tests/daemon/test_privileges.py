"""Giving up root: what is left of it (nothing), and whose the state is."""

from __future__ import annotations

import contextlib
import errno
import os
import pwd
import select
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.daemon.test_statefile import kept
from tests.rig import PATIENCE, Connection, Daemon
from tests.tools import failing, need, output, refusal, run
from uuidd import privileges
from uuidd.privileges import User, hand_over, user

NOBODY = pwd.getpwnam("nobody")
UID, GID = NOBODY.pw_uid, NOBODY.pw_gid
AS_NOBODY = User("nobody", UID, GID)

as_root = pytest.mark.usefixtures("as_root")

WITHOUT_SETUID = ("--bounding-set=-setuid,-setgid", "--inh-caps=-setuid,-setgid")
"""Options of setpriv, by which root cannot change its user."""


def child(code: str, *before: str) -> list[str]:
    """Return the lines that a process of its own prints, whose user changes for good."""
    done = run(*before, sys.executable, "-c", PRELUDE + code, cwd=Path(__file__).parents[2])
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


ACT = """
try:
    with acting_as(nobody):
        print("acted")
except Refused as refused:
    print(refused)
"""

KEPT = "user 'nobody' would keep privileges (capabilities "

PRELUDE = """
import os, threading
from pathlib import Path
from uuidd.privileges import acting_as, become, user
from uuidd.refused import Refused
nobody = user("nobody")
"""


def test_a_user_is_known_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert user("nobody") == AS_NOBODY


@pytest.mark.parametrize(
    ("name", "uid", "why"),
    [
        *(
            (name, 0, "there is no such user; create it, or name another")
            for name in ("no-such-user", "0", "no\0body", "n\nx")
        ),
        ("root", 0, "that is root; name a user without privileges"),
        (
            *("nobody", 4711),
            "only root can become another user, and this is uid 4711; start as root, or without"
            " --user",
        ),
    ],
)
def test_a_user_that_the_daemon_cannot_become_is_refused(
    monkeypatch: pytest.MonkeyPatch, name: str, uid: int, why: str
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: uid)
    assert refusal(user, name) == f"--user {name!r}: {why}"


def test_a_process_of_that_user_may_name_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: UID)
    monkeypatch.setattr(os, "getuid", lambda: UID)
    found = user("nobody")
    monkeypatch.setattr(os, "setresuid", None)
    privileges.become(found)


@pytest.mark.process
@as_root
def test_nothing_of_roots_is_left() -> None:
    """In no thread."""
    ids, thread, *lines = child("""
go = threading.Event()
def look():
    go.wait()
    print(os.getresuid(), open("/proc/thread-self/status").read().split("CapEff:")[1].split()[0])
thread = threading.Thread(target=look)
thread.start()
os.setgroups([0, 4])
become(nobody)
print(os.getresuid(), os.getresgid(), os.getgroups())
go.set()
thread.join()
back = ("setuid", 0), ("seteuid", 0), ("setgid", 0), ("setegid", 0), ("setgroups", [0])
for name, *given in (*back, ("setresuid", 0, 0, 0)):
    try:
        getattr(os, name)(*given)
    except PermissionError:
        print("refused")
print(open('/proc/self/status').read())
""")
    assert ids == f"{(UID,) * 3} {(GID,) * 3} {[GID]}"
    assert thread == f"{(UID,) * 3} {0:016x}"
    assert lines[:6] == ["refused"] * 6
    found = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
    assert [int(found[name], 16) for name in ("CapPrm", "CapEff", "CapAmb")] == [0, 0, 0]
    assert found["NoNewPrivs"] == "1"


@pytest.mark.process
@as_root
@pytest.mark.parametrize(
    ("started", "why"),
    [
        (WITHOUT_SETUID, "--user 'nobody': Operation not permitted"),
        (("--securebits=+no_setuid_fixup",), KEPT),
    ],
    ids=["without CAP_SETUID", "with capabilities that stay"],
)
def test_a_change_that_fails_or_leaves_privileges_is_refused(
    started: tuple[str, ...], why: str
) -> None:
    """A container may drop CAP_SETUID, and securebits keep capabilities."""
    code = "try:\n    become(nobody)\nexcept Refused as refused:\n    print(refused)\n"
    (line,) = child(code, need("setpriv"), *started)
    assert line.startswith(why)


@pytest.mark.process
@as_root
def test_acting_as_a_user_ends_as_root(place: Path) -> None:
    (place / "secret").touch(0o600)
    os.chown(place, UID, -1)
    code = f"""
os.chdir({str(place)!r})
os.setgroups([0, 4])
with acting_as(nobody):
    print(os.geteuid(), os.getegid(), os.getgroups())
    Path("made").touch()
    print(os.access("secret", os.R_OK, effective_ids=True))
print(os.getresuid(), os.getresgid(), os.getgroups())
"""
    assert child(code) == [f"{UID} {GID} [{GID}]", "False", "(0, 0, 0) (0, 0, 0) [0, 4]"]
    assert (place / "made").stat().st_uid == UID


@pytest.mark.process
@as_root
def test_a_user_as_whom_root_acts_has_no_rights_of_roots() -> None:
    (line,) = child(ACT, need("setpriv"), "--securebits=+no_setuid_fixup")
    assert line.startswith(KEPT)


@pytest.mark.process
@as_root
def test_root_without_the_right_to_change_cannot_act_as_a_user() -> None:
    """As in a container that dropped CAP_SETUID: not half changed."""
    code = ACT + "print(os.getresuid(), os.getresgid())"
    assert child(code, need("setpriv"), *WITHOUT_SETUID) == [
        "uuidd cannot act as user 'nobody': Operation not permitted; let it have CAP_SETUID and"
        " CAP_SETGID, or start it as that user",
        "(0, 0, 0) (0, 0, 0)",
    ]


@pytest.fixture
def state(place: Path) -> Path:
    """A state folder of root's, with what a killed save left, that all users can reach."""
    folder = place / "state"
    folder.mkdir(mode=0o755)
    for name in ("state", "lock", "state.new"):
        (folder / name).write_text("x")
    return folder


def owners(folder: Path) -> set[int]:
    return {path.lstat().st_uid for path in (folder, *folder.iterdir())}


@as_root
def test_roots_own_folder_is_handed_over(state: Path) -> None:
    for _ in range(2):
        hand_over(state, AS_NOBODY)
        assert owners(state) == {UID}
        assert (state.stat().st_mode, state.stat().st_gid) == (0o40755, GID)


@as_root
@pytest.mark.parametrize(
    ("change", "left"),
    [
        (lambda state: os.chown(state, 4711, 4711), {0, 4711}),
        *((lambda state, mode=mode: state.chmod(mode), {0}) for mode in (0o775, 0o757, 0o1777)),
        # As /var/lib has, by a slip.
        (lambda state: (state / "systemd").mkdir(), {0}),
    ],
    ids=["another's", "group writes", "others write", "sticky", "has more"],
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
    assert state.stat().st_uid == UID
    assert (state / "state.unusable-1").stat().st_uid == 0


@as_root
def test_who_only_looks_hands_nothing_over(state: Path) -> None:
    assert hand_over(state, AS_NOBODY, looking=True)
    assert owners(state) == {0}


@as_root
def test_nobody_but_root_hands_over(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: UID)
    assert not hand_over(state, AS_NOBODY)


@as_root
def test_links_are_not_followed(state: Path, tmp_path: Path) -> None:
    # The user could go on with a link in a folder that the user can reach.
    other, link = tmp_path / "shadow", state.with_name("link")
    other.write_text("x")
    (state / "state").unlink()
    (state / "state").symlink_to(other)
    link.symlink_to(state)
    hand_over(link, AS_NOBODY)
    assert state.stat().st_uid == 0
    hand_over(state, AS_NOBODY)
    assert (state.stat().st_uid, other.stat().st_uid) == (UID, 0)


@as_root
def test_a_folder_that_is_not_there_is_left_to_the_store(tmp_path: Path) -> None:
    hand_over(tmp_path / "none", AS_NOBODY)


@as_root
def test_a_folder_that_cannot_be_given_is_refused(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a file system that has no owners."""
    monkeypatch.setattr(os, "chown", failing(errno.EPERM))
    assert refusal(hand_over, state, AS_NOBODY) == (
        f"the state folder {state} cannot be given to nobody: Operation not permitted; chown"
        f" it, and what is in it, to uid {UID}"
    )


@as_root
@pytest.mark.system
def test_a_daemon_in_the_background_serves_as_the_user() -> None:
    daemon = Daemon()
    daemon.folder.chmod(0o755)
    with contextlib.ExitStack() as undo:
        undo.callback(daemon.__exit__)
        options = [f"--socket={daemon.socket}", f"--state={daemon.state}", "--user=nobody"]
        started = [sys.executable, "-m", "uuidd", *options, f"--pid={daemon.folder}/pid"]
        output(*started)
        pid = int((daemon.folder / "pid").read_text())
        pidfd = os.pidfd_open(pid)
        undo.callback(os.close, pidfd)
        undo.callback(select.select, [pidfd], [], [], PATIENCE)
        undo.callback(signal.pidfd_send_signal, pidfd, signal.SIGKILL)
        with Connection(daemon.socket) as connection:
            assert connection.call("take", "utc", 1)["count"] == 1


@as_root
@pytest.mark.system
def test_a_daemon_of_root_goes_on_serves_saves_and_stops_as_the_user() -> None:
    with Daemon(fresh=True) as daemon:
        daemon.folder.chmod(0o755)
        assert [said for said in daemon.lines if "running as root, which is not needed" in said]
        node = daemon.call("take", "utc", 1)["node"]
        assert owners(daemon.state) == {0}
        daemon.kill()
        (daemon.state / "state.new").write_text("torn")
        daemon.arguments = ["--user", "nobody"]
        daemon.lines.clear()
        for _ in range(2):
            # What root left in its folder would keep the user from listening there.
            daemon.start()
            block = daemon.call("take", "utc", 5)
            assert block["node"] == node
            status = Path(f"/proc/{daemon.process.pid}/status").read_text()
            assert f"Uid:\t{UID}\t{UID}\t{UID}\t" in status
            assert f"Groups:\t{GID} \n" in status
            assert "CapEff:\t0000000000000000" in status
            assert "NoNewPrivs:\t1" in status
            assert daemon.stop() == 0
            state = kept(daemon.state)
            assert state.marks[state.generation] == block["first"] + block["count"]
        assert owners(daemon.state) == {UID}
        assert daemon.lines[-1] == "uuidd: INFO: stopped: state saved"
        assert not [said for said in daemon.lines if "running as root" in said]


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
