from __future__ import annotations

import errno
import fcntl
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from tests.daemon.test_statefile import NEXT, STATE, signed
from tests.tools import descriptors, failing, need_root, refusal
from uuidd.core.ids.snowflake import EPOCH_BITS
from uuidd.core.timeline.state import State
from uuidd.statefile import FORMAT, decode, encode
from uuidd.store import FolderStore, check_store

Put = Callable[[Path], object]


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
    with opened(tmp_path) as store:
        yield store


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} - {"lock"}


def refused(folder: Path) -> str:
    return refusal(FolderStore, folder, machine="here")


def save(folder: Path) -> None:
    with opened(folder) as store:
        assert store.load() is None
        store.save(STATE)


def load(folder: Path, machine: str = "here") -> tuple[bool, bool]:
    """Return whether *folder* has a state that can be used, and whether one was lost."""
    with opened(folder, machine) as store:
        assert store.lost is False
        return store.load() is not None, store.lost


def put_state(path: Path) -> None:
    path.write_bytes(encode(STATE))


def link_to(target: str) -> Put:
    return lambda path: path.symlink_to(target)


def with_mode(mode: int) -> Put:
    return lambda path: path.chmod(mode)


def each(*puts: Put) -> Put:
    """Return what does all of these, one after the other."""

    def put(path: Path) -> None:
        for one in puts:
            one(path)

    return put


def test_the_last_save_counts_and_all_may_read_it(store: FolderStore) -> None:
    umask = os.umask(0o022)
    try:
        store.save(STATE)
        store.save(NEXT)
    finally:
        os.umask(umask)
    assert store.load() == NEXT
    assert names(store.folder) == {"state"}
    assert (store.folder / "state").stat().st_mode & 0o777 == 0o644


def test_a_state_with_every_mark_comes_back(store: FolderStore) -> None:
    marks = dict.fromkeys(range(64), 2**60 - 1)
    epochs = dict.fromkeys(range(1024), 2**EPOCH_BITS - 1)
    full = State(STATE.node, "here", 0, marks, 0, 0, epochs)
    store.save(full)
    assert store.load() == full


@pytest.mark.parametrize("used", [False, True])
@pytest.mark.parametrize(
    ("put", "why"),
    [
        (lambda path: path.write_bytes(encode(STATE)[:-1]), "it is damaged: "),
        (lambda path: path.write_bytes(b""), "it is damaged: "),
        (each(put_state, lambda path: os.truncate(path, 1 << 40)), "it is damaged: "),
        (
            lambda path: path.write_bytes(signed(b"{}\n", version=FORMAT + 1)),
            f"it has format '{FORMAT + 1}', and this version reads format {FORMAT};",
        ),
        (
            lambda path: path.write_bytes(encode(replace(STATE, machine="there"))),
            "it is of another host (machine-id differs);",
        ),
    ],
    ids=["torn", "empty", "too long to be read whole", "newer", "another host's"],
)
def test_a_file_that_cannot_be_used_is_set_aside_and_counts_as_lost(
    tmp_path: Path, used: bool, put: Put, why: str
) -> None:
    """A start that ends before it saves changes nothing of that."""
    if used:
        save(tmp_path)
    path = tmp_path / "state"
    put(path)
    before = path.stat()
    with opened(tmp_path) as store:
        assert (store.load(), store.lost) == (None, True)
        assert store.set_aside is not None
        assert store.set_aside.startswith(why)
        assert store.set_aside.endswith("; set aside as state.unusable-1")
    assert names(tmp_path) == {"state.unusable-1"}
    aside = (tmp_path / "state.unusable-1").stat()
    assert (aside.st_ino, aside.st_size) == (before.st_ino, before.st_size)
    assert load(tmp_path) == (False, True)


def test_a_file_is_set_aside_under_a_free_name(store: FolderStore) -> None:
    (store.folder / "state.unusable-1").write_bytes(b"first")
    (store.folder / "state.unusable-2").mkdir()
    (store.folder / "state").write_bytes(b"third")
    store.load()
    assert (store.folder / "state.unusable-1").read_bytes() == b"first"
    assert (store.folder / "state.unusable-3").read_bytes() == b"third"
    assert store.set_aside is not None
    assert store.set_aside.endswith("set aside as state.unusable-3")


LINK = "cannot be read: Too many levels of symbolic links"


@pytest.mark.parametrize(
    ("put", "fails", "line"),
    [
        (put_state, "open", "cannot be read: Input/output error"),
        (
            lambda path: path.write_bytes(b"garbage"),
            "rename",
            "is unusable, and cannot be renamed: Input/output error",
        ),
        # Who waits for a writer waits for ever.
        (os.mkfifo, "", "is not a plain file; remove it"),
        # The state would be another's file.
        *((link_to(target), "", LINK) for target in ("/", "/etc/passwd", "nowhere")),
        # Whoever can write to it can set its marks back.
        *(
            (
                each(put_state, with_mode(mode)),
                "",
                f"can be written to by others (mode {mode:04o}); see that its content is the"
                " daemon's, and chmod go-w it",
            )
            for mode in (0o666, 0o664, 0o646)
        ),
    ],
)
def test_a_state_that_may_be_good_stays_and_is_an_error(
    store: FolderStore, monkeypatch: pytest.MonkeyPatch, put: Put, fails: str, line: str
) -> None:
    path = store.folder / "state"
    put(path)
    before = path.lstat()
    with monkeypatch.context() as patched:
        if fails:
            patched.setattr(os, fails, failing(errno.EIO))
        assert refusal(store.load) == f"{path} {line}"
    after = path.lstat()
    assert (after.st_ino, after.st_size) == (before.st_ino, before.st_size)
    assert names(store.folder) == {"state"}


def test_a_refused_daemon_leaves_the_holders_pid_and_no_descriptor(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    # A longer pid is written over.
    (tmp_path / "lock").write_text("4194304999\n")
    with opened(tmp_path):
        before = descriptors()
        assert refused(tmp_path) == (
            f"the state folder {tmp_path} is in use by the uuidd with pid {os.getpid()};"
            " stop that one, or name another folder with --state"
        )
        assert int((tmp_path / "lock").read_text()) == os.getpid()
        for folder in (tmp_path / "file", tmp_path / "missing"):
            refused(folder)
        assert os.listdir("/proc/self/fd") == before


def test_a_lock_that_is_a_link_is_refused(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (tmp_path / "lock").symlink_to(victim)
    assert refused(tmp_path) == f"{tmp_path}/lock is not a plain file; remove it"
    assert victim.read_text() == "mine"


def test_a_folder_on_a_full_disk_is_locked_without_a_pid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "pwrite", failing(errno.ENOSPC))
    with opened(tmp_path) as store:
        assert "is in use by the uuidd with pid unknown;" in refused(tmp_path)
        assert store.load() is None
    assert list(tmp_path.iterdir()) == []


def test_a_lock_that_cannot_be_written_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "pwrite", failing(errno.EIO))
    assert refused(tmp_path) == (
        f"the state folder {tmp_path} cannot be written to: Input/output error; mend it, or name"
        " another with --state"
    )
    assert list(tmp_path.iterdir()) == []


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
        assert "is in use by" in refused(tmp_path)


@pytest.mark.parametrize("meanwhile", ["locked", "replaced"])
def test_a_lock_file_that_is_anothers_by_now_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, meanwhile: str
) -> None:
    """Without its name, the lock of that daemon would keep nobody else out."""
    lock, flock = tmp_path / "lock", fcntl.flock

    def comes_second(fd: int, how: int) -> None:
        if meanwhile == "replaced":
            lock.unlink()
            lock.symlink_to("nowhere")
            flock(fd, how)
        else:
            with lock.open() as other:
                flock(other, how)
                flock(fd, how)

    monkeypatch.setattr(fcntl, "flock", comes_second)
    assert ("is in use by" if meanwhile == "locked" else "is not writable") in refused(tmp_path)
    assert os.path.lexists(lock)


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (Path.rmdir, "does not exist; create it, or name another with --state"),
        (
            each(Path.rmdir, Path.touch),
            "cannot be opened: Not a directory; name another with --state",
        ),
        *((with_mode(mode), "") for mode in (0o700, 0o755, 0o750, 0o2755, 0o1755)),
        # Whoever can write to it can put another state in place.
        *(
            (
                with_mode(mode),
                f"can be written to by others (mode {mode:04o}); chmod go-w it, or name another"
                " with --state",
            )
            for mode in (0o775, 0o757, 0o777, 0o1777, 0o2775, 0o770)
        ),
    ],
)
def test_a_folder_that_others_may_change_or_that_is_none_is_refused(
    tmp_path: Path, change: Put, line: str
) -> None:
    folder = tmp_path / "state"
    folder.mkdir()
    change(folder)
    before = sorted(tmp_path.rglob("*"))
    if line:
        assert refused(folder) == f"the state folder {folder} {line}"
        assert sorted(tmp_path.rglob("*")) == before
    else:
        save(folder)
        assert load(folder) == (True, False)


@pytest.mark.parametrize(
    ("owner", "opener", "is_refused"),
    [(0, 4713, False), (4712, 4712, False), (4712, 4713, True), (4711, 0, True)],
)
def test_another_owner_is_found_by_who_opens_it(
    owner: int, opener: int, is_refused: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
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
    if is_refused:
        assert refused(tmp_path) == (
            f"the state folder {tmp_path} belongs to uid {owner}, and this is uid {opener}; start"
            f" with --user, chown it to uid {opener}, or name another with --state"
        )
        assert names(tmp_path) == set()
    else:
        with opened(tmp_path):
            assert (tmp_path / "lock").exists()


@pytest.mark.parametrize(("owner", "opener"), [(0, 4712), (4712, 4712), (4712, 4713)])
def test_a_link_to_the_folder_is_of_root_or_of_who_opens_it(
    owner: int, opener: int, tmp_path: Path
) -> None:
    """Another user could lead the daemon to an older state."""
    need_root()
    link = tmp_path / "link"
    link.symlink_to(tmp_path, target_is_directory=True)
    os.lchown(link, owner, owner)
    os.chown(tmp_path, opener, opener)
    if owner in (0, opener):
        assert check_store(link, "here", opener) is None
    else:
        assert refusal(check_store, link, "here", opener) == (
            f"the state folder {link} is a link that belongs to uid {owner}; remove it, or name"
            " another with --state"
        )


def test_no_other_user_may_open_the_lock_file(tmp_path: Path) -> None:
    """Not even one that was put there: who can open a file can lock it."""
    (tmp_path / "lock").touch(0o644)
    with opened(tmp_path):
        assert (tmp_path / "lock").stat().st_mode & 0o777 == 0o600


def before_step(monkeypatch: pytest.MonkeyPatch, step: str, act: Callable[[], object]) -> list[str]:
    """Do *act* before a step of each save that follows; return the steps as they come.

    The steps are ``write``, ``fsync state.new``, ``rename``, and ``fsync`` of the folder's name.
    """
    steps: list[str] = []
    fsync, rename, real_open = os.fsync, os.rename, os.open

    def comes(name: str) -> None:
        steps.append(name)
        if name == step:
            act()

    def open_(path: str, flags: int, *rest: int, dir_fd: int | None = None) -> int:
        if path == "state.new":
            comes("write")
        return real_open(path, flags, *rest, dir_fd=dir_fd)

    def fsync_(fd: int) -> None:
        comes(f"fsync {Path(os.readlink(f'/proc/self/fd/{fd}')).name}")
        fsync(fd)

    def rename_(old: str, new: str, *, src_dir_fd: int, dst_dir_fd: int) -> None:
        comes("rename")
        rename(old, new, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)

    monkeypatch.setattr(os, "open", open_)
    monkeypatch.setattr(os, "fsync", fsync_)
    monkeypatch.setattr(os, "rename", rename_)
    return steps


def test_what_is_synced_is_the_whole_file(
    store: FolderStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of the file has left the process when it is synced, and the old one still stands."""
    store.save(STATE)
    seen: list[State] = []

    def look() -> None:
        seen.extend(decode((store.folder / name).read_bytes()) for name in ("state.new", "state"))

    before_step(monkeypatch, "fsync state.new", look)
    store.save(NEXT)
    assert seen == [NEXT, STATE]


@pytest.mark.parametrize(
    ("step", "left"),
    [
        ("write", STATE),
        ("fsync state.new", STATE),
        ("rename", STATE),
        # A name that may not be on the disk is no completed save, although the new state is seen.
        ("fsync folder", NEXT),
    ],
)
def test_a_save_that_fails_leaves_a_whole_state_and_no_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, left: State
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    with opened(folder) as store:
        store.save(STATE)
        with monkeypatch.context() as patched:
            before_step(patched, step, failing(errno.EIO))
            with pytest.raises(OSError, match="Input/output error"):
                store.save(NEXT)
        assert store.load() == left
        assert names(folder) == {"state"}
    with opened(folder):
        pass


def test_a_write_that_is_cut_short_leaves_the_old_state(
    store: FolderStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.save(STATE)
    open_ = os.open

    def full(path: str, flags: int, *_: int, dir_fd: int) -> int:
        open_(path, flags, 0o644, dir_fd=dir_fd)
        return open_("/dev/full", os.O_WRONLY)

    with monkeypatch.context() as patched:
        patched.setattr(os, "open", full)
        with pytest.raises(OSError, match="No space left on device"):
            store.save(NEXT)
    assert store.load() == STATE
    assert names(store.folder) == {"state"}


def test_what_a_killed_save_left_is_written_over(tmp_path: Path) -> None:
    (tmp_path / "state.new").write_bytes(bytes(100_000))
    save(tmp_path)
    assert load(tmp_path) == (True, False)
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


@pytest.mark.parametrize("step", ["fsync state.new", "fsync folder"])
def test_close_keeps_the_lock_while_a_save_hangs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """What hangs may yet come: nobody else gets the folder, during the save or after it."""
    folder = tmp_path / "folder"
    folder.mkdir()
    hangs, resume = threading.Event(), threading.Event()

    def hang() -> None:
        hangs.set()
        resume.wait()

    before_step(monkeypatch, step, hang)
    with opened(folder) as store:
        thread = threading.Thread(target=store.save, args=[STATE])
        thread.start()
        try:
            hangs.wait()
            store.close()
            assert "is in use by" in refused(folder)
        finally:
            resume.set()
            thread.join()
        assert "is in use by" in refused(folder)
        assert store.load() == STATE


def test_only_a_state_that_is_gone_from_a_used_folder_is_lost(tmp_path: Path) -> None:
    assert load(tmp_path) == (False, False)
    for _ in range(2):
        save(tmp_path)
        assert load(tmp_path) == load(tmp_path) == (True, False)
        (tmp_path / "state").unlink()
        assert load(tmp_path) == (False, True)


def test_a_state_that_was_put_into_a_folder_is_lost_if_it_is_gone(tmp_path: Path) -> None:
    put_state(tmp_path / "state")
    assert load(tmp_path) == (True, False)
    (tmp_path / "state").unlink()
    assert load(tmp_path) == (False, True)


def test_a_first_save_whose_rename_fails_makes_a_folder_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rename may have reached the disk all the same."""
    monkeypatch.setattr(os, "rename", failing(errno.EIO))
    with opened(tmp_path) as store, pytest.raises(OSError, match="Input/output error"):
        store.save(STATE)
    assert load(tmp_path) == (False, True)


def test_a_start_that_was_killed_before_it_saved_counts_as_lost(tmp_path: Path) -> None:
    """The lock file of a process that could not remove it may be that of a used folder."""
    (tmp_path / "lock").touch(0o600)
    assert load(tmp_path) == (False, True)


@pytest.mark.parametrize(("before", "after"), [("", "here"), ("here", ""), ("", "")])
def test_a_host_that_is_not_known_is_no_other(tmp_path: Path, before: str, after: str) -> None:
    """A machine-id may appear after the first start, or not be seen from a container."""
    with opened(tmp_path, before) as store:
        store.save(replace(STATE, machine=before))
    assert load(tmp_path, after) == (True, False)
