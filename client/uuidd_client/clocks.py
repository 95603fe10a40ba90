"""The clocks of the client."""

from __future__ import annotations

import select
import time
from collections.abc import Iterator
from functools import partial
from itertools import repeat, starmap

elapsed = partial(time.clock_gettime, time.CLOCK_BOOTTIME)
"""Seconds on a clock that is never set, and that counts a suspend too: for time-outs and rates."""

utc = partial(time.time)
"""Seconds of UTC since 1970: for ages, so that a block ends with a step of UTC in either direction.

The fastest reading of the system clock. time-machine sets that for a whole process; freezegun does
not find it here, behind a partial."""

YEAR = 3e7
"""Seconds that are as good as no end: Python's own time-outs overflow at some 292 years."""


def pause(seconds: float) -> None:
    """Wait so many seconds. Under libfaketime the system call behind ``time.sleep`` may fail."""
    select.select([], [], [], seconds)


def instants() -> Iterator[float]:
    """Give an endless iterator of what ``utc`` says, each read when it is asked for."""
    return starmap(utc.func, repeat(()))
