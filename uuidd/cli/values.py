"""The values of options: paths, numbers within a range, times."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

MAX_WHOLE = 1_000_000_000
"""More than any count or number of seconds that makes sense here."""


def path(text: str) -> Path:
    """Give a path. Raises ArgumentTypeError for an empty one."""
    if not text:
        raise argparse.ArgumentTypeError("the path is empty")
    return Path(text)


def whole(least: int, most: int = MAX_WHOLE) -> Callable[[str], int]:
    """Give what reads a whole number from *least* to *most*, and names both where it refuses."""

    def read(text: str) -> int:
        plain = text.isascii() and text.isdigit() and len(text) <= len(str(MAX_WHOLE))
        if not (plain and least <= int(text) <= most):
            raise argparse.ArgumentTypeError(
                f"{text[:40]!r} is no whole number from {least} to {most}"
            )
        return int(text)

    return read


def seconds(least: float = 0.0) -> Callable[[str], float]:
    """Give what reads a number of seconds, *least* or more; with 0, any number above it."""
    span = f"from {least:g} to {MAX_WHOLE}" if least else f"above 0, {MAX_WHOLE} at most"

    def read(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = 0.0
        if not (0 < value <= MAX_WHOLE and least <= value):
            raise argparse.ArgumentTypeError(f"{text[:40]!r} is no number of seconds {span}")
        return value

    return read


def unix_ms(text: str) -> int:
    """Give the Unix milliseconds of a number of them, or of a time with an offset (RFC 3339)."""
    if text.isascii() and text.isdigit() and len(text) < 16:
        return int(text)
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        time = None
    if time is None or time.tzinfo is None:
        raise argparse.ArgumentTypeError(
            f"{text[:40]!r} is neither a whole number of milliseconds since 1970 nor a time with an"
            " offset, like 2015-01-01T00:00:00Z"
        )
    ms = (time - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
    if ms < 0:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} lies before 1970")
    return ms
