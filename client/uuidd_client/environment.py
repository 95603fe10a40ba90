"""What the environment says, where the program does not."""

from __future__ import annotations

import os
from typing import Any

from uuidd_client.clocks import YEAR


def default_path() -> str:
    """Give the socket to use when none is named: $UUIDD_SOCKET, else where libuuid looks."""
    return os.environ.get("UUIDD_SOCKET") or "/run/uuidd/request"


def default_timeout(seconds: float = 0.2) -> float:
    """Give the time-out to use when none is named: $UUIDD_TIMEOUT, else *seconds*.

    Raises ValueError when the variable holds no number of seconds, or none above 0.
    """
    given = os.environ.get("UUIDD_TIMEOUT")
    if not given:
        return seconds
    try:
        value = float(given)
    except ValueError:
        value = 0.0
    # In this order, for nan is neither.
    if not 0 < value < float("inf"):
        raise ValueError(f"UUIDD_TIMEOUT is {given!r}; it must be a number of seconds above 0")
    return min(value, YEAR)


def may_fall_back(wanted: Any) -> bool:
    """Give whether to fall back: if it is *wanted*, and $UUIDD_FALLBACK is not 0."""
    return bool(wanted) and os.environ.get("UUIDD_FALLBACK") != "0"
