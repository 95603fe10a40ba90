"""Disks of a test's own: mounted in a namespace of its own, to be filled, cut off or mended."""

from __future__ import annotations

import contextlib
import fcntl
import os
import struct
from collections.abc import Iterator
from pathlib import Path

from tests.tools import holding, need, output, with_own_mounts

SHUTDOWN = 0x8004587D
"""The ioctl EXT4_IOC_SHUTDOWN."""

NO_LOG_FLUSH = 2
"""What is not yet on the disk stays off it, as in a power cut."""


class Mounts:
    """A mount namespace of its own, which ends with the process that holds it.

    Its mounts, and the loop devices below them, go away with the last process in it: also when a
    test is killed.
    """

    def __init__(self, holder: int) -> None:
        self._holder = holder

    def inside(self, *command: str) -> list[str]:
        """Return the command that runs *command* in it, as the same process."""
        return [need("nsenter"), f"--mount=/proc/{self._holder}/ns/mnt", *command]

    def run(self, *command: str) -> None:
        """Run *command* in it."""
        output(*self.inside(*command))

    def path(self, path: Path) -> Path:
        """Return what *path* is in it, to be used from outside."""
        return Path(f"/proc/{self._holder}/root{path}")

    def cut_power(self, folder: Path) -> None:
        """Cut off the ext4 that is mounted at *folder*: what was not synced is lost."""
        fd = os.open(self.path(folder), os.O_RDONLY)
        try:
            fcntl.ioctl(fd, SHUTDOWN, struct.pack("I", NO_LOG_FLUSH))
        finally:
            os.close(fd)


@contextlib.contextmanager
def private_mounts() -> Iterator[Mounts]:
    """Provide a mount namespace that lasts as long as the context."""
    with holding(*with_own_mounts("sh", "-c", "echo; exec cat")) as holder:
        yield Mounts(holder)


def fill(folder: Path) -> Path:
    """Fill the disk of *folder*; return the file that does."""
    path = folder / "full"
    with path.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(4096))
    return path
