"""Unique ids of all kinds from this host's uuidd, at memory speed; most also without one.

    >>> from uuidd_client import uuid1, uuid7
    >>> uuid1()
    UUID('...')

``uuid1``, ``uuid6``, ``uuid7``, ``snowflake``, ``flake``, ``ulid``, ``ksuid`` and ``push_id`` use
one shared ``Client``, with the socket of ``$UUIDD_SOCKET`` or else /run/uuidd/request. All are
thread-safe, and safe to use after a fork; the methods of ``Client`` say what each gives.

``at_time``, ``Backfill``, ``bounds`` and ``sort_key`` are for ids of times past and to come,
``inspect`` is for ids of any origin; they ask no daemon.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from uuidd_client import lazy
from uuidd_client.client import Client
from uuidd_client.errors import DaemonUnavailable, NoWorkerId, RateExceeded, TimeOutOfRange

if TYPE_CHECKING:
    from uuidd.core.ids import inspect as inspecting
    from uuidd_client.times import Backfill, at_time, bounds, sort_key
else:
    inspecting = lazy.Module("uuidd.core.ids.inspect")

__all__ = [
    "Backfill",
    "Client",
    "DaemonUnavailable",
    "NoWorkerId",
    "RateExceeded",
    "TimeOutOfRange",
    "at_time",
    "bounds",
    "flake",
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

_Draw = TypeVar("_Draw", bound=Callable[[], Any])

_shared = Client()


def _named(name: str, draw: _Draw) -> _Draw:
    """Give *draw* as the function of this module that pickles, frameworks and people look for."""
    method = getattr(Client, name)
    draw.__module__, draw.__name__, draw.__qualname__ = __name__, name, name
    draw.__doc__, draw.__annotations__ = method.__doc__, method.__annotations__
    return draw


# The drawing functions themselves, for one around each would cost a tenth of its speed.
uuid1 = _named("uuid1", _shared.factory("v1"))
uuid6 = _named("uuid6", _shared.factory("v6"))
uuid7 = _named("uuid7", _shared.factory("v7"))
snowflake = _named("snowflake", _shared.factory("snowflake"))
flake = _named("flake", _shared.factory("flake"))
ulid = _named("ulid", _shared.factory("ulid"))
ksuid = _named("ksuid", _shared.factory("ksuid"))
push_id = _named("push_id", _shared.factory("push_id"))


def inspect(
    text: str, *, kind: str | None = None, epoch: int | None = None, raw: bool = False
) -> list[inspecting.Reading]:
    """Give the plausible readings of an id's text, most likely first; there is at least one.

    With *kind* the reading as that kind, likely or not, of a text as that kind is written. With
    *raw* beside it the text may also be the id's bits: an integer, bytes in hex, or the text of
    another kind of as many bits. *epoch*, in Unix milliseconds, is that of Snowflakes, or that of
    *kind*. Space around the text is passed over.

    Raises ValueError, naming the text, when nothing is plausible or it cannot be of *kind*, and for
    a *kind* or *epoch* that is none; TypeError for a text that is no str.
    """
    return inspecting.readings(text, kind=kind, epoch=epoch, raw=raw)


def __getattr__(name: str) -> Any:
    """Import at first use what makes no ids of the present: it costs as much as all the rest."""
    if name in ("Backfill", "at_time", "bounds", "sort_key"):
        from uuidd_client import times

        return getattr(times, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
