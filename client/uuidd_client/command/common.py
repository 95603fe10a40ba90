"""What the commands of ``uuidctl`` share: their client, and their error."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from uuidd_client.client import Client
from uuidd_client.errors import DaemonUnavailable
from uuidd_client.system import SERVICE, default_path, given_timeout

if TYPE_CHECKING:
    from uuidd_client.connection import Connection

TIMEOUT = 1.0
"""Seconds to wait for the daemon where $UUIDD_TIMEOUT does not say."""

LANGUAGES = {"c": "C", "python": "Python"}
"""In what the client makes ids, by the name of the implementation."""


class CommandError(Exception):
    """A command failed; the message is one line that says why and names the way out."""


def complain(error: Exception | str) -> None:
    """Print an error, with the way out, on standard error if that is open."""
    way_out = ""
    if isinstance(error, DaemonUnavailable) and error.code is None and error.path == SERVICE:
        # systemd keeps the socket open of a service that fails at its start.
        way_out = "; if it is a service, see journalctl -u uuidd"
    if sys.stderr is not None:
        print(f"uuidctl: {error}{way_out}", file=sys.stderr)


def client(socket: str | None, *, fallback: bool = True) -> Client:
    """Return a client of the daemon at *socket*.

    It waits no longer for an answer than a person or a health check does.

    Raises CommandError if $UUIDD_TIMEOUT is not a number of seconds above 0.
    """
    return Client(socket, fallback, timeout=_timeout())


def connection(socket: str | None) -> Connection:
    """Return a connection to the daemon at *socket*, for single requests. Otherwise as ``client``.

    Raises CommandError.
    """
    # Not at the start: most commands need none.
    from uuidd_client.connection import Connection

    return Connection(socket or default_path(), _timeout())


def _timeout() -> float:
    try:
        return given_timeout() or TIMEOUT
    except ValueError as error:
        raise CommandError(str(error)) from error
