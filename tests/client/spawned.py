"""What a spawned process does with what it is sent."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from uuid import UUID

from uuidd_client import Client


def draw_of(draw: Callable[[], UUID]) -> UUID:
    """Return what *draw* gives."""
    with warnings.catch_warnings(action="ignore"):
        return draw()


def draw_with(client: Client) -> UUID:
    """Return a v7 of *client*."""
    return draw_of(client.uuid7)
