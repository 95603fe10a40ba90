"""Puts the daemon in the background; the command waits for the outcome of the start (daemon(7))."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import partial

_READY = b"+"


def fill_standard_descriptors() -> None:
    """Open /dev/null as those of descriptors 0, 1 and 2 that are closed.

    A program may close them before it starts a daemon. Then a socket of the daemon would get one of
    these numbers, and output would be written to it. Output is lost instead, as with util-linux's
    uuidd. Python's ``sys.stdout`` is None for a closed stream, and is set here too.
    """
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            # It gets the lowest number that is free: this one.
            os.open(os.devnull, os.O_RDWR)
    sys.stdin = sys.stdin or os.fdopen(0, closefd=False)
    sys.stdout = sys.stdout or os.fdopen(1, "w", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", closefd=False)


def enter() -> Callable[[], None]:
    """Go on in a new process in the background; return what to call once it serves.

    The calling process waits for that, and ends. Its exit status is 1 if the new process ends
    first, which then has said why on standard error.
    """
    read_fd, write_fd = os.pipe()
    child = os.fork()
    if child:
        os.close(write_fd)
        os.waitpid(child, 0)
        os._exit(0 if os.read(read_fd, 1) == _READY else 1)
    os.setsid()
    if os.fork():
        # A session leader could get a terminal; its child cannot.
        os._exit(0)
    return partial(_ready, read_fd, write_fd)


def _ready(read_fd: int, write_fd: int) -> None:
    """Let the parent end with success, and leave the terminal and the working folder."""
    # Before the parent is told, because there may be none.
    null = os.open(os.devnull, os.O_RDWR)
    os.write(write_fd, _READY)
    os.close(write_fd)
    # Not earlier: the write would fail if the parent was killed meanwhile.
    os.close(read_fd)
    os.chdir("/")
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    os.close(null)
