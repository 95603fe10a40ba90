"""A folder as the engine: for several daemons of one host, or of hosts that share a disk.

The file system must honour flock(2) between all of them, and keep what was synced. Each file holds
a count of its writes, and then the record.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import TypeVar

import trio

from uuidd.fleet.address import Address
from uuidd.fleet.coordinator import (
    ATTEMPT_SECONDS,
    Away,
    Changed,
    Found,
    Freed,
    Version,
    is_let_go,
    known_id,
)
from uuidd.fleet.record import (
    Meta,
    Record,
    UnreadableError,
    decode_meta,
    decode_record,
    encode,
    register_name,
    register_number,
)

LOCKED_SECONDS = 0.005
"""How long to wait before the lock is tried again; its holder needs about a millisecond."""

FREED_SECONDS = 0.1
"""How often a host that waits for a number looks whether one was let go."""

_META, _LOCK, _FREED = "meta", "lock", "freed"
_Answer = TypeVar("_Answer")


class FolderCoordinator:
    """The namespace in a folder. See ``Coordinator``; the folder is made by ``create``."""

    def __init__(self, address: Address) -> None:
        self.name = address.name
        self._folder = Path(address.path)
        self._id: str | None = None
        # A thread may hang with the disk. Saves have other threads, and go on.
        self._thread = trio.CapacityLimiter(1)

    async def meta(self) -> Meta | None:
        """See ``Coordinator``."""

        def read() -> Meta | None:
            found = _read(self._folder / _META)
            return None if found is None else decode_meta(found[0], str(self._folder / _META))

        meta = await self._in_thread(read)
        self._id = None if meta is None else meta.id
        return meta

    async def create(self, meta: Meta, registers: Mapping[int, Record]) -> None:
        """See ``Coordinator``."""

        def create() -> None:
            if (self._folder / _META).exists():
                raise Changed
            own = self._folder / meta.id
            own.mkdir()
            for number, record in registers.items():
                _write(own / register_name(number), 1, encode(record))
            _write(self._folder / _META, 1, encode(meta))

        await self._in_thread(lambda: self._folder.mkdir(parents=True, exist_ok=True))
        await self._locked(create)

    async def taken(self) -> AbstractSet[int]:
        """See ``Coordinator``."""
        own = self._own()
        return await self._in_thread(lambda: set(_numbers(own)))

    async def registers(self) -> Mapping[int, Found | str]:
        """See ``Coordinator``."""
        own = self._own()

        def read() -> dict[int, Found | str]:
            found: dict[int, Found | str] = {}
            for number in sorted(_numbers(own)):
                try:
                    register = _register(own / register_name(number))
                except UnreadableError as error:
                    found[number] = str(error)
                else:
                    if register is not None:
                        found[number] = register
            return found

        return await self._in_thread(read)

    async def read(self, number: int) -> Found | None:
        """See ``Coordinator``."""
        own = self._own()
        return await self._in_thread(lambda: _register(own / register_name(number)))

    async def write(self, number: int, record: Record, version: Version | None) -> Version:
        """See ``Coordinator``."""
        own = self._own()
        path = own / register_name(number)

        def write() -> Version:
            found = _read(path)
            if not own.is_dir() or (found and found[:2]) != version:
                raise Changed
            written = _write(path, found[1] + 1 if found else 1, encode(record))
            if is_let_go(record):
                told = _read(own / _FREED)
                _write(own / _FREED, told[1] + 1 if told else 1, b"%d" % number)
            return written

        return await self._locked(write)

    async def freed(self, after: int | None) -> Freed:
        """See ``Coordinator``."""
        path = self._own() / _FREED

        def read() -> Freed:
            found = _read(path)
            return Freed(0, None) if found is None else Freed(found[1], _number(found[0], path))

        while True:
            freed = await self._in_thread(read)
            if freed.count != after:
                return freed
            await trio.sleep(FREED_SECONDS)

    def _own(self) -> Path:
        return self._folder / known_id(self._id)

    async def _locked(self, work: Callable[[], _Answer]) -> _Answer:
        """Return what *work* returns while no other process writes to the folder."""

        def attempt() -> tuple[bool, _Answer | None]:
            with _lock(self._folder / _LOCK) as held:
                return (True, work()) if held else (False, None)

        why = "no answer within"
        with _named_errors(), trio.move_on_after(ATTEMPT_SECONDS):
            while True:
                held, answer = await self._run(attempt)
                if held:
                    return answer  # type: ignore[return-value]
                why = "another process has locked it for"
                await trio.sleep(LOCKED_SECONDS)
        raise Away(f"{why} {ATTEMPT_SECONDS:g} s")

    async def _in_thread(self, work: Callable[[], _Answer]) -> _Answer:
        with _named_errors(), trio.move_on_after(ATTEMPT_SECONDS):
            return await self._run(work)
        raise Away(f"no answer within {ATTEMPT_SECONDS:g} s")

    async def _run(self, work: Callable[[], _Answer]) -> _Answer:
        return await trio.to_thread.run_sync(work, abandon_on_cancel=True, limiter=self._thread)


@contextlib.contextmanager
def _named_errors() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise Away(_reason(error)) from error


def _reason(error: OSError) -> str:
    return f"{error.filename or 'a file in it'}: {error.strerror}"


@contextlib.contextmanager
def _lock(path: Path) -> Iterator[bool]:
    """Hold the lock, and say so; false if another process holds it."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield True
    except BlockingIOError:
        yield False
    finally:
        os.close(fd)


def _number(data: bytes, path: Path) -> int:
    if not (data.isdigit() and len(data) < 5):
        raise UnreadableError(f"{path} is no record of uuidd: it has no number")
    return int(data)


def _numbers(folder: Path) -> Iterator[int]:
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return
    for name in names:
        number = register_number(name)
        if number is not None:
            yield number


def _register(path: Path) -> Found | None:
    found = _read(path)
    if found is None:
        return None
    data, count, written = found
    return Found(decode_record(data, str(path)), (data, count), written)


def _read(path: Path) -> tuple[bytes, int, float] | None:
    """Return a file's record, its count of writes, and the last one's time; None without a file."""
    try:
        with open(path, "rb") as file:
            count, _, data = file.read(1 << 20).partition(b"\n")
            written = os.fstat(file.fileno()).st_mtime
    except FileNotFoundError:
        return None
    if not (count.isdigit() and len(count) < 20):
        raise UnreadableError(f"{path} is no record of uuidd: its first line is no number")
    return data.removesuffix(b"\n"), int(count), written


def _write(path: Path, count: int, data: bytes) -> tuple[bytes, int]:
    """Replace a file so that a reader finds the old or the new, also after a power cut."""
    new = path.with_name(path.name + ".new")
    with open(
        os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "wb"
    ) as file:
        file.write(b"%d\n%b\n" % (count, data))
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
    return data, count
