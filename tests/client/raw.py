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


def of_child(make: Callable[[], bytes], fork: Callable[[], int] = os.fork) -> bytes:
    """Return what *make* returns in a child that *fork* makes; nothing if it fails there."""
    read, write = os.pipe()
    with warnings.catch_warnings():
        # Of the fork of a process that has threads, and in the child of the missing daemon.
        warnings.simplefilter("ignore")
        child = fork()
        if not child:
            try:
                os.write(write, make())
            finally:
                os._exit(0)
    os.close(write)
    with open(read, "rb") as pipe:
        made = pipe.read()
    os.waitpid(child, 0)
    return made
