"""Forks in the midst of a test."""

from __future__ import annotations

import ctypes
import os
import platform
import signal
import warnings
from collections.abc import Callable

SYS_CLONE = {"x86_64": 56, "aarch64": 220}


def raw_fork() -> int:
    """Fork by a system call, of which Python knows nothing; give what os.fork does."""
    # PyDLL, so that the child is born with the GIL.
    libc = ctypes.PyDLL(None, use_errno=True)
    return int(libc.syscall(SYS_CLONE[platform.machine()], signal.SIGCHLD, 0, 0, 0, 0))


def of_child(make: Callable[[], bytes]) -> bytes:
    """Return what *make* returns in a child of os.fork: some hundred bytes."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        try:
            warnings.simplefilter("ignore")
            os.write(write, make())
        finally:
            os._exit(0)
    os.close(write)
    os.waitpid(child, 0)
    with open(read, "rb") as pipe:
        return pipe.read()
