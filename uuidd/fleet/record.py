"""What an engine keeps of a fleet's worker numbers: JSON that people can read.

``<namespace>/meta`` is written once, when the namespace is made, and never changed. Its ``id`` is
in the path of every register, ``<namespace>/<id>/0017``. So a namespace that was wiped and made
anew is another one to the hosts that knew the old. A register is never deleted.

Fields that this version does not know are kept when a register is written again.
"""

from __future__ import annotations

import json
import secrets
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from uuidd import version
from uuidd.core.ids.snowflake import EPOCH_BITS, WORKER_BITS
from uuidd.core.ids.ticks import TICK_BITS
from uuidd.refused import Refused
from uuidd.statefile import machine_hash

if TYPE_CHECKING:
    from uuidd.fleet.engines import Entry

FORMAT = 1
NUMBERS = 1 << WORKER_BITS
"""The worker numbers that there are: 0 to 1023."""

TOKEN_DIGITS = 16
"""Hex digits of a claim and of a namespace's id."""

_LONGEST = 253
"""Characters of a text in a register; a host's name has no more."""

_MAX_BYTES = 1 << 16

_Kind = TypeVar("_Kind", "Meta", "Record")


@dataclass(frozen=True, slots=True)
class Meta:
    """A namespace: its *id*, the *epoch* of its Snowflakes in Unix milliseconds, and its numbers.

    The numbers are *low* to *high*, both included. *other* holds the fields that this version does
    not know.
    """

    id: str
    epoch: int
    low: int = 0
    high: int = NUMBERS - 1
    other: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _check_token("id", self.id)
        _check_int("epoch", self.epoch, 1 << EPOCH_BITS)
        _check_int("low", self.low, NUMBERS)
        _check_int("high", self.high, NUMBERS)
        if self.low > self.high:
            raise ValueError(f"low {self.low} is above high {self.high}")


@dataclass(frozen=True, slots=True)
class Record:
    """A register: who has a number, or had it last, and how far its ticks may be used.

    *claim* is the random token of one holder's time with the number. At and past the tick *until*
    nothing was made with the number. *held* is false after a release; a *reserved* number is never
    leased to a new host. *host*, *machine* (a hash), *version* and *at* (the tick of the writer's
    UTC) are for people. *other* holds the fields that this version does not know. *entry* is the
    engine's, of which the record was read.
    """

    claim: str
    until: int
    held: bool
    reserved: bool = False
    host: str = ""
    machine: str = ""
    at: int = 0
    version: str = ""
    other: Mapping[str, object] = field(default_factory=dict)
    entry: Entry | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        _check_token("claim", self.claim)
        _check_int("until", self.until, 1 << TICK_BITS)
        _check_int("at", self.at, 1 << TICK_BITS)
        for name in ("held", "reserved"):
            if type(getattr(self, name)) is not bool:
                raise ValueError(f"{name} is {getattr(self, name)!r:.40}, not true or false")
        for name in ("host", "machine", "version"):
            value = getattr(self, name)
            if type(value) is not str or len(value) > _LONGEST or not value.isprintable():
                raise ValueError(f"{name} is {value!r:.40}, not a short text")


class Holder(NamedTuple):
    """Who writes, for people to read: a *host*, its *machine* (a hash), its daemon's *version*."""

    host: str = ""
    machine: str = ""
    version: str = ""


def this_host() -> Holder:
    """Return who this process writes as."""
    host = socket.gethostname()
    return Holder(host if host.isprintable() else "", machine_hash(), version())


def new_token() -> str:
    """Return a name that nothing else has: 64 random bits in hex."""
    return secrets.token_hex(TOKEN_DIGITS // 2)


def encode(what: Meta | Record) -> bytes:
    """Return the JSON that an engine keeps, on one line; equal values give equal bytes."""
    own = {name: getattr(what, name) for name in _own_fields(type(what))}
    return json.dumps({"v": FORMAT, **own, **what.other}).encode()


def decode(kind: type[_Kind], data: bytes, where: str) -> _Kind:
    """Return what is in *data*. Raises Refused, which names *where* it was read."""
    try:
        if len(data) > _MAX_BYTES:
            raise ValueError(f"it has {len(data)} bytes")
        body = json.loads(data)
        if not isinstance(body, dict):
            raise ValueError("it is no JSON object")
        number = body.pop("v", None)
        if number != FORMAT or type(number) is not int:
            raise ValueError(f"its format is {number!r:.40}, and this version reads {FORMAT}")
        known = _own_fields(kind)
        own = {name: value for name, value in body.items() if name in known}
        other = {name: value for name, value in body.items() if name not in known}
        return kind(**own, other=other)
    except (ValueError, TypeError, RecursionError) as error:
        raise Refused(f"{where} is no record of uuidd: {error}") from error


def _own_fields(kind: type[Meta | Record]) -> list[str]:
    return [each.name for each in fields(kind) if each.name not in ("other", "entry")]


def _check_token(name: str, value: object) -> None:
    if type(value) is not str or len(value) != TOKEN_DIGITS or set(value) - set("0123456789abcdef"):
        raise ValueError(f"{name} is {value!r:.40}, not {TOKEN_DIGITS} hex digits")


def _check_int(name: str, value: object, bound: int) -> None:
    if type(value) is not int or not 0 <= value < bound:
        raise ValueError(f"{name} is {value!r:.40}, not a whole number below {bound}")
