"""Where benchmarks run: a temporary folder, and mounts that nobody else sees."""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

CLONE_NEWNS = 0x00020000
"""From <linux/sched.h>; os.unshare came with Python 3.12."""


class Missing(Exception):
    """Something that a benchmark needs is not here; one line that says what, and how to get it."""


@dataclass(frozen=True, slots=True)
class Place:
    """A temporary *folder* for all files of a run, and the *environment* of the programs in it."""

    folder: Path
    environment: dict[str, str]


ROOT = Path(__file__).parents[2]
"""Of the checkout."""

SPARE_DESCRIPTORS = 64
"""What a process opens besides connections."""


def allow_connections(count: int) -> None:
    """Let this process and its children have so many connections each. Raises Missing if not."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = count + SPARE_DESCRIPTORS
    if hard != resource.RLIM_INFINITY and wanted > hard:
        raise Missing(f"it needs {wanted:,} descriptors of a process (ulimit -n); {hard:,} may be")
    if soft != resource.RLIM_INFINITY and wanted > soft:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


@contextlib.contextmanager
def a_place() -> Iterator[Place]:
    """Give a place. What is imported there is compiled once, as after an installation."""
    with tempfile.TemporaryDirectory(prefix="uuidd-benchmarks-") as name:
        environment = dict(os.environ)
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        environment["PYTHONPYCACHEPREFIX"] = os.path.join(name, "pycache")
        subprocess.run(
            [sys.executable, "-c", "import uuidd.cli, uuidd.server.startup, uuidd_client"],
            env=environment,
            check=True,
            timeout=60,
        )
        yield Place(Path(name), environment)


@contextlib.contextmanager
def private(*folders: Path) -> Iterator[None]:
    """Put an empty file system over each folder that only this process and its children see.

    Raises Missing without root.
    """
    if os.geteuid() != 0:
        raise Missing("it needs root, for a mount namespace of its own")
    _leave_others_mounts()
    with contextlib.ExitStack() as undo:
        for folder in folders:
            if not folder.exists():
                folder.mkdir()
                undo.callback(folder.rmdir)
            subprocess.run(["mount", "-t", "tmpfs", "tmpfs", folder], check=True, timeout=10)
            undo.callback(_unmount, folder)
        yield


def _unmount(folder: Path) -> None:
    subprocess.run(["umount", "-l", folder], check=True, timeout=10)


def _leave_others_mounts() -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNS):
        cause = os.strerror(ctypes.get_errno())
        raise Missing(f"it needs a mount namespace of its own: {cause}")
    subprocess.run(["mount", "--make-rprivate", "/"], check=True, timeout=10)
