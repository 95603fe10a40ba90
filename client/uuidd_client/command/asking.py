"""The client of the commands: as patient as a person, who waits longer than a server's request."""

from __future__ import annotations

from uuidd_client.client import Client
from uuidd_client.environment import default_timeout

TIMEOUT = 1.0
"""Seconds to wait for the daemon where $UUIDD_TIMEOUT does not say."""


class SettingError(Exception):
    """What the environment says cannot be meant; one line that says why."""


def client(socket: str | None, *, fallback: bool = True, max_age: float = 0.1) -> Client:
    """Give a client of the daemon at *socket*. Raises SettingError."""
    try:
        return Client(socket, fallback, max_age, default_timeout(TIMEOUT))
    except ValueError as error:
        raise SettingError(str(error)) from error
