"""How good the kernel holds this host's clock to be: adjtimex(2), which needs no right to be asked.

A time daemon (chrony, ntpd, systemd-timesyncd) tells the kernel. The kernel adds 0.5 ms a second
to the largest error, and calls the clock unsynchronised when nobody has told it anything for long.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

STA_UNSYNC = 0x40
"""The bit of the kernel's status that says that nothing sets the clock."""

TIME_INS, TIME_DEL, TIME_OOP, TIME_ERROR = 1, 2, 3, 5
"""What adjtimex returns when a leap second is to be inserted or deleted at the end of the day,
while it is inserted, and when the clock is not synchronised."""

Leap = Literal["insert", "delete", "now"]

_LEAPS: dict[int, Leap] = {TIME_INS: "insert", TIME_DEL: "delete", TIME_OOP: "now"}


class UnknownError(Exception):
    """The kernel does not say how good the clock is; one line that says why."""


class Timex(ctypes.Structure):
    """The kernel's ``struct timex`` (adjtimex(2)), which is larger than what is named here."""

    _fields_ = (
        ("modes", ctypes.c_uint),
        ("offset", ctypes.c_long),
        ("freq", ctypes.c_long),
        ("maxerror", ctypes.c_long),
        ("esterror", ctypes.c_long),
        ("status", ctypes.c_int),
        ("rest", ctypes.c_long * 32),
    )


Adjtimex = Callable[[Timex], int]
"""Fills in what it is passed, and returns the state of the clock. Raises OSError."""


@dataclass(frozen=True, slots=True)
class Quality:
    """Whether the kernel holds the clock for *synchronised*, and by how much it may be wrong.

    *max_error* is in seconds. *leap* is a leap second that the kernel is to insert or delete at the
    end of the day (UTC), or inserts now.
    """

    synchronised: bool
    max_error: float
    leap: Leap | None = None

    def lack(self, required: float) -> str:
        """Return in words why the clock is worse than *required* seconds, "" if it is not."""
        if not self.synchronised:
            return "the clock is not synchronised"
        if self.max_error > required:
            return f"the clock may be wrong by {self.max_error:.3f} s"
        return ""


def quality(adjtimex: Adjtimex | None = None) -> Quality:
    """Return how good the clock is now. Raises UnknownError, as where a sandbox forbids to ask."""
    found = Timex()
    try:
        state = (adjtimex or _adjtimex)(found)
    except OSError as error:
        raise UnknownError(f"adjtimex: {error.strerror}") from error
    synchronised = state != TIME_ERROR and not found.status & STA_UNSYNC
    return Quality(synchronised, found.maxerror / 1e6, _LEAPS.get(state))


def _adjtimex(timex: Timex) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    # With no modes it only reads, for which no right is needed.
    timex.modes = 0
    state: int = libc.adjtimex(ctypes.byref(timex))
    if state < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return state
