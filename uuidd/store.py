"""Stable storage: where the state is kept, and how it survives crashes (RFC 9562, 6.3).

Theory of operation

1. A save writes a temporary file, syncs it, renames it over the old one, and syncs the folder. At
   any moment the folder holds either the whole old state or the whole new one.
2. A file that cannot be used is renamed, never deleted.
3. The folder is locked while the store is open; the lock file holds the pid of its holder. Once a
   state was saved the lock file stays, so a folder without a lock file has never been used.
4. The path is followed once, and all files are opened relative to the folder that is locked. If
   the path leads to another folder later, another daemon may start there without this state. So
   nothing more is saved then, and what was saved must not be used any more.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
import time
from errno import EACCES, EDQUOT, ENOSPC
from pathlib import Path

from uuidd.core.timeline.state import State
from uuidd.privileges import lacking, lacks_room
from uuidd.refused import Refused
from uuidd.statefile import UnusableError, decode, encode

HOLDER_SECONDS = 0.2
"""Seconds that the process which has locked the folder may take to write its pid."""

_STATE, _NEW, _LOCK = "state", "state.new", "lock"
"""The files in the folder."""

_MAX_BYTES = 1 << 20
"""More than the 90 kB of a state in which every generation has a mark, and every worker number an
epoch."""

FULL = (ENOSPC, EDQUOT)
"""The errors of a full disk."""


class FolderStore:
    """Keeps the state in the file ``state`` of a folder, which it locks.

    *machine* identifies this host, "" if it is not known; a state of another host is not used.
    After ``load``, *set_aside* says why a file could not be used and what it is named now (None if
    there was no such file). *lost* is true if there was a state and its content is not known: it
    was set aside, or is missing from a folder that has been used before.

    Raises Refused if the folder is missing, is not writable, or is in use by another daemon.
    """

    def __init__(self, folder: Path, *, machine: str) -> None:
        self.folder = folder
        self.machine = machine
        self.set_aside: str | None = None
        self.lost = False
        self._saving = self._unused = False
        self._held = contextlib.ExitStack()
        try:
            self._folder_fd = _opened(folder, os.geteuid(), self._held)
            self._lock()
        except (Refused, OSError):
            self.close()
            raise

    def load(self) -> State | None:
        """Return the state last saved; None if there is none, or none that can be used.

        One that cannot be used is renamed; see *set_aside*. Raises Refused if the file cannot be
        read or renamed.
        """
        state = None
        try:
            state = _saved(self.folder, self._folder_fd, self.machine, os.geteuid())
        except UnusableError as unusable:
            self._unused = False
            self.set_aside = f"{unusable}; set aside as {self._put_aside()}"
        self._unused = self._unused and state is None
        self.lost = state is None and not self._unused
        return state

    def save(self, state: State) -> None:
        """Write *state* so that it survives a power cut.

        Raises OSError if that is not certain: after a power cut the file then holds either the old
        state or this one. Nothing is written if the folder is not at its path any more.
        """
        if reason := self.moved_away():
            raise OSError(reason)
        self._saving = True
        folder = self._folder_fd
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
            fd = os.open(_NEW, flags, 0o644, dir_fd=folder)
            # The content is on the disk before the file has its name.
            with open(fd, "wb") as file:
                file.write(encode(state))
                file.flush()
                os.fsync(fd)
            self._unused = False
            os.rename(_NEW, _STATE, src_dir_fd=folder, dst_dir_fd=folder)
            os.fsync(folder)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(_NEW, dir_fd=folder)
            raise
        finally:
            self._saving = False

    def moved_away(self) -> str:
        """Return a line that says so if the folder is not at its path any more, else ""."""
        with contextlib.suppress(OSError):
            if os.path.samestat(os.stat(self.folder), os.fstat(self._folder_fd)):
                return ""
        return f"the state folder is no longer at {self.folder}; move it back, or restart uuidd"

    def close(self) -> None:
        """Unlock the folder, and remove the lock file if no state was ever saved.

        While another thread hangs in a save this does nothing, because the thread may yet rename
        its file over the state of the next daemon. The lock then lasts until the process ends.
        """
        if self._saving:
            return
        if self._unused:
            with contextlib.suppress(OSError):
                os.unlink(_LOCK, dir_fd=self._folder_fd)
        self._held.close()

    def _lock(self) -> None:
        """Lock the folder, which was never used if the lock file is new. Raises Refused."""
        while True:
            fd, self._unused = self._open_lock()
            self._held.callback(os.close, fd)
            try:
                _check_file(self.folder / _LOCK, os.fstat(fd), os.geteuid())
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _check_rights(self.folder, self._folder_fd)
                if self._is_there(fd):
                    _write_holder(fd)
                    return
            except BlockingIOError:
                # The file is the holder's, also if it was made here.
                self._unused = False
                raise Refused(
                    f"the state folder {self.folder} is in use by the uuidd with pid {_holder(fd)};"
                    " stop that one, or name another folder with --state"
                ) from None
            except OSError as error:
                why = f"cannot be written to: {error.strerror}"
                raise _unfit(self.folder, why, "mend it") from error
            # A start that failed has removed it before it was locked here.
            self._unused = False

    def _open_lock(self) -> tuple[int, bool]:
        """Return the lock file, and whether it is new."""
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            # No other user may open the file, because flock(2) needs no right to write.
            with contextlib.suppress(FileExistsError):
                return os.open(_LOCK, flags | os.O_EXCL, 0o600, dir_fd=self._folder_fd), True
            return os.open(_LOCK, flags, 0o600, dir_fd=self._folder_fd), False
        except OSError as error:
            raise _unwritable(self.folder, error.errno) from error

    def _is_there(self, fd: int) -> bool:
        try:
            there = os.stat(_LOCK, dir_fd=self._folder_fd, follow_symlinks=False)
        except FileNotFoundError:
            return False
        return os.path.samestat(there, os.fstat(fd))

    def _put_aside(self) -> str:
        folder, number = self._folder_fd, 1
        taken = set(os.listdir(folder))
        while (name := f"{_STATE}.unusable-{number}") in taken:
            number += 1
        try:
            os.rename(_STATE, name, src_dir_fd=folder, dst_dir_fd=folder)
        except OSError as error:
            raise Refused(
                f"{self.folder / _STATE} is unusable, and cannot be renamed: {error.strerror}"
            ) from error
        return name


def check_store(folder: Path, machine: str, uid: int) -> State | None:
    """Return the state that a store of the user *uid* would load, None if there is none.

    Nothing is changed, and a folder that another daemon has locked passes. Raises Refused where the
    store would, and UnusableError for a state that it would set aside.
    """
    with contextlib.ExitStack() as held:
        fd = _opened(folder, uid, held)
        _check_rights(folder, fd)
        # Without room for a file, one that is there can be locked, and the state saved later.
        if not os.access(_LOCK, os.F_OK, dir_fd=fd) and lacks_room(folder):
            raise _unwritable(folder, ENOSPC)
        return _saved(folder, fd, machine, uid)


def _check_rights(folder: Path, fd: int) -> None:
    """Check that this process may lock, load and save. Raises Refused."""
    number = lacking(_LOCK, os.R_OK | os.W_OK, folder_fd=fd)
    if number := number or lacking(".", os.W_OK | os.X_OK, folder_fd=fd):
        raise _unwritable(folder, number)
    for name, mode, used in ((_STATE, os.R_OK, "read"), (_NEW, os.W_OK, "written")):
        if number := lacking(name, mode, folder_fd=fd):
            raise _unusable(folder / name, used, number)


def _saved(folder: Path, folder_fd: int, machine: str, uid: int) -> State | None:
    try:
        # O_NONBLOCK, so that the open does not wait if it is a pipe.
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW
        fd = os.open(_STATE, flags, dir_fd=folder_fd)
        with open(fd, "rb") as file:
            _check_file(folder / _STATE, os.fstat(fd), uid)
            data = file.read(_MAX_BYTES + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _unusable(folder / _STATE, "read", error.errno) from error
    return decode(data, machine)


def _unfit(folder: Path, why: str, way: str) -> Refused:
    return Refused(f"the state folder {folder} {why}; {way}, or name another with --state")


def _unwritable(folder: Path, number: int | None) -> Refused:
    # As of a volume that is bound into a container, and has the host's owner.
    way = f"chown it to uid {os.geteuid()}" if number == EACCES else "change that"
    return _unfit(folder, f"is not writable: {os.strerror(number or 0)}", way)


def _unusable(path: Path, used: str, number: int | None) -> Refused:
    way = f"; chown it to uid {os.geteuid()}, and chmod u+rw it" if number == EACCES else ""
    return Refused(f"{path} cannot be {used}: {os.strerror(number or 0)}{way}")


def _opened(folder: Path, uid: int, held: contextlib.ExitStack) -> int:
    """Open *folder* while *held*, if no other user than *uid* and root can change the state."""
    try:
        link = folder.lstat()
        if stat.S_ISLNK(link.st_mode) and link.st_uid not in (0, uid):
            raise _unfit(folder, f"is a link that belongs to uid {link.st_uid}", "remove it")
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        raise _unfit(folder, "does not exist", "create it") from None
    except OSError as error:
        raise Refused(
            f"the state folder {folder} cannot be opened: {error.strerror};"
            " name another with --state"
        ) from error
    held.callback(os.close, fd)
    found = os.fstat(fd)
    if found.st_uid not in (0, uid):
        why = f"belongs to uid {found.st_uid}, and this is uid {uid}"
        raise _unfit(folder, why, f"start with --user, chown it to uid {uid}")
    if found.st_mode & 0o022:
        why = f"can be written to by others (mode {found.st_mode & 0o7777:04o})"
        raise _unfit(folder, why, "chmod go-w it")
    for name in (_LOCK, _STATE, _NEW):
        # A file that cannot be examined cannot be opened either.
        with contextlib.suppress(OSError):
            there = os.stat(name, dir_fd=fd, follow_symlinks=False)
            _check_file(folder / name, there, uid)
    return fd


def _check_file(path: Path, found: os.stat_result, uid: int) -> None:
    """Check that only root and *uid* can change what was *found* at a path. Raises Refused."""
    if not stat.S_ISREG(found.st_mode):
        raise Refused(f"{path} is not a plain file; remove it")
    if found.st_uid not in (0, uid):
        raise Refused(
            f"{path} belongs to uid {found.st_uid}, and this is uid {uid}; chown it to uid {uid}"
        )
    # What the lock file holds is not used.
    if found.st_mode & 0o022 and path.name == _STATE:
        raise Refused(
            f"{path} can be written to by others (mode {found.st_mode & 0o7777:04o}); see that its"
            " content is the daemon's, and chmod go-w it"
        )


def _write_holder(fd: int) -> None:
    """Write this process's pid into the lock file. Raises OSError."""
    if os.fstat(fd).st_uid == os.geteuid():
        os.fchmod(fd, 0o600)
    try:
        # Padded, so that the file never shows a part of a pid.
        os.pwrite(fd, f"{os.getpid():>10}\n".encode(), 0)
    except OSError as error:
        # The lock holds without the pid, which is for people.
        if error.errno not in FULL:
            raise


def _holder(fd: int) -> str:
    """Return the pid in a lock file that another process has locked, and may still write."""
    deadline = time.monotonic() + HOLDER_SECONDS
    while True:
        holder = os.pread(fd, 32, 0).decode("ascii", "replace").strip()
        if (holder and Path("/proc", holder).exists()) or time.monotonic() > deadline:
            return holder or "unknown"
        time.sleep(0.001)
