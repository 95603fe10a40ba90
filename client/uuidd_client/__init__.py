"""Unique ids of all kinds from this host's uuidd, at memory speed; most also without one.

    >>> from uuidd_client import uuid1, uuid7
    >>> uuid1()
    UUID('...')

``uuid1``, ``uuid6``, ``uuid7``, ``snowflake``, ``flake``, ``ulid``, ``ksuid`` and ``push_id`` use
one shared ``Client``, with the socket of ``$UUIDD_SOCKET`` or else /run/uuidd/request. All are
thread-safe, and safe to use after a fork; the methods of ``Client`` say what each gives.

``form``, ``Backfill``, ``bounds`` and ``sort_key`` are for ids of times past and to come,
``inspect`` is for ids of any origin; they ask no daemon.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from uuidd_client.client import Client
from uuidd_client.errors import DaemonUnavailable, NoWorkerId, RateExceeded

if TYPE_CHECKING:
    from uuidd.core.ids.readings import readings as inspect
    from uuidd_client.given import Backfill, bounds, form, sort_key

__all__ = [
    "Backfill",
    "Client",
    "DaemonUnavailable",
    "NoWorkerId",
    "RateExceeded",
    "bounds",
    "flake",
    "form",
    "inspect",
    "ksuid",
    "push_id",
    "snowflake",
    "sort_key",
    "ulid",
    "uuid1",
    "uuid6",
    "uuid7",
]

_shared = Client()

# The drawing functions themselves, for a method around each would cost a tenth of its speed.
uuid1 = _shared.drawer("v1")
uuid6 = _shared.drawer("v6")
uuid7 = _shared.drawer("v7")
snowflake = _shared.drawer("snowflake")
flake = _shared.drawer("flake")
ulid = _shared.drawer("ulid")
ksuid = _shared.drawer("ksuid")
push_id = _shared.drawer("push_id")


def __getattr__(name: str) -> Any:
    """Import at first use what makes no ids of the present: it costs as much as all the rest."""
    if name in ("Backfill", "bounds", "form", "sort_key"):
        from uuidd_client import given

        return getattr(given, name)
    if name == "inspect":
        from uuidd.core.ids.readings import readings

        return readings
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
