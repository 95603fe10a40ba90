"""A program that draws, forks in a given way, and lets parent and children draw on.

Run as ``python -m tests.client.forking WAY FOLDER``; each process leaves its ids
in a file of FOLDER.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import platform
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

from uuidd_client import Client, uuid1, uuid6

CHILDREN = 8
EACH = 2000
SYS_CLONE = {"x86_64": 56, "aarch64": 220}
SIGCHLD = 17

client = Client()
texts = client.iter("v6", form="text")


def draw(folder: Path) -> None:
    """Leave ids drawn in every way in a file of *folder*, one a line."""
    lines = [str(uuid1()) for _ in range(EACH)]
    lines += [str(uuid6()) for _ in range(EACH)]
    lines += [next(texts) for _ in range(EACH)]
    lines += client.make("v1", EACH, form="text")
    with (folder / str(os.getpid())).open("a") as file:
        file.writelines(f"{line}\n" for line in lines)


def by_os(folder: Path) -> None:
    """Fork by os.fork."""
    _by(os.fork, folder)


def by_multiprocessing(folder: Path) -> None:
    """Fork by multiprocessing."""
    context = multiprocessing.get_context("fork")
    children = [context.Process(target=draw, args=[folder]) for _ in range(CHILDREN)]
    for child in children:
        child.start()
    draw(folder)
    for child in children:
        child.join()
        if child.exitcode:
            sys.exit(1)


def raw(folder: Path) -> None:
    """Fork by a system call, so that no hook of Python's runs."""
    libc = ctypes.PyDLL(None, use_errno=True)
    number = SYS_CLONE[platform.machine()]
    _by(lambda: int(libc.syscall(number, SIGCHLD, 0, 0, 0, 0)), folder)


def _by(fork: Callable[[], int], folder: Path) -> None:
    children = []
    for _ in range(CHILDREN):
        pid = fork()
        if not pid:
            try:
                draw(folder)
                os._exit(0)
            finally:
                os._exit(1)
        children.append(pid)
    draw(folder)
    if sum(os.waitpid(pid, 0)[1] for pid in children):
        sys.exit(1)


def main(way: str, folder: Path) -> None:
    """Draw, so that what a child inherits is a block, a run and a connection in use; fork; draw."""
    warnings.simplefilter("ignore", RuntimeWarning)
    draw(folder)
    {"os": by_os, "multiprocessing": by_multiprocessing, "raw": raw}[way](folder)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
