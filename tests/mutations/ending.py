"""Processes that end with the one that started them, however that ends."""

from __future__ import annotations

import ctypes
import signal

PR_SET_PDEATHSIG = 1
"""From <linux/prctl.h>."""


def end_with_parent() -> None:
    """Let the kernel end this process when the thread that started it has ended."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
