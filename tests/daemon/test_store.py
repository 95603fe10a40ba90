from __future__ import annotations

import errno
import fcntl
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.daemon.test_statefile import NEXT, STATE, signed
from tests.tools import need, run, with_own_mounts
from uuidd.core.ids.snowflake import EPOCH_BITS
from uuidd.core.timeline.state import State
from uuidd.refused import Refused
from uuidd.statefile import FORMAT, decode, encode
from uuidd.store import FolderStore


@contextmanager
def opened(folder: Path, machine: str = "here") -> Iterator[FolderStore]:
    """A store of *folder*, closed again at the end."""
    store = FolderStore(folder, machine=machine)
    try:
        yield store
    finally:
        store.close()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[FolderStore]:
    """A store of an empty folder."""
    with opened(tmp_path) as store:
        yield store


def names(folder: Path) -> set[str]:
    """Return what is in *folder*, but for the lock."""
    return {path.name for path in folder.iterdir()} - {"lock"}


def refusal(folder: Path) -> str:
    """Return the line with which *folder* is refused as a store."""
    with pytest.raises(Refused) as caught:
        FolderStore(folder, machine="here")
    line = str(caught.value)
    assert "\n" not in line
    return line


# --- round trips


def test_the_last_save_counts(store: FolderStore) -> None:
    store.save(STATE)
    store.save(NEXT)
    assert store.load() == NEXT
    assert names(store.folder) == {"state"}


def test_a_state_with_every_mark_comes_back(store: FolderStore) -> None:
    marks = dict.fromkeys(range(64), 2**60 - 1)
    epochs = dict.fromkeys(range(1024), 2**EPOCH_BITS - 1)
    full = State(STATE.node, "here", 0, marks, 0, 0, epochs)
    store.save(full)
    assert store.load() == full


def test_the_file_can_be_read_by_all(store: FolderStore) -> None:
    """It holds no secret, and its owner alone may write it."""
    store.save(STATE)
    assert (store.folder / "state").stat().st_mode & 0o777 == 0o644 & ~_umask()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


# --- files that cannot be used


DAMAGED = {
    **{f"torn at {end}": encode(STATE)[:end] for end in (0, 1, 40, 90, 91, 200, -1)},
    "without fields": signed(b"{}"),
    "zeros": b"\0" * 500,
}


@pytest.mark.parametrize("used", [True, False])
@pytest.mark.parametrize("data", DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_file_is_set_aside(tmp_path: Path, used: bool, data: bytes) -> None:
    if used:
        save(tmp_path)
    (tmp_path / "state").write_bytes(data)
    assert load(tmp_path) == (False, True)
    assert (tmp_path / "state.unusable-1").read_bytes() == data


def test_a_newer_file_is_set_aside(store: FolderStore) -> None:
    newer = signed(b"{}\n", version=FORMAT + 1)
    (store.folder / "state").write_bytes(newer)
    assert store.load() is None
    assert store.lost
    assert store.set_aside == (
        f"it has format '{FORMAT + 1}', and this version reads format {FORMAT};"
        " set aside as state.unusable-1"
    )
    assert (store.folder / "state.unusable-1").read_bytes() == newer


def test_another_hosts_file_is_set_aside(tmp_path: Path) -> None:
    with opened(tmp_path, machine="there") as store:
        store.save(State(STATE.node, "there", 51, STATE.marks, 0, 0))
    with opened(tmp_path) as store:
        assert store.load() is None
        assert store.set_aside == (
            "it is of another host (machine-id differs); set aside as state.unusable-1"
        )
        assert store.lost
    assert names(tmp_path) == {"state.unusable-1"}


def test_a_file_too_long_to_be_a_state_is_not_read_whole(store: FolderStore) -> None:
    path = store.folder / "state"
    path.write_bytes(encode(STATE))
    os.truncate(path, 1 << 40)
    assert store.load() is None
    assert (store.folder / "state.unusable-1").stat().st_size == 1 << 40


def test_a_file_is_set_aside_under_a_free_name(store: FolderStore) -> None:
    (store.folder / "state.unusable-1").write_bytes(b"first")
    (store.folder / "state.unusable-2").mkdir()
    (store.folder / "state").write_bytes(b"third")
    store.load()
    assert (store.folder / "state.unusable-1").read_bytes() == b"first"
    assert (store.folder / "state.unusable-3").read_bytes() == b"third"
    assert store.set_aside is not None
    assert store.set_aside.endswith("set aside as state.unusable-3")


def broken(*_: object, **__: object) -> Any:
    """Fail as a broken disk does."""
    raise OSError(errno.EIO, "Input/output error")


def load_error(store: FolderStore) -> str:
    """Return the error of a load that fails, without the path of the state with which it begins."""
    with pytest.raises(Refused) as caught:
        store.load()
    path = store.folder / "state"
    assert str(caught.value).startswith(f"{path} ")
    return str(caught.value).removeprefix(f"{path} ")


def test_a_state_that_cannot_be_read_is_an_error(
    store: FolderStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What cannot be read is not taken for lost: the error says what and why in a line."""
    path = store.folder / "state"
    path.write_bytes(b"kept")
    with monkeypatch.context() as patched:
        patched.setattr(os, "open", broken)
        assert load_error(store) == "cannot be read: Input/output error"
    assert path.read_bytes() == b"kept"


@pytest.mark.parametrize(
    ("put", "line"),
    [
        # Who waits for a writer waits for ever.
        (os.mkfifo, "is not a plain file; remove it"),
        # The state would be another's file.
        *(
            (
                lambda path, to=to: path.symlink_to(to),
                "cannot be read: Too many levels of symbolic links",
            )
            for to in ("/", "/etc/passwd", "nowhere")
        ),
    ],
)
def test_what_is_no_plain_file_is_no_state(
    store: FolderStore, put: Callable[[Path], None], line: str
) -> None:
    put(store.folder / "state")
    assert load_error(store) == line


def test_a_file_that_cannot_be_set_aside_is_an_error(
    store: FolderStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An unusable file that cannot be renamed stays, and the error says so in a line."""
    path = store.folder / "state"
    path.write_bytes(b"garbage")
    monkeypatch.setattr(os, "rename", broken)
    assert load_error(store) == "is unusable, and cannot be renamed: Input/output error"
    assert path.read_bytes() == b"garbage"


# --- the lock


def test_a_longer_pid_in_the_lock_is_written_over(tmp_path: Path) -> None:
    (tmp_path / "lock").write_text("4194304999\n")
    with opened(tmp_path):
        assert int((tmp_path / "lock").read_text()) == os.getpid()


HOLDER = """
import sys
from pathlib import Path
from uuidd.store import FolderStore
store = FolderStore(Path(sys.argv[1]), machine="here")
print("locked", flush=True)
sys.stdin.read()
"""


@contextmanager
def held_by_another(folder: Path) -> Iterator[int]:
    """The pid of another process, which holds *folder* until the end."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin
        assert process.stdout
        try:
            assert process.stdout.readline() == b"locked\n"
            yield process.pid
        finally:
            process.kill()


@pytest.mark.process
def test_a_refused_daemon_leaves_the_holders_pid_and_no_descriptor(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with held_by_another(tmp_path) as pid:
        before = len(os.listdir("/proc/self/fd"))
        assert refusal(tmp_path) == (
            f"the state folder {tmp_path} is in use by the uuidd with pid {pid};"
            " stop that one, or name another folder with --state"
        )
        assert int((tmp_path / "lock").read_text()) == pid
        for folder in (tmp_path / "file", tmp_path / "missing"):
            refusal(folder)
        assert len(os.listdir("/proc/self/fd")) == before


def test_a_lock_that_is_a_link_is_refused(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (tmp_path / "lock").symlink_to(victim)
    assert refusal(tmp_path) == f"{tmp_path}/lock is not a plain file; remove it"
    assert victim.read_text() == "mine"


# --- folders that cannot serve, and whose they are


def with_mode(mode: int) -> Callable[[Path], object]:
    """Return what changes the mode of a folder."""
    return lambda folder: folder.chmod(mode)


def file_instead(folder: Path) -> None:
    """Put a file in the place of a folder."""
    folder.rmdir()
    folder.touch()


REFUSED: list[tuple[Callable[[Path], object], str]] = [
    (Path.rmdir, "does not exist; create it, or name another with --state"),
    (file_instead, "cannot be opened: Not a directory; name another with --state"),
    # Whoever can write to it can put another state in place.
    *(
        (
            with_mode(mode),
            f"can be written to by others (mode {mode:04o}); chmod go-w it, or name another with"
            " --state",
        )
        for mode in (0o775, 0o757, 0o777, 0o1777, 0o2775, 0o770)
    ),
]


@pytest.mark.parametrize(("broke", "line"), REFUSED)
def test_a_folder_that_cannot_serve_is_refused(
    tmp_path: Path, broke: Callable[[Path], object], line: str
) -> None:
    folder = tmp_path / "state"
    folder.mkdir()
    broke(folder)
    before = sorted(tmp_path.rglob("*"))
    assert refusal(folder) == f"the state folder {folder} {line}"
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("owner", "opener", "refused"),
    [(0, 4713, False), (4712, 4712, False), (4712, 4713, True), (4711, 0, True)],
)
def test_another_owner_is_found_by_who_opens_it(
    owner: int, opener: int, refused: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The owner could change the state at any time, also under root."""
    tmp_path.chmod(0o755)
    real, found = os.fstat, tmp_path.stat()

    def fstat(fd: int) -> os.stat_result:
        told = real(fd)
        # What it makes in the folder is its own.
        whose = owner if told.st_ino == found.st_ino else opener
        return os.stat_result([*told[:4], whose, *told[5:]])

    monkeypatch.setattr(os, "fstat", fstat)
    monkeypatch.setattr(os, "geteuid", lambda: opener)
    if refused:
        assert refusal(tmp_path) == (
            f"the state folder {tmp_path} belongs to uid {owner}, and this is uid {opener}; start"
            f" with --user, chown it to uid {opener}, or name another with --state"
        )
        assert names(tmp_path) == set()
    else:
        with opened(tmp_path):
            assert (tmp_path / "lock").exists()


@pytest.mark.parametrize("mode", [0o666, 0o664, 0o646])
def test_a_state_that_others_can_write_to_is_refused(store: FolderStore, mode: int) -> None:
    """Whoever can write to it can set its marks back; it stays as it is."""
    store.save(STATE)
    path = store.folder / "state"
    path.chmod(mode)
    assert load_error(store) == (
        f"can be written to by others (mode {mode:04o}); see that its content is the daemon's, and"
        " chmod go-w it"
    )
    path.chmod(0o644)
    assert store.load() == STATE


@pytest.mark.parametrize("mode", [0o700, 0o755, 0o750, 0o2755, 0o1755])
def test_a_folder_that_others_can_only_read_is_used(tmp_path: Path, mode: int) -> None:
    """The state is no secret."""
    tmp_path.chmod(mode)
    with opened(tmp_path) as store:
        store.save(STATE)
        assert store.load() == STATE


def on_tmpfs(folder: Path, size: str, script: str) -> list[str]:
    """Run *script* with *folder* a small tmpfs of its own; return the lines that it prints."""
    mount = f'{need("mount")} -t tmpfs -o mode=0755,size={size} none "$1" && exec "$2" -c "$3" "$1"'
    command = "sh", "-c", mount, "sh", folder, sys.executable, TMPFS + script
    done = run(*with_own_mounts(*command))
    assert done.stderr == ""
    return done.stdout.splitlines()


TMPFS = """
import sys
from pathlib import Path
from tests.daemon.test_statefile import NEXT, STATE
from uuidd.refused import Refused
from uuidd.store import FolderStore
folder = Path(sys.argv[1])
def fill():
    with open(folder / "full", "wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            pass
def refused(act):
    try:
        act()
    except (OSError, Refused) as error:
        print(type(error).__name__, error)
def names():
    print(*sorted(path.name for path in folder.iterdir()))
"""


@pytest.mark.process
def test_a_full_disk_leaves_the_old_state(tmp_path: Path) -> None:
    script = """
store = FolderStore(folder, machine="here"); store.save(STATE)
fill()
refused(lambda: store.save(NEXT))
print(store.load() == STATE)
names()
(folder / "full").unlink()
store.save(NEXT)
print(store.load() == NEXT)
"""
    assert on_tmpfs(tmp_path, "64k", script) == [
        "OSError [Errno 28] No space left on device",
        "True",
        "full lock state",
        "True",
    ]


@pytest.mark.process
def test_a_full_folder_is_locked(tmp_path: Path) -> None:
    script = """
fill()
store = FolderStore(folder, machine="here")
refused(lambda: FolderStore(folder, machine="here"))
print(store.load())
store.close()
names()
"""
    assert on_tmpfs(tmp_path, "64k", script) == [
        f"Refused the state folder {tmp_path} is in use by the uuidd with pid unknown; stop that"
        " one, or name another folder with --state",
        "None",
        "full",
    ]


# --- how a save is made safe


def target(fd: int) -> Path:
    """Return what a descriptor is open on."""
    return Path(os.readlink(f"/proc/self/fd/{fd}"))


def fail_at(
    monkeypatch: pytest.MonkeyPatch, name: str, act: Callable[[], None]
) -> list[tuple[str, str]]:
    """Do *act* before the fsync of the file or folder *name*; return the calls as they come."""
    calls: list[tuple[str, str]] = []
    fsync, rename = os.fsync, os.rename

    def recorded_fsync(fd: int) -> None:
        calls.append(("fsync", target(fd).name))
        if target(fd).name == name:
            act()
        fsync(fd)

    def recorded_rename(old: str, new: str, *, src_dir_fd: int, dst_dir_fd: int) -> None:
        calls.append(("rename", f"{old} {new}"))
        rename(old, new, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)

    monkeypatch.setattr(os, "fsync", recorded_fsync)
    monkeypatch.setattr(os, "rename", recorded_rename)
    return calls


def test_a_save_syncs_renames_and_syncs_the_folder(
    store: FolderStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file is on the disk before it gets its name, and the name before the save is done."""
    calls = fail_at(monkeypatch, "", lambda: None)
    store.save(STATE)
    assert calls == [
        ("fsync", "state.new"),
        ("rename", "state.new state"),
        ("fsync", store.folder.name),
    ]


def test_what_is_synced_is_the_whole_file(
    store: FolderStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of the file has left the process when it is synced, and the old one still stands."""
    store.save(STATE)
    seen: list[State] = []

    def look() -> None:
        seen.append(decode((store.folder / "state.new").read_bytes()))
        seen.append(decode((store.folder / "state").read_bytes()))

    fail_at(monkeypatch, "state.new", look)
    store.save(NEXT)
    assert seen == [NEXT, STATE]


def test_what_fails_before_the_rename_leaves_the_old_state(
    store: FolderStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that may not be on the disk does not get its name."""
    store.save(STATE)
    for name in ("open", "fsync", "rename"):
        with monkeypatch.context() as patched:
            calls = fail_at(patched, "", lambda: None)
            patched.setattr(os, name, broken)
            with pytest.raises(OSError, match="Input/output error"):
                store.save(NEXT)
            assert ("rename", "state.new state") not in calls
        assert store.load() == STATE
        assert names(store.folder) == {"state"}


def test_a_failed_sync_of_the_folder_is_an_error(
    store: FolderStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name that may not be on the disk is no completed save, although the new state is seen."""
    store.save(STATE)
    fail_at(monkeypatch, store.folder.name, broken)
    with pytest.raises(OSError, match="Input/output error"):
        store.save(NEXT)
    assert store.load() == NEXT


@pytest.mark.parametrize("name", ["state.new", "folder"])
def test_a_failed_save_does_not_keep_the_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    with monkeypatch.context() as patched, opened(folder) as store:
        fail_at(patched, name, broken)
        with pytest.raises(OSError, match="Input/output error"):
            store.save(STATE)
    with opened(folder):
        pass


def test_what_a_killed_save_left_is_written_over(tmp_path: Path) -> None:
    (tmp_path / "state.new").write_bytes(bytes(100_000))
    with opened(tmp_path) as store:
        assert store.load() is None
        store.save(STATE)
        assert store.load() == STATE
    assert names(tmp_path) == {"state"}


def test_a_temporary_file_that_is_a_link_is_not_followed(store: FolderStore) -> None:
    victim = store.folder / "victim"
    victim.write_text("mine")
    (store.folder / "state.new").symlink_to(victim)
    with pytest.raises(OSError, match="symbolic links"):
        store.save(STATE)
    assert victim.read_text() == "mine"
    store.save(STATE)
    assert store.load() == STATE


@pytest.mark.parametrize("name", ["state.new", "folder"])
def test_close_keeps_the_lock_while_a_save_hangs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """What hangs may yet come: nobody else gets the folder, during the save or after it."""
    folder = tmp_path / "folder"
    folder.mkdir()
    hangs, resume = threading.Event(), threading.Event()

    def hang() -> None:
        hangs.set()
        resume.wait()

    fail_at(monkeypatch, name, hang)
    with opened(folder) as store:
        thread = threading.Thread(target=store.save, args=[STATE])
        thread.start()
        try:
            hangs.wait()
            store.close()
            assert "is in use by" in refusal(folder)
        finally:
            resume.set()
            thread.join()
        assert "is in use by" in refusal(folder)
        assert store.load() == STATE


# --- what is lost


def load(folder: Path, machine: str = "here") -> tuple[bool, bool]:
    """Return whether *folder* has a state that can be used, and whether one was lost."""
    with opened(folder, machine) as store:
        assert store.lost is False
        return store.load() is not None, store.lost


def save(folder: Path) -> None:
    """Use *folder* as a daemon does."""
    with opened(folder) as store:
        assert store.load() is None
        store.save(STATE)


def test_only_a_state_that_is_gone_from_a_used_folder_is_lost(tmp_path: Path) -> None:
    assert load(tmp_path) == (False, False)
    for _ in range(2):
        save(tmp_path)
        assert load(tmp_path) == load(tmp_path) == (True, False)
        (tmp_path / "state").unlink()
        assert load(tmp_path) == (False, True)


def test_a_start_that_saved_nothing_leaves_an_unused_folder(tmp_path: Path) -> None:
    """Nothing was given out before the first save, so nothing is lost, and no lock file stays."""
    with opened(tmp_path) as store:
        store.load()
    assert list(tmp_path.iterdir()) == []
    assert load(tmp_path) == (False, False)


def test_a_start_that_was_killed_before_it_saved_counts_as_lost(tmp_path: Path) -> None:
    """The lock file of a process that could not remove it may be that of a used folder."""
    (tmp_path / "lock").touch(0o600)
    assert load(tmp_path) == (False, True)


def test_a_start_that_lost_its_state_keeps_the_lock_file(tmp_path: Path) -> None:
    (tmp_path / "state").write_bytes(b"damaged")
    assert load(tmp_path) == (False, True)
    assert load(tmp_path) == (False, True)


def test_a_lock_file_that_is_removed_meanwhile_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lock on a file that has lost its name would keep nobody else out."""
    flock = fcntl.flock
    removed: list[int] = []

    def removes_once(fd: int, how: int) -> None:
        if not removed:
            removed.append(fd)
            (tmp_path / "lock").unlink()
        flock(fd, how)

    monkeypatch.setattr(fcntl, "flock", removes_once)
    with opened(tmp_path):
        assert "is in use by" in refusal(tmp_path)


@pytest.mark.parametrize(("before", "after"), [("", "here"), ("here", ""), ("", "")])
def test_a_host_that_is_not_known_is_no_other(tmp_path: Path, before: str, after: str) -> None:
    """A machine-id may appear after the first start, or not be seen from a container."""
    with opened(tmp_path, before) as store:
        store.save(replace(STATE, machine=before))
    assert load(tmp_path, after) == (True, False)
