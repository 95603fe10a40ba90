"""Unique ids of all common kinds, from the uuidd of this host or, without one, from this process.

    >>> from uuidd_client import uuid1, uuid7
    >>> uuid1()
    UUID('...')

``uuid1``, ``uuid6``, ``uuid7``, ``snowflake``, ``flake``, ``ulid``, ``ksuid`` and ``push_id`` use
one shared ``Client`` of the socket $UUIDD_SOCKET, or of /run/uuidd/request if that is not set. They
may be used in any thread and after a fork; the methods of ``Client`` say what each returns.

``at_time``, ``Backfill``, ``bounds`` and ``sort_key`` are for ids of given times, past or future.
``time_of`` and ``inspect`` are for ids of any origin. These six use no daemon. ``inspect`` has the
name of a module of Python's, so ``from uuidd_client import *`` leaves it out.

``implementation`` is ``c`` if the optional C extension makes the ids, and otherwise ``python``.
"""

from __future__ import annotations

import uuid  # noqa: F401  (the functions have annotations of Client, which name it)
from collections.abc import Callable

from uuidd import __version__ as __version__
from uuidd.core.ids.checks import shown
from uuidd.core.typed import TYPE_CHECKING, Any
from uuidd_client import extension
from uuidd_client.client import Client
from uuidd_client.errors import DaemonUnavailable, NoWorkerId, TimeOutOfRange
from uuidd_client.notices import Stats

if TYPE_CHECKING:
    from typing import TypeVar

    from uuidd_client.readings import inspect as inspect
    from uuidd_client.readings import time_of
    from uuidd_client.times import Backfill, at_time, bounds, sort_key

    _Draw = TypeVar("_Draw", bound=Callable[[], Any])

__all__ = [
    "Backfill",
    "Client",
    "DaemonUnavailable",
    "NoWorkerId",
    "TimeOutOfRange",
    "at_time",
    "bounds",
    "flake",
    "ksuid",
    "push_id",
    "renew",
    "snowflake",
    "sort_key",
    "stats",
    "time_of",
    "ulid",
    "uuid1",
    "uuid6",
    "uuid7",
]

implementation = extension.implementation

_shared = Client()


def _client(given: Client | None) -> Client:
    """Return the client of the module's functions for None. Raises TypeError for anything else."""
    if not isinstance(given, Client | None):
        raise TypeError(f"client is {shown(given)}; it must be a Client")
    return _shared if given is None else given


def _function(name: str, draw: _Draw) -> _Draw:
    """Return *draw* as the function of this module that pickles and frameworks look up."""

    def drawn() -> Any:
        """Return the next id."""
        return draw.next  # type: ignore[attr-defined]  # only a Draw of the extension comes here

    function: Any = drawn if extension.core else draw
    method = getattr(Client, name)
    function.__module__, function.__name__, function.__qualname__ = __name__, name, name
    function.__doc__, function.__annotations__ = method.__doc__, method.__annotations__
    made: _Draw = function
    return made


uuid1 = _function("uuid1", _shared.factory("v1"))
uuid6 = _function("uuid6", _shared.factory("v6"))
uuid7 = _function("uuid7", _shared.factory("v7"))
snowflake = _function("snowflake", _shared.factory("snowflake"))
flake = _function("flake", _shared.factory("flake"))
ulid = _function("ulid", _shared.factory("ulid"))
ksuid = _function("ksuid", _shared.factory("ksuid"))
push_id = _function("push_id", _shared.factory("push_id"))


def renew() -> None:
    """Drop all that this process has made ahead: leases, blocks, random bits, a fallback's node.

    Call it in each process that is restored from a snapshot (of a virtual machine, or by CRIU),
    before it makes ids: otherwise two that are restored from the same one may make the same ids. On
    AWS Lambda with SnapStart it is called by itself. The ids that follow cost a request or two.
    """
    _shared.renew()


def stats() -> Stats:
    """Return what these functions have done in this process; see ``Client.stats``."""
    return _shared.stats()


def __getattr__(name: str) -> Any:
    """Import at first use what makes no ids of now: it costs as much as all the rest."""
    if name in ("Backfill", "at_time", "bounds", "sort_key"):
        from uuidd_client import times

        return getattr(times, name)
    if name in ("inspect", "time_of"):
        from uuidd_client import readings

        return getattr(readings, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
