"""The two clocks of the client: one for ages, one for ids."""

from __future__ import annotations

import time
from functools import partial

from uuidd.core.ids.timebased import UNIX_EPOCH

elapsed = partial(time.clock_gettime, time.CLOCK_BOOTTIME)
"""Seconds on a clock that is never set, and that counts a suspend too."""


def utc_tick() -> int:
    """Give the tick that UTC is in."""
    return time.time_ns() // 100 + UNIX_EPOCH
