"""Ids of given times, past or future, and bounds for queries of a database.

Nothing here uses a daemon or a clock. An id is a ``uuid.UUID`` for v1, v6, v7 and cassandra, a
``str`` for ulid, ksuid, flake and push_id, and an ``int`` for snowflake.
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

from uuidd.core.ids import backfill, snowflake
from uuidd.core.ids import bounds as bounding
from uuidd.core.ids.at_time import id_at_time
from uuidd.core.ids.checks import look_up, shown
from uuidd.core.ids.formats import FORMATS
from uuidd.core.ids.kinds import KINDS
from uuidd.core.ids.times import Time
from uuidd_client.life import current
from uuidd_client.system import random_bits

TimedUuids = Literal["v1", "v6", "v7"]
BoundedUuids = Literal["v6", "v7", "cassandra"]
Uuids = Literal["v1", "v6", "v7", "cassandra"]
Texts = Literal["ulid", "ksuid", "flake", "push_id"]
Ints = Literal["snowflake"]

Id = TypeVar("Id")


class Fields(TypedDict, total=False):
    """What an id holds besides its time.

    v1 and v6 take clock_seq and node. A Flake takes node. A Snowflake takes worker (0 to 1023), or
    datacenter and worker (0 to 31 each), and epoch in Unix milliseconds. A node is an int or a MAC
    address.
    """

    clock_seq: int | None
    node: int | str | None
    worker: int | None
    datacenter: int | None
    epoch: int


class IdFields(Fields, total=False):
    """The fields of one id: a Flake and a Snowflake take a sequence too."""

    sequence: int | None


class UnitFields(Fields, total=False):
    """The fields of many ids, and the unit within which each has its time."""

    unit: str | None


class BoundsFields(TypedDict, total=False):
    """The unit of bounds, and a Snowflake's epoch."""

    unit: str | None
    epoch: int


@overload
def at_time(kind: TimedUuids, time: Time, **fields: Unpack[IdFields]) -> UUID: ...
@overload
def at_time(kind: Texts, time: Time, **fields: Unpack[IdFields]) -> str: ...
@overload
def at_time(kind: Ints, time: Time, **fields: Unpack[IdFields]) -> int: ...
@overload
def at_time(kind: str, time: Time, **fields: Unpack[IdFields]) -> UUID | str | int: ...
def at_time(kind: str, time: Time, **fields: Unpack[IdFields]) -> UUID | str | int:
    """Return the id of *kind* at *time*: an aware datetime, or an int in the kind's own unit.

    That unit is ticks of 100 ns since 1582-10-15 for v1 and v6, Unix seconds for ksuid, and Unix
    milliseconds for all others. The fields are clock_seq and node for v1 and v6, node and sequence
    for flake, and worker, datacenter, sequence and epoch for snowflake, which needs a worker.
    Fields that are left out are random. The same arguments may return the same id again: use
    ``Backfill`` for many ids.

    Raises ValueError, naming the field, for a field that the kind does not have, needs or cannot
    hold, and for a time that it cannot hold; TypeError for a value of the wrong type.
    """
    made = id_at_time(kind, time, **fields, random=random_bits)
    return _TYPES[kind].of_int(made)


class Backfill(Generic[Id]):
    """Ids of one kind for given times, in any order, and never the same one twice.

    The first id for a time holds exactly that time. An id for a time that is used holds a free one
    near it, within the same *unit*: ``tick``, ``us``, ``ms`` or ``s``. By default the unit is a
    second for ksuid, the microsecond of a datetime (the tick of an int) for v1 and v6, and a
    millisecond for the others. A microsecond has 10 places, a millisecond 10,000, or 4096 for
    snowflake.

    The fields are those of ``at_time``, without a sequence. If node and clock_seq are left out, v1,
    v6 and flake draw them at random, once, so that their ids are distinct from all others. If they
    are given, and for a worker, the caller has to ensure that no other program makes ids with them
    for these times.

    Any thread may use it. A forked process may not, because it would return its parent's ids again.

    Raises ValueError and TypeError as ``at_time`` does, and ValueError for a *unit* that is unknown
    or finer than the time of the kind.
    """

    @overload
    def __init__(self: Backfill[UUID], kind: TimedUuids, **fields: Unpack[UnitFields]) -> None: ...
    @overload
    def __init__(self: Backfill[str], kind: Texts, **fields: Unpack[UnitFields]) -> None: ...
    @overload
    def __init__(self: Backfill[int], kind: Ints, **fields: Unpack[UnitFields]) -> None: ...
    @overload
    def __init__(self: Backfill[Any], kind: str, **fields: Unpack[UnitFields]) -> None: ...
    def __init__(self, kind: str, *, unit: str | None = None, **fields: Unpack[Fields]) -> None:
        # First, because a fork's child would share what is drawn at random here.
        self._life = current()
        self._ids: backfill.Backfill = backfill.Backfill(
            kind, random=random_bits, unit=unit, **fields
        )
        self._of_int: Callable[[int], Id] = cast("Any", _TYPES[kind].of_int)
        self._lock = threading.RLock()
        self._busy = False

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a Backfill cannot be pickled or copied, because the copy would return its ids again:"
            " make another one"
        )

    def take(self, time: Time) -> Id:
        """Return an id for *time*: of exactly that time, or of its unit if that time is used.

        Raises ValueError if all places of the unit are used, and for a time that the kind cannot
        hold; TypeError for anything that is not a time; RuntimeError in a forked process, after
        ``uuidd_client.renew``, after a clone of the machine that a daemon has noticed, and in a
        signal handler that has interrupted another ``take``. A call that raises changes nothing.
        """
        self._check_process()
        with self._lock:
            if self._busy:
                raise RuntimeError(
                    "a signal handler has interrupted a take of this Backfill: use another"
                    " Backfill in the handler"
                )
            self._busy = True
            try:
                made = self._ids.take(time)
            finally:
                self._busy = False
        result = self._of_int(made)
        # Again, because a signal handler may have forked in the meantime.
        self._check_process()
        return result

    def _check_process(self) -> None:
        if self._life.over:
            raise RuntimeError(
                "this Backfill was made before a fork, or before a clone of the machine, and would"
                f" return the ids of its original again in process {os.getpid()}: make another one"
                " there"
            )


@overload
def bounds(
    kind: BoundedUuids, time: Time, until: Time | None = None, **fields: Unpack[BoundsFields]
) -> tuple[UUID, UUID]: ...
@overload
def bounds(
    kind: Texts, time: Time, until: Time | None = None, **fields: Unpack[BoundsFields]
) -> tuple[str, str]: ...
@overload
def bounds(
    kind: Ints, time: Time, until: Time | None = None, **fields: Unpack[BoundsFields]
) -> tuple[int, int]: ...
@overload
def bounds(
    kind: str, time: Time, until: Time | None = None, **fields: Unpack[BoundsFields]
) -> tuple[UUID, UUID] | tuple[str, str] | tuple[int, int]: ...
def bounds(
    kind: str,
    time: Time,
    until: Time | None = None,
    *,
    unit: str | None = None,
    epoch: int = snowflake.TWITTER_EPOCH,
) -> tuple[UUID | str | int, UUID | str | int]:
    """Return the lowest and the highest possible id of the unit of *time*, both inclusive.

    The unit is the kind's own, unless *unit* names a longer one: ``tick``, ``us``, ``ms`` or ``s``.
    A kind's own unit is a tick for v6 and cassandra, a second for ksuid, and a millisecond for the
    others. With *until* the bounds are those of all units from that of *time* to that of *until*.
    cassandra is for v1 in Cassandra's order. A Flake's texts sort by time only if they have equal
    length.

    Raises ValueError for v1, which does not sort by time, for a unit finer than the kind's own, an
    *until* before *time* and a time that the kind cannot hold; TypeError for anything that is not a
    time.
    """
    low, high = bounding.bounds(kind, time, until, unit=unit, epoch=epoch)
    of_int = _TYPES[kind].of_int
    return of_int(low), of_int(high)


@overload
def sort_key(kind: Uuids, id: UUID) -> bytes: ...
@overload
def sort_key(kind: Texts, id: str) -> bytes: ...
@overload
def sort_key(kind: Ints, id: int) -> bytes: ...
@overload
def sort_key(kind: str, id: UUID | str | int) -> bytes: ...
def sort_key(kind: str, id: UUID | str | int) -> bytes:
    """Return bytes of *id* that sort by time when they are compared as bytes.

    For v1 they are those of the v6 with the same fields. For cassandra they have Cassandra's order.
    For all others they are the id's own.

    Raises ValueError for an unknown kind and for an id that is not of *kind*; TypeError for an id
    that is not of the kind's type.
    """
    expected = look_up("kind", kind, _TYPES)
    if not isinstance(id, expected.type):
        raise TypeError(f"id is {shown(id)}; a {kind} must be a {expected.type.__name__}")
    return bounding.sort_key(kind, expected.to_int(id))


class _Type(NamedTuple):
    """The type of a kind's ids, and how they are made of the id's bits, and the reverse."""

    type: type
    of_int: Callable[[int], UUID | str | int]
    to_int: Callable[[Any], int]


def _uuid(value: int) -> UUID:
    return UUID(int=value)


def _int(value: int) -> int:
    return value


_UUID = _Type(UUID, _uuid, lambda id: id.int)

_TYPES = {
    kind: {
        "uuid": _UUID,
        "text": _Type(str, form.to_text, form.from_text),
        "int": _Type(int, _int, _int),
    }[KINDS[kind].forms[0]]
    for kind, form in FORMATS.items()
    if form.time and kind in KINDS
} | {"cassandra": _UUID}
