"""Going to the background, with the start's outcome told to the one who started it (daemon(7))."""

from __future__ import annotations

import os
import sys
from typing import NoReturn

_READY = b"+"


class Background:
    """A process in the background, which has yet to tell its parent how the start went."""

    def __init__(self, report_fd: int) -> None:
        self._report_fd = report_fd

    def ready(self) -> None:
        """Let the parent end with success, and let go of the terminal and the folder."""
        os.write(self._report_fd, _READY)
        os.close(self._report_fd)
        os.chdir("/")
        null = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(null, fd)
        os.close(null)


def fill_standard_descriptors() -> None:
    """Open those of 0, 1 and 2 that are closed, lest a socket gets one, and is written to.

    A daemon may be started so by a program that closed them to detach. What is written to them is
    lost, as util-linux's uuidd has it. Python has None for such a stream, and gets one.
    """
    fd = os.open(os.devnull, os.O_RDWR)
    while fd <= 2:
        fd = os.open(os.devnull, os.O_RDWR)
    os.close(fd)
    sys.stdin = sys.stdin or os.fdopen(0, closefd=False)
    sys.stdout = sys.stdout or os.fdopen(1, "w", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", closefd=False)


def enter() -> Background:
    """Go on in the background; the process that called waits there for ``ready``, and ends.

    Its exit status is 1 if this one ends before, and by then has said why on standard error.
    """
    read_fd, write_fd = os.pipe()
    child = os.fork()
    if child:
        os.close(write_fd)
        os.waitpid(child, 0)
        _wait_and_end(read_fd)
    os.close(read_fd)
    os.setsid()
    if os.fork():
        # A session leader could come by a terminal; its child cannot.
        os._exit(0)
    return Background(write_fd)


def _wait_and_end(read_fd: int) -> NoReturn:
    told = os.read(read_fd, 1)
    os._exit(0 if told == _READY else 1)
