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

FOLDER = Path(sys.argv[2])

client = Client()
texts = client.iter("v6", form="text")


def draw() -> None:
    """Print ids drawn in every way."""
    lines = [str(uuid1()) for _ in range(EACH)]
    lines += [str(uuid6()) for _ in range(EACH)]
    lines += [next(texts) for _ in range(EACH)]
    lines += client.make("v1", EACH, form="text")
    with (FOLDER / str(os.getpid())).open("a") as file:
        file.writelines(f"{line}\n" for line in lines)


def by_os() -> None:
    """Fork by os.fork."""
    _by(os.fork)


def by_multiprocessing() -> None:
    """Fork by multiprocessing."""
    context = multiprocessing.get_context("fork")
    children = [context.Process(target=draw) for _ in range(CHILDREN)]
    for child in children:
        child.start()
    draw()
    for child in children:
        child.join()
        if child.exitcode:
            sys.exit(1)


def raw() -> None:
    """Fork by a system call, so that no hook of Python's runs."""
    libc = ctypes.PyDLL(None, use_errno=True)
    number = SYS_CLONE[platform.machine()]
    _by(lambda: int(libc.syscall(number, SIGCHLD, 0, 0, 0, 0)))


def _by(fork: Callable[[], int]) -> None:
    children = []
    for _ in range(CHILDREN):
        pid = fork()
        if not pid:
            try:
                draw()
                os._exit(0)
            finally:
                os._exit(1)
        children.append(pid)
    draw()
    if any(os.waitpid(pid, 0)[1] for pid in children):
        sys.exit(1)


if __name__ == "__main__":
    warnings.simplefilter("ignore", RuntimeWarning)
    # So that what a child inherits is a block, a run and a line in use.
    draw()
    {"os": by_os, "multiprocessing": by_multiprocessing, "raw": raw}[sys.argv[1]]()
