"""Whether somebody has set UTC: timerfd_create(2), TFD_TIMER_CANCEL_ON_SET.

The kernel tells so each time that UTC is set, by whomever, also after a suspend. It tells nothing
when a process was stopped, written to a file, and restored later (CRIU, gVisor): no clock was set,
and yet UTC is ahead of what CLOCK_BOOTTIME says, which goes on from where the process was stopped.
"""

from __future__ import annotations

import ctypes
import errno
import os
import time

from uuidd.clones import NoSignal

TFD_TIMER_ABSTIME, TFD_TIMER_CANCEL_ON_SET = 1, 2

LATE = 9_000_000_000
"""A time in Unix seconds, in the year 2255, at which the timer is over: it needs one."""


class _Itimerspec(ctypes.Structure):
    _fields_ = (("interval", ctypes.c_long * 2), ("value", ctypes.c_long * 2))


class ClockSets:
    """Tells when UTC was set; *fd* can be read then. Raises NoSignal."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self.fd: int = self._libc.timerfd_create(time.CLOCK_REALTIME, os.O_NONBLOCK | os.O_CLOEXEC)
        if self.fd < 0:
            raise NoSignal(f"timerfd_create: {os.strerror(ctypes.get_errno())}")
        flags = TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET
        spec = _Itimerspec((0, 0), (LATE, 0))
        if self._libc.timerfd_settime(self.fd, flags, ctypes.byref(spec), None) < 0:
            number = ctypes.get_errno()
            self.close()
            raise NoSignal(f"timerfd_settime: {os.strerror(number)}")

    def was_set(self) -> bool:
        """Return whether UTC was set since the last call."""
        try:
            os.read(self.fd, 8)
        except BlockingIOError:
            return False
        except OSError as error:
            if error.errno != errno.ECANCELED:
                raise
        # Or it was set to a time after LATE.
        return True

    def close(self) -> None:
        """Listen no longer."""
        os.close(self.fd)
