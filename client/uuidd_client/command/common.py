"""What the commands of ``uuidctl`` share: their client, and their error."""

from __future__ import annotations

from uuidd_client.client import Client
from uuidd_client.system import default_timeout

TIMEOUT = 1.0
"""Seconds to wait for the daemon where $UUIDD_TIMEOUT does not say."""


class CommandError(Exception):
    """A command failed; the message is one line that says why and names the way out."""


def client(socket: str | None, *, fallback: bool = True, max_age: float = 0.1) -> Client:
    """Return a client of the daemon at *socket*.

    It waits longer for an answer than a server's request can, because a person is waiting.

    Raises CommandError if $UUIDD_TIMEOUT is not a number of seconds above 0.
    """
    try:
        return Client(socket, fallback, max_age, default_timeout(TIMEOUT))
    except ValueError as error:
        raise CommandError(str(error)) from error
