"""The values that options of ``uuidd`` take: each is read from text, or refused in one line."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from uuidd.core.ids.snowflake import EPOCH_BITS, WORKER_BITS
from uuidd.refused import Refused

MAX_WHOLE = 1_000_000_000
"""More than any count or number of seconds that makes sense here."""


def path(text: str) -> Path:
    """Return a path. Raises ArgumentTypeError for an empty one."""
    if not text:
        raise argparse.ArgumentTypeError("the path is empty")
    return Path(text)


def whole(least: int, most: int = MAX_WHOLE) -> Callable[[str], int]:
    """Return a type of arguments: whole numbers from *least* to *most*."""

    def read(text: str) -> int:
        plain = text.isascii() and text.isdigit() and len(text) <= len(str(MAX_WHOLE))
        if not (plain and least <= int(text) <= most):
            raise argparse.ArgumentTypeError(
                f"{text[:40]!r} is not a whole number from {least} to {most}"
            )
        return int(text)

    return read


def seconds(least: float = 0.0) -> Callable[[str], float]:
    """Return a type of arguments: seconds, *least* or more; if that is 0, more than 0."""
    span = f"from {least:g} to {MAX_WHOLE}" if least else f"above 0, {MAX_WHOLE} at most"

    def read(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = 0.0
        if not (0 < value <= MAX_WHOLE and least <= value):
            raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a number of seconds {span}")
        return value

    return read


def worker(text: str) -> int | str:
    """Return a worker number, or the URL of an engine, which is checked here."""
    if "://" not in text:
        return whole(0, (1 << WORKER_BITS) - 1)(text)
    # Only hosts of a fleet pay for it.
    from uuidd.fleet.address import parse

    try:
        parse(text)
    except Refused as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return text


def unix_ms(text: str) -> int:
    """Return Unix milliseconds, from their number or from a time with an offset (RFC 3339)."""
    if text.isascii() and text.isdigit() and len(text) < 16:
        number = int(text)
        if number >> EPOCH_BITS:
            raise argparse.ArgumentTypeError(
                f"{text!r} has more than {EPOCH_BITS} bits; name {(1 << EPOCH_BITS) - 1}"
                " milliseconds since 1970 at most"
            )
        return number
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
