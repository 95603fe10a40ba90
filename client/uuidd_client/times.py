"""Ids for times that are given, past or future, and bounds to ask a database by.

Nothing here asks a daemon or looks at a clock. The types are each kind's own: ``uuid.UUID`` for v1,
v6, v7 and cassandra, ``str`` for ulid, ksuid, flake and push_id, ``int`` for snowflake.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import (
    Any,
    Generic,
    Literal,
    NamedTuple,
    NoReturn,
    TypedDict,
    TypeVar,
    Unpack,
    cast,
    overload,
)
from uuid import UUID

from uuidd.core.ids import backfill, flake, ksuid, push_id, snowflake, ulid
from uuidd.core.ids import bounds as bounding
from uuidd.core.ids.at_time import id_at_time
from uuidd.core.ids.checks import look_up, shown
from uuidd.core.ids.times import Time
from uuidd_client.fork_guard import alive
from uuidd_client.system import random_bits

TimedUuids = Literal["v1", "v6", "v7"]
BoundedUuids = Literal["v6", "v7", "cassandra"]
Uuids = Literal["v1", "v6", "v7", "cassandra"]
Texts = Literal["ulid", "ksuid", "flake", "push_id"]
Ints = Literal["snowflake"]

Id = TypeVar("Id")


class Fields(TypedDict, total=False):
    """What an id holds beside its time; each kind takes its own of these.

    v1 and v6 take clock_seq and node, a Flake node, a Snowflake worker (0 to 1023) or datacenter
    and worker (0 to 31 each), and an epoch in Unix milliseconds. A node is an int or a MAC address.
    """

    clock_seq: int | None
    node: int | str | None
    worker: int | None
    datacenter: int | None
    epoch: int


class IdFields(Fields, total=False):
    """The fields of one id: a Flake and a Snowflake take a sequence too."""

    sequence: int | None


@overload
def at_time(kind: TimedUuids, time: Time, **fields: Unpack[IdFields]) -> UUID: ...
@overload
def at_time(kind: Texts, time: Time, **fields: Unpack[IdFields]) -> str: ...
@overload
def at_time(kind: Ints, time: Time, **fields: Unpack[IdFields]) -> int: ...
@overload
def at_time(kind: str, time: Time, **fields: Unpack[IdFields]) -> UUID | str | int: ...
def at_time(kind: str, time: Time, **fields: Unpack[IdFields]) -> UUID | str | int:
    """Give the id of *kind* at *time*: an aware datetime, or an int in the kind's own unit.

    That is ticks of 100 ns since 1582-10-15 for v1 and v6, Unix seconds for ksuid, else Unix
    milliseconds. The fields are clock_seq and node for v1 and v6, node and sequence for flake, and
    worker, datacenter, sequence and epoch for snowflake, which needs a worker. Else what is not
    given is random. The same arguments may give the same id again: see ``Backfill`` for many.

    Raises ValueError, naming it, for a field that the kind lacks, needs or cannot hold, and for a
    time that it cannot tell; TypeError for a value of the wrong type.
    """
    made = id_at_time(kind, time, **fields, random=random_bits)
    return _SHAPES[kind].given(made)


class Backfill(Generic[Id]):
    """Gives ids of one kind for given times, in any order, and never the same one twice.

    The first id for a time carries that very time; a repeat a free one near it, within the same
    *unit*: ``tick``, ``us``, ``ms`` or ``s``. Left out, the unit is a second for ksuid, the
    microsecond of a datetime for v1 and v6 (the tick of an int), a millisecond for the others. A
    microsecond has 10 places, a millisecond 10,000, or 4096 for snowflake.

    The fields are those of ``at_time``, without a sequence. v1, v6 and flake draw a random node and
    clock_seq that are not given, once, so that their ids meet no others. With those given, and with
    a worker, it is for the caller to see that no one else makes ids with them for these times.

    Any thread may use it. A forked process may not, for it would give its parent's ids again.

    Raises ValueError and TypeError as ``at_time`` does, and ValueError for a *unit* that is none or
    finer than the kind tells.
    """

    @overload
    def __init__(
        self: Backfill[UUID],
        kind: TimedUuids,
        *,
        unit: str | None = None,
        **fields: Unpack[Fields],
    ) -> None: ...
    @overload
    def __init__(
        self: Backfill[str], kind: Texts, *, unit: str | None = None, **fields: Unpack[Fields]
    ) -> None: ...
    @overload
    def __init__(
        self: Backfill[int], kind: Ints, *, unit: str | None = None, **fields: Unpack[Fields]
    ) -> None: ...
    @overload
    def __init__(
        self: Backfill[Any], kind: str, *, unit: str | None = None, **fields: Unpack[Fields]
    ) -> None: ...
    def __init__(self, kind: str, *, unit: str | None = None, **fields: Unpack[Fields]) -> None:
        # First, for a child would share what is drawn at random here.
        self._alive = alive()
        self._ids: backfill.Backfill = backfill.Backfill(
            kind, random=random_bits, unit=unit, **fields
        )
        self._given: Callable[[int], Id] = cast("Any", _SHAPES[kind].given)
        self._lock = threading.RLock()
        self._busy = False

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a Backfill cannot be pickled or copied, for the copy would give its ids again: make"
            " another one"
        )

    def take(self, time: Time) -> Id:
        """Give an id for *time*: of that very time, or of its unit when that is taken.

        Raises ValueError when all places of the unit are taken, saying the way out, and for a time
        that the kind cannot tell; TypeError for what is no time; RuntimeError in a forked process,
        and in a signal handler that came in the midst of another ``take``. What raises changes
        nothing.
        """
        self._check_process()
        with self._lock:
            if self._busy:
                raise RuntimeError(
                    "this Backfill is in the midst of a take, which a signal handler broke into:"
                    " let the handler have one of its own"
                )
            self._busy = True
            try:
                made = self._ids.take(time)
            finally:
                self._busy = False
        given = self._given(made)
        # Once more, for a signal handler may have forked in the middle of it.
        self._check_process()
        return given

    def _check_process(self) -> None:
        if not self._alive[0]:
            raise RuntimeError(
                "this Backfill was made before a fork, and would give its parent's ids again in"
                f" process {os.getpid()}: make another one there"
            )


@overload
def bounds(
    kind: BoundedUuids,
    time: Time,
    until: Time | None = None,
    *,
    unit: str | None = None,
    epoch: int = ...,
) -> tuple[UUID, UUID]: ...
@overload
def bounds(
    kind: Texts,
    time: Time,
    until: Time | None = None,
    *,
    unit: str | None = None,
    epoch: int = ...,
) -> tuple[str, str]: ...
@overload
def bounds(
    kind: Ints,
    time: Time,
    until: Time | None = None,
    *,
    unit: str | None = None,
    epoch: int = ...,
) -> tuple[int, int]: ...
@overload
def bounds(
    kind: str,
    time: Time,
    until: Time | None = None,
    *,
    unit: str | None = None,
    epoch: int = ...,
) -> tuple[UUID, UUID] | tuple[str, str] | tuple[int, int]: ...
def bounds(
    kind: str,
    time: Time,
    until: Time | None = None,
    *,
    unit: str | None = None,
    epoch: int = snowflake.TWITTER_EPOCH,
) -> tuple[UUID | str | int, UUID | str | int]:
    """Give the lowest and the highest id, both inclusive, that the unit of *time* can hold.

    The unit is the kind's own, a tick for v6 and cassandra, a second for ksuid, else a millisecond,
    unless *unit* names a longer one: ``tick``, ``us``, ``ms`` or ``s``. With *until* they are those
    of all units from that of *time* to that of *until*, both held whole. cassandra is for v1 in
    Cassandra's order. A Flake's text sorts as its time only among texts of equal length.

    Raises ValueError for v1, which does not sort by time, for a unit finer than the kind's own, an
    *until* before *time* and a time that the kind cannot tell; TypeError for what is no time.
    """
    low, high = bounding.bounds(kind, time, until, unit=unit, epoch=epoch)
    given = _SHAPES[kind].given
    return given(low), given(high)


@overload
def sort_key(kind: Uuids, id: UUID) -> bytes: ...
@overload
def sort_key(kind: Texts, id: str) -> bytes: ...
@overload
def sort_key(kind: Ints, id: int) -> bytes: ...
@overload
def sort_key(kind: str, id: UUID | str | int) -> bytes: ...
def sort_key(kind: str, id: UUID | str | int) -> bytes:
    """Give bytes of an id that sort by time when they are compared as bytes.

    For v1 they are those of the v6 of the same fields, for cassandra they have Cassandra's own
    order, else they are the id's own.

    Raises ValueError for an unknown kind and for an id that is none of it, TypeError for one that
    is not of the kind's own type.
    """
    shape = look_up("kind", kind, _SHAPES)
    if not isinstance(id, shape.type):
        raise TypeError(f"id is {shown(id)}; a {kind} must be a {shape.type.__name__}")
    return bounding.sort_key(kind, shape.taken(id))


class _Shape(NamedTuple):
    """The type in which a kind's ids are given and taken, and how."""

    type: type
    given: Callable[[int], UUID | str | int]
    taken: Callable[[Any], int]


def _uuid(value: int) -> UUID:
    return UUID(int=value)


def _int(value: int) -> int:
    return value


_SHAPES = {
    **dict.fromkeys(("v1", "v6", "v7", "cassandra"), _Shape(UUID, _uuid, lambda id: id.int)),
    "ulid": _Shape(str, ulid.to_text, ulid.from_text),
    "ksuid": _Shape(str, ksuid.to_text, ksuid.from_text),
    "snowflake": _Shape(int, _int, _int),
    "flake": _Shape(str, flake.to_text, flake.from_text),
    "push_id": _Shape(str, push_id.to_text, push_id.from_text),
}
