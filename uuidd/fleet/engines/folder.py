"""A folder as the engine: for several daemons of one host, or of hosts that share a disk.

The file system must honour flock(2) between all of them, and keep what was synced. Each file holds
a count of its writes, and then the value.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from uuidd.fleet.engines import ATTEMPT_SECONDS, Away, Changed, Entry

LOCK_SECONDS = ATTEMPT_SECONDS - 0.5
"""How long to wait for the lock, so that the attempt ends with the reason."""

AGAIN_SECONDS = 0.005
"""How long to wait before the lock is tried again; its holder needs about a millisecond."""


class Folder:
    """Files whose paths are the keys, so that no address is needed. See ``Engine``."""

    def __init__(self, *_: object) -> None:
        pass

    def get(self, key: str) -> Entry | None:
        """See ``Engine``."""
        with _named_errors():
            return _read(Path(key))

    def list(self, prefix: str) -> Mapping[str, Entry]:
        """See ``Engine``."""
        with _named_errors():
            try:
                names = sorted(os.listdir(prefix))
            except FileNotFoundError:
                return {}
            found = {f"{prefix}{name}": _read(Path(prefix, name)) for name in names}
        return {key: each for key, each in found.items() if each is not None}

    def put(
        self, key: str, value: bytes, old: Entry | None, guard: tuple[str, bytes] | None
    ) -> None:
        """See ``Engine``."""
        path = Path(key)
        with _named_errors():
            if guard is None:
                path.parent.mkdir(parents=True, exist_ok=True)
            elif not path.parent.is_dir():
                raise Changed
            with _locked(path.parent / ".lock"):
                found = _read(path)
                if (found and found[:2]) != (old and old[:2]):
                    raise Changed
                if guard is not None:
                    there = _read(Path(guard[0]))
                    if there is None or there.value != guard[1]:
                        raise Changed
                _write(path, found.version + 1 if found else 1, value)

    def close(self) -> None:
        """See ``Engine``."""


@contextlib.contextmanager
def _named_errors() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise Away(f"{error.filename or 'a file in it'}: {error.strerror}") from error


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the lock, which no other process holds then."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        until = time.monotonic() + LOCK_SECONDS
        while True:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > until:
                    raise Away(f"another process has locked it for {LOCK_SECONDS:g} s") from None
                time.sleep(AGAIN_SECONDS)
        yield
    finally:
        os.close(fd)


def _read(path: Path) -> Entry | None:
    try:
        with open(path, "rb") as file:
            count, _, data = file.read(1 << 20).partition(b"\n")
            written = os.fstat(file.fileno()).st_mtime
    except (FileNotFoundError, NotADirectoryError):
        return None
    # A file whose first line is no count is told of by who reads its value.
    number = int(count) if count.isdigit() and len(count) < 20 else 0
    value = data.removesuffix(b"\n") if number else count
    return Entry(value, number, written)


def _write(path: Path, count: int, value: bytes) -> None:
    """Replace a file so that a reader finds the old or the new, also after a power cut."""
    new = path.with_name(f".{path.name}.new")
    with open(
        os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "wb"
    ) as file:
        file.write(b"%d\n%b\n" % (count, value))
        file.flush()
        os.fsync(file.fileno())
    os.rename(new, path)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
    finally:
        os.close(folder)
