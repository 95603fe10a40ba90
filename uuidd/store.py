"""Stable storage: where the state is kept, and how it survives crashes (RFC 9562, 6.3).

Theory of operation

1. A save writes a temporary file, syncs it, renames it over the old one, and syncs the folder. At
   any moment the folder holds the old state whole or the new one whole.
2. The file is text. Its first line names the format, its version and the SHA-256 of the rest, so
   damage of any kind shows; the rest is JSON, to be read by people.
3. A file that cannot be used is set aside under another name, never deleted.
4. The folder is locked for as long as the store is open; the lock file names its holder.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import stat
import time
from pathlib import Path
from typing import Protocol

from uuidd.core.ids.timebased import NODE_BITS, TICK_BITS
from uuidd.core.timeline.generation import GENERATIONS
from uuidd.core.timeline.state import Node, State

FORMAT = 1
_MAGIC = "uuidd-state"
HOLDER_SECONDS = 0.2
"""How long the one who has locked the folder may take to write who it is."""

_MAX_BYTES = 1 << 20
"""More than the 50 kB of a state in which every generation has a mark."""


class StoreError(Exception):
    """The folder cannot serve as a store; one line that says why, and what to do."""


class UnusableError(Exception):
    """A state file that cannot be used: damaged, of a newer format, or of another host."""


class Store(Protocol):
    """Where a state is kept."""

    def load(self) -> State | None:
        """Give the state last saved; None when there is none, or none that can be used."""

    def save(self, state: State) -> None:
        """Keep *state* so that it survives a power cut. Raises OSError when it may not have."""


class FolderStore:
    """Keeps the state in the file ``state`` of a folder, which it locks.

    *machine* is what tells this host from others; a state of another is not used. After ``load``
    *set_aside* says what became of a file that could not be used, None if all was well, and *lost*
    whether there was a state of which nothing is known: one set aside, or gone from a folder that
    has been used before.

    Raises StoreError when the folder is missing, not writable, or held by another daemon.
    """

    def __init__(self, folder: Path, *, machine: str) -> None:
        self.folder = folder
        self.machine = machine
        self.set_aside: str | None = None
        self.lost = False
        self._saving = False
        self._path = folder / "state"
        self._temporary = folder / "state.new"
        try:
            self._check_link(folder)
            self._folder_fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except FileNotFoundError:
            raise StoreError(
                f"the state folder {folder} does not exist; create it, or name another with --state"
            ) from None
        except OSError as error:
            raise StoreError(
                f"the state folder {folder} cannot be opened: {error.strerror};"
                " name another with --state"
            ) from error
        try:
            self._check_owner()
        except StoreError:
            os.close(self._folder_fd)
            raise
        # The lock file stays for good; where there is none, no daemon has ever been.
        self._was_used = (folder / "lock").exists()
        try:
            self._lock_fd = self._lock(folder / "lock")
        except BaseException:
            os.close(self._folder_fd)
            raise

    def load(self) -> State | None:
        """Give the state last saved; None when there is none, or none that can be used.

        One that cannot be used is renamed, and ``set_aside`` tells why and to what. Raises
        StoreError when it cannot be read or renamed.
        """
        try:
            # Without waiting, should it be a pipe.
            flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW
            fd = os.open(self._path, flags)
            with open(fd, "rb") as file:
                found = os.fstat(fd)
                if not stat.S_ISREG(found.st_mode):
                    raise StoreError(f"{self._path} is no file; remove it")
                _check_file(self._path, found)
                data = file.read(_MAX_BYTES + 1)
        except FileNotFoundError:
            self.lost = self._was_used
            return None
        except OSError as error:
            raise StoreError(f"{self._path} cannot be read: {error.strerror}") from error
        try:
            state = decode(data)
            if state.machine != self.machine:
                raise UnusableError("it is of another host (machine-id differs)")
        except UnusableError as unusable:
            self.set_aside = f"{unusable}; set aside as {self._put_aside()}"
            self.lost = True
            return None
        return state

    def save(self, state: State) -> None:
        """Keep *state* so that it survives a power cut.

        Raises OSError when it may not have: after that either the old state or this one is kept.
        """
        self._saving = True
        try:
            fd = os.open(
                self._temporary,
                os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW,
                0o644,
            )
            with open(fd, "wb") as file:
                file.write(encode(state))
                file.flush()
                os.fsync(fd)
            self._temporary.rename(self._path)
        except BaseException:
            with contextlib.suppress(OSError):
                self._temporary.unlink()
            self._saving = False
            raise
        try:
            os.fsync(self._folder_fd)
        finally:
            self._saving = False

    def close(self) -> None:
        """Unlock the folder.

        Not while another thread hangs in a save: its rename may yet come, and must not come over
        the state of a next daemon. The lock then lasts as long as the process.
        """
        if self._saving:
            return
        os.close(self._lock_fd)
        os.close(self._folder_fd)

    def _check_link(self, folder: Path) -> None:
        """See to it that nobody else leads the way to another folder. Raises StoreError."""
        found = folder.lstat()
        if stat.S_ISLNK(found.st_mode) and found.st_uid not in (0, os.geteuid()):
            raise StoreError(
                f"the state folder {folder} is a link of uid {found.st_uid}'s; remove it, or name"
                " another with --state"
            )

    def _check_owner(self) -> None:
        """See to it that nobody else can change the state. Raises StoreError."""
        found, own = os.fstat(self._folder_fd), os.geteuid()
        if found.st_uid not in (0, own):
            raise StoreError(
                f"the state folder {self.folder} belongs to uid {found.st_uid}, and this is uid"
                f" {own}; start with --user, chown it, or name another with --state"
            )
        if found.st_mode & 0o022:
            raise StoreError(
                f"the state folder {self.folder} can be written to by others (mode"
                f" {found.st_mode & 0o7777:04o}); chmod go-w it, or name another with --state"
            )

    def _lock(self, path: Path) -> int:
        try:
            # No other user may open it, and so lock it (flock(2) needs no right to write).
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            raise StoreError(
                f"the state folder {self.folder} is not writable: {error.strerror};"
                " mend that, or name another with --state"
            ) from error
        try:
            _check_file(path, os.fstat(fd))
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(fd).st_uid == os.geteuid():
                os.fchmod(fd, 0o600)
            # Padded, so that the file never reads as a shorter pid than the one that holds it.
            os.pwrite(fd, f"{os.getpid():>10}\n".encode(), 0)
        except StoreError:
            os.close(fd)
            raise
        except BlockingIOError:
            holder = _holder(fd)
            os.close(fd)
            raise StoreError(
                f"the state folder {self.folder} is in use by the uuidd with pid {holder};"
                " stop that one, or name another folder with --state"
            ) from None
        except OSError as error:
            # The file stays: to remove it could take it from under one who has just locked it.
            os.close(fd)
            raise StoreError(
                f"the state folder {self.folder} cannot be written to: {error.strerror};"
                " make room, or name another with --state"
            ) from error
        return fd

    def _put_aside(self) -> str:
        number = 1
        while (name := self.folder / f"state.unusable-{number}").exists():
            number += 1
        try:
            self._path.rename(name)
        except OSError as error:
            raise StoreError(
                f"{self._path} is unusable, and cannot be renamed: {error.strerror}"
            ) from error
        return name.name


def _holder(fd: int) -> str:
    """Give the pid in a lock file that another has locked, and may be about to write."""
    deadline = time.monotonic() + HOLDER_SECONDS
    while True:
        holder = os.pread(fd, 32, 0).decode("ascii", "replace").strip()
        if (holder and Path("/proc", holder).exists()) or time.monotonic() > deadline:
            return holder or "unknown"
        time.sleep(0.001)


def _check_file(path: Path, found: os.stat_result) -> None:
    """See to it that a file was left by nobody else. Raises StoreError."""
    if found.st_uid not in (0, os.geteuid()):
        raise StoreError(
            f"{path} belongs to uid {found.st_uid}, and this is uid {os.geteuid()}; remove it"
        )


def encode(state: State) -> bytes:
    """Give the bytes of the state file."""
    body = {
        "node": f"0x{state.node.value:012x}",
        "node_source": state.node.source,
        "machine": state.machine,
        "generation": state.generation,
        "floor": state.floor,
        "steady": state.steady,
        "marks": {str(number): state.marks[number] for number in sorted(state.marks)},
    }
    text = json.dumps(body, indent=1) + "\n"
    return f"{_MAGIC} {FORMAT} sha256:{_digest(text.encode())}\n".encode() + text.encode()


def decode(data: bytes) -> State:
    """Give the state that the bytes of a state file tell of.

    Raises UnusableError, saying what is wrong, for a file that is torn, changed or newer.
    """
    head, _, body = data.partition(b"\n")
    words = head.decode("ascii", "replace").split(" ")
    if len(words) != 3 or words[0] != _MAGIC:
        raise UnusableError("it is damaged: its first line is no uuidd-state line")
    if words[1] != str(FORMAT):
        raise UnusableError(f"it has format {words[1]!r}, and this version reads {FORMAT}")
    if words[2] != f"sha256:{_digest(body)}":
        raise UnusableError("it is damaged: its checksum does not match")
    try:
        return _state(json.loads(body))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise UnusableError(f"it is damaged: {type(error).__name__} {error}") from error


def _state(body: dict[str, object]) -> State:
    marks = body["marks"]
    if not isinstance(marks, dict):
        raise TypeError("marks is no map")
    return State(
        node=Node(_number(int(str(body["node"]), 16), NODE_BITS), str(body["node_source"])),
        machine=str(body["machine"]),
        generation=_number(body["generation"], GENERATIONS.bit_length() - 1),
        marks={
            _number(int(number), GENERATIONS.bit_length() - 1): _number(mark, TICK_BITS)
            for number, mark in marks.items()
        },
        floor=_number(body["floor"], TICK_BITS),
        steady=_number(body["steady"], TICK_BITS),
    )


def _number(value: object, bits: int) -> int:
    if type(value) is not int or not 0 <= value < 1 << bits:
        raise ValueError(f"{value!r} is no int of {bits} bits")
    return value


def _digest(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


def machine_hash(path: Path = Path("/etc/machine-id")) -> str:
    """Give what tells this host from others: a hash of its machine-id, "" if it has none.

    Hashed, for machine-id(5) asks not to show it to others, and the state file can be read by all.
    """
    try:
        machine_id = path.read_text().strip()
    except (OSError, ValueError):
        return ""
    return _digest(b"uuidd " + machine_id.encode()) if machine_id else ""
