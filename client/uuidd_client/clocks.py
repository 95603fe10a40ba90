"""The clock of the client's hot path: for ages."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from itertools import repeat, starmap

elapsed = partial(time.clock_gettime, time.CLOCK_BOOTTIME)
"""Seconds on a clock that is never set, and that counts a suspend too."""


def instants() -> Iterator[float]:
    """Give an endless iterator of what ``elapsed`` says, each read when it is asked for."""
    return starmap(time.clock_gettime, repeat((time.CLOCK_BOOTTIME,)))
