"""What the commands of ``uuidctl`` share."""

from __future__ import annotations

import argparse
import contextlib
import re
import sys
from collections.abc import Iterator

from uuidd.output import printable
from uuidd_client.client import Client
from uuidd_client.errors import DaemonUnavailable
from uuidd_client.system import SERVICE, given_timeout, may_fall_back

TIMEOUT = 1.0
"""Seconds to wait for the daemon where $UUIDD_TIMEOUT does not say: as long as a person does."""


class CommandError(Exception):
    """A command failed; the message is one line that says why and names the way out."""


def complain(error: Exception | str) -> None:
    """Print an error, with the way out, on standard error if that is open."""
    way_out = ""
    if isinstance(error, DaemonUnavailable) and error.code is None and error.path == SERVICE:
        # systemd keeps the socket open of a service that fails at its start.
        way_out = "; if it is a service, see journalctl -u uuidd"
    if sys.stderr is not None:
        print(f"uuidctl: {printable(str(error))}{way_out}", file=sys.stderr)


def timeout() -> float:
    """Return how many seconds to wait for the daemon. Raises WrongVariable."""
    return given_timeout() or TIMEOUT


def client(socket: str | None, *, fallback: bool = False) -> Client:
    """Return a client of the daemon at *socket*. Raises WrongVariable now, not at a call."""
    return Client(socket, may_fall_back(fallback), timeout=timeout())


def whole_number(text: str, least: int) -> int:
    """Return the number of an argument. Raises argparse's error unless it is *least* or more."""
    if not re.fullmatch(r"[0-9]{1,40}", text) or int(text) < least:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number, {least} or more")
    return int(text)


@contextlib.contextmanager
def of_our_version() -> Iterator[None]:
    """Raise CommandError for a status that is not as expected."""
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise CommandError(
            "the daemon's status cannot be shown, it may be of another version"
            f" ({type(error).__name__}: {str(error)[:60]}); --json prints all fields"
        ) from error
