"""Runs a command that may open no network socket, as in the sandbox of the service."""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import sys
from struct import pack

SOCKET_CALLS = {"x86_64": 41, "aarch64": 198}
"""The number of socket(2), by the machine."""

_LOCAL = (1, 16)
"""AF_UNIX and AF_NETLINK, which the unit allows."""


def offline(*command: str) -> list[str]:
    """Return what runs a command offline, as the same process."""
    return [sys.executable, __file__, *command]


def _forbid() -> None:
    """Let socket(2) fail with EAFNOSUPPORT, as RestrictAddressFamilies= does (seccomp(2))."""

    def load(offset: int) -> bytes:
        return pack("HBBI", 0x20, 0, 0, offset)

    def jump(value: int, if_equal: int, otherwise: int) -> bytes:
        return pack("HBBI", 0x15, if_equal, otherwise, value)

    def end(outcome: int) -> bytes:
        return pack("HBBI", 0x06, 0, 0, outcome)

    call = SOCKET_CALLS[platform.machine()]
    # The number of the call, and the lower half of its first argument.
    rules = load(0) + jump(call, 0, 4) + load(16) + jump(_LOCAL[0], 2, 0) + jump(_LOCAL[1], 1, 0)
    rules += end(0x00050000 | errno.EAFNOSUPPORT) + end(0x7FFF0000)
    kept = ctypes.create_string_buffer(rules, len(rules))
    program = ctypes.create_string_buffer(pack("HP", len(rules) // 8, ctypes.addressof(kept)))
    libc = ctypes.CDLL(None, use_errno=True)
    no_new_privileges, seccomp, by_filter = 38, 22, 2
    if libc.prctl(no_new_privileges, 1, 0, 0, 0) or libc.prctl(seccomp, by_filter, program, 0, 0):
        raise OSError(ctypes.get_errno(), "the kernel takes no filter")


if __name__ == "__main__":
    _forbid()
    os.execvp(sys.argv[1], sys.argv[1:])  # noqa: S606 - the command of a test
