"""The clock of the client's hot path: for ages."""

from __future__ import annotations

import time
from functools import partial

elapsed = partial(time.clock_gettime, time.CLOCK_BOOTTIME)
"""Seconds on a clock that is never set, and that counts a suspend too."""
