"""Withholds the steady kinds after a start until the kernel holds the clock for good enough.

The kernel says so by adjtimex(2), which needs no right to be asked. A time daemon (chrony, ntpd,
systemd-timesyncd) tells the kernel. The kernel adds 0.5 ms a second to the largest error, and calls
the clock unsynchronised when nobody has told it anything for long.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import trio

from uuidd.core.timeline.timelines import Reading, Timelines
from uuidd.refused import Refused
from uuidd.server import events

LOOK_SECONDS = 1.0
"""Between two looks at the clock's quality while the steady kinds are withheld."""


STA_UNSYNC = 0x40
"""The bit of the kernel's status that says that nothing sets the clock."""

TIME_INS, TIME_DEL, TIME_OOP, TIME_ERROR = 1, 2, 3, 5
"""What adjtimex returns when a leap second is to be inserted or deleted at the end of the day,
while it is inserted, and when the clock is not synchronised."""

Leap = Literal["insert", "delete", "now"]

_LEAPS: dict[int, Leap] = {TIME_INS: "insert", TIME_DEL: "delete", TIME_OOP: "now"}


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


class Quality(NamedTuple):
    """Whether the kernel holds the clock for *synchronised*, and by how much it may be wrong.

    *max_error* is in seconds. *leap* is a leap second that the kernel is to insert or delete at the
    end of the day (UTC), or inserts now. *unknown* says why the kernel tells nothing, "" if it
    does.
    """

    synchronised: bool | None = None
    max_error: float | None = None
    leap: Leap | None = None
    unknown: str = ""

    def lack(self, required: float) -> str:
        """Return in words why the clock is worse than *required* seconds, "" if it is not."""
        if self.max_error is None:
            return f"the kernel does not say how good the clock is ({self.unknown})"
        if not self.synchronised:
            return "the clock is not synchronised"
        if self.max_error > required:
            return f"the clock may be wrong by {self.max_error:.3f} s"
        return ""


def quality(adjtimex: Adjtimex | None = None) -> Quality:
    """Return how good the clock is now. It is unknown where a sandbox forbids to ask."""
    found = Timex()
    try:
        state = (adjtimex or _adjtimex)(found)
    except OSError as error:
        return Quality(unknown=f"adjtimex: {error.strerror}")
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


def check_sync(required: float | None, ask: Callable[[], Quality] = quality) -> None:
    """Check that the kernel says how good the clock is, if that is *required*. Raises Refused."""
    if required is not None and (found := ask()).unknown:
        raise Refused(
            f"--require-sync {required:g}: {found.lack(required)}; leave out the option or, under"
            " systemd, set ProtectClock=no and SystemCallFilter=adjtimex clock_adjtime in a drop-in"
            " of the service"
        )


def withheld(required: float | None, ask: Callable[[], Quality] = quality) -> str:
    """Return why steady ids are withheld now, in a clause; "" if they are not."""
    if required is None or not (lack := ask().lack(required)):
        return ""
    return (
        f"{lack}, and --require-sync withholds the steady kinds after a start until its error is"
        f" at most {required:g} s"
    )


class Trust:
    """Releases *timelines* once the clock's error is at most *required* seconds; None for at once.

    *ask* asks the kernel, and *read* reads the clock.
    """

    def __init__(
        self,
        timelines: Timelines,
        read: Callable[[], Reading],
        required: float | None = None,
        ask: Callable[[], Quality] = quality,
    ) -> None:
        self._timelines, self._steady = timelines, timelines.steady
        self._read = read
        self._required = required
        self._ask = ask

    async def run(self) -> None:
        """Look at the clock each second until the steady kinds can begin, then return."""
        if not self._steady.withheld:
            return
        events.withheld(self._steady.withheld)
        while why := withheld(self._required, self._ask):
            self._steady.withheld = why
            await trio.sleep(LOOK_SECONDS)
        at = self._read()
        self._timelines.release(at=at)
        events.released(self._steady, at)

    def status(self) -> dict[str, Any]:
        """Return the clock's quality for ``status``; what is not known is None, with a reason."""
        chosen = {"required_error": self._required, "withheld": self._steady.withheld}
        return self._ask()._asdict() | chosen
