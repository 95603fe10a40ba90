"""A fork of which Python knows nothing."""

from __future__ import annotations

import ctypes
import platform

from tests.client.forking import SIGCHLD, SYS_CLONE


def raw_fork() -> int:
    """Fork by a system call, so that no hook runs; give what os.fork does."""
    # PyDLL, so that the child is born with the GIL.
    libc = ctypes.PyDLL(None, use_errno=True)
    return int(libc.syscall(SYS_CLONE[platform.machine()], SIGCHLD, 0, 0, 0, 0))
