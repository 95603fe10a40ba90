"""What the client takes from its system: clocks, random bits and environment variables."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable
from functools import partial

from uuidd.core.ids.ticks import UNIX_EPOCH

FINITE = "a finite number of seconds"

YEAR = 3e7
"""The longest time-out, in seconds: Python's own time-outs overflow at some 292 years."""


class ClientClock:
    """The time that a client reads and waits for: that of the system, unless a test overrides it.

    freezegun does not find these functions, because none of them is an attribute of a module. The
    C extension reads the system's clock by itself.
    """

    elapsed: Callable[[], float] = staticmethod(partial(time.clock_gettime, time.CLOCK_BOOTTIME))
    """Seconds on a clock that is never set and that counts a suspend: for time-outs and rates."""

    utc_ns: Callable[[], int] = staticmethod(partial(time.clock_gettime_ns, time.CLOCK_REALTIME))
    """Nanoseconds of UTC since 1970."""

    def pause(self, seconds: float) -> None:
        """Wait *seconds*. Under libfaketime the system call of ``time.sleep`` may fail."""
        select.select([], [], [], seconds)

    def utc_tick(self) -> int:
        """Return the tick that UTC is in."""
        return self.utc_ns() // 100 + UNIX_EPOCH


SYSTEM_CLOCK = ClientClock()
"""The clock of all clients but those of tests."""


def random_bits(count: int) -> int:
    """Return an int of *count* random bits. None are read ahead: a child would share them."""
    return int.from_bytes(os.urandom((count + 7) // 8), "big") >> -count % 8


SERVICE = "/run/uuidd/request"
"""The socket of the service, which libuuid uses too."""


class WrongVariable(ValueError):
    """An environment variable has a value that it cannot have; one line that names both."""


def default_path() -> str:
    """Return the socket to use when none is named: $UUIDD_SOCKET, or that of the service."""
    return os.environ.get("UUIDD_SOCKET") or SERVICE


def given_timeout() -> float | None:
    """Return the time-out of $UUIDD_TIMEOUT, None if there is none.

    Raises WrongVariable if the variable holds no number of seconds above 0.
    """
    value = os.environ.get("UUIDD_TIMEOUT")
    if not value:
        return None
    try:
        number = float(value)
    except ValueError:
        number = 0.0
    # Written so that nan, which compares false, is refused too.
    if not 0 < number < float("inf"):
        raise WrongVariable(f"UUIDD_TIMEOUT is {value!r}; it must be {FINITE} above 0")
    return min(number, YEAR)


def may_fall_back(wanted: bool) -> bool:
    """Whether to make ids without a daemon: if *wanted*, and if $UUIDD_FALLBACK is not 0.

    Raises WrongVariable if the variable is neither 0 nor 1.
    """
    value = os.environ.get("UUIDD_FALLBACK") or "1"
    if value not in ("0", "1"):
        raise WrongVariable(f"UUIDD_FALLBACK is {value!r}; it must be 0 or 1")
    return wanted and value == "1"
