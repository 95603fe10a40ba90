"""Ids of given times, past or future, and bounds for queries of a database.

Nothing here uses a daemon or a clock. An id is a ``uuid.UUID`` for v1, v6, v7 and cassandra, a
``str`` for ulid, ksuid, flake and push_id, and an ``int`` for snowflake.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Collection
from datetime import datetime
from typing import Any, Generic, Literal, NoReturn, TypedDict, TypeVar, Unpack, overload
from uuid import UUID

from uuidd.core.ids import nodes, snowflake, versions
from uuidd.core.ids.checks import check_bits, check_name, look_up, shown
from uuidd.core.ids.kinds import FORMATS, KINDS, PLACES, Kind
from uuidd.core.ids.nodes import RandomBits
from uuidd.core.ids.ticks import TICKS_PER_MS, TICKS_PER_SECOND, TimeField
from uuidd.core.ids.times import Time, text, tick_of
from uuidd_client.life import current
from uuidd_client.system import random_bits

TimedUuids = Literal["v1", "v6", "v7"]
BoundedUuids = Literal["v6", "v7", "cassandra"]
Texts = Literal["ulid", "ksuid", "flake", "push_id"]
Ints = Literal["snowflake"]

TIMED_FORMATS = {kind: form for kind, form in FORMATS.items() if form.time and kind in KINDS}
"""The descriptions of the kinds of which ids of a chosen time can be made."""

SORTED_FORMATS = {**TIMED_FORMATS, "cassandra": FORMATS["v1"]}
"""The descriptions of the kinds whose ids can be sorted by time."""

BOUNDED_KINDS = tuple(kind for kind in SORTED_FORMATS if kind != "v1")
"""The kinds that have bounds."""

UNITS = {"tick": 1, "us": 10, "ms": TICKS_PER_MS, "s": TICKS_PER_SECOND}
"""Units of time by name, in ticks. They begin with those of UTC, whatever a kind's epoch is."""

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
    """The fields of many ids, the unit within which each has its time, and a test's random bits."""

    unit: str | None
    _random: RandomBits


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
    _check_fields(fields, IdFields)
    made = Template(kind, random_bits, **fields)
    id: UUID | str | int = _maker(made.form)(made.at(tick_of(time, made.time)))
    return id


def _maker(form: Kind) -> Callable[[int], Any]:
    """Return what makes an id of its bits, in the type that programs have it in."""
    if form.forms[0] == "uuid":
        return lambda bits: UUID(int=bits)
    return form.to_text if form.forms[0] == "text" else int


def _check_fields(given: Collection[str], known: type[Fields]) -> None:
    """Raise TypeError unless all names are those of *known* fields."""
    for name in given:
        if name not in known.__annotations__:
            names = ", ".join(known.__annotations__)
            raise TypeError(f"{name} is not a field that can be passed here; these are {names}")


class Template:
    """The id of *kind* with these fields, at any time.

    v1, v6 and Flakes take a clock_seq and a node that are not given from *random*, now; a random
    node has the multicast bit. Without a sequence, a Snowflake has the slot of the tick, and a
    Flake the tick within the millisecond. The other kinds have the tick and bits from *random*.
    """

    def __init__(self, kind: str, random: RandomBits, **fields: Unpack[IdFields]) -> None:
        self.time = field_of(kind, fields.get("epoch", snowflake.TWITTER_EPOCH))
        self.form = form = TIMED_FORMATS[kind]
        self._random = random
        own = {*form.sizes, *(("datacenter",) if "worker" in form.sizes else ())}
        self.accepted = [each for each in IdFields.__annotations__ if each in own]
        """The fields that the kind has besides its time."""
        for name, value in fields.items():
            if value is not None and name not in (*self.accepted, "epoch"):
                has = f"only {', '.join(self.accepted)}" if self.accepted else "only its time"
                raise ValueError(f"{name} is {shown(value)}; a {kind} has no {name}, {has}")
        values: dict[str, int] = {}
        if "clock_seq" in own:
            given = fields.get("clock_seq")
            values["clock_seq"] = random(form.sizes["clock_seq"]) if given is None else given
        if "node" in own:
            node = fields.get("node")
            values["node"] = nodes.random_node(random) if node is None else nodes.node(node)
        if "worker" in own:
            datacenter, worker = fields.get("datacenter"), fields.get("worker")
            if worker is None:
                raise ValueError(
                    "worker is missing; a snowflake needs a worker, 0 to 1023, or a datacenter and"
                    " a worker, 0 to 31 each"
                )
            if datacenter is not None:
                worker = snowflake.worker_from_halves(datacenter, worker)
            values["worker"] = worker
        if (sequence := fields.get("sequence")) is not None:
            values["sequence"] = sequence
        self._tail = form.tail if sequence is None else ""
        self._fixed = form.bounds(0)[0]
        for name, bits in values.items():
            self._fixed |= form.put(name, check_bits(name, bits, form.sizes[name]))

    def at(self, tick: int) -> int:
        """Return the bits of the id at a tick. Raises ValueError for a tick out of the range."""
        form, time = self.form, self.time
        made = self._fixed | form.put("timestamp", time.raw(tick))
        if not self._tail:
            return made
        free = form.sizes[form.tail] - form.rest
        rest = (tick - time.epoch) % time.unit * form.slots // time.unit
        return made | form.put(form.tail, rest << free | (self._random(free) if free else 0))


class Used:
    """The places that are used, in any order, and the next that are free. Not for two threads.

    Each used place points to a later one, and no place between the two is free. Following these
    pointers finds the next free place. Then all pointers on the way are set to it, so that many
    repeats of one place cost little more than the first (Tarjan's union-find, on integers).
    """

    def __init__(self) -> None:
        self.later: dict[int, int] = {}

    def free(self, place: int) -> int:
        """Return the first free place at or past *place*."""
        later, found = self.later, place
        while found in later:
            found = later[found]
        while place != found:
            later[place], place = found, later[place]
        return found

    def add(self, place: int) -> None:
        """Use a free place."""
        self.later[place] = place + 1


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
    def __init__(self, kind: str, **given: Unpack[UnitFields]) -> None:
        # First, because a fork's child would share what is drawn at random here.
        self._life = current()
        unit, random = given.pop("unit", None), given.pop("_random", random_bits)
        fields: Fields = given
        # With a sequence of the caller's, all ids of a time would be the same.
        _check_fields(fields, Fields)
        self._template = Template(kind, random, **fields)
        self._time = self._template.time
        self._unit = unit_of(unit, self._time)
        self._unit_at = "us" if unit is None and self._time.unit == 1 else self._unit
        """The unit of a datetime, which has no digit for the tick."""
        self._places = PLACES[kind].places
        self._tick_of = snowflake.tick_of_place if kind == "snowflake" else lambda place: place
        self._used = Used()
        self._of_int: Callable[[int], Id] = _maker(self._template.form)
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
                made = self._of_int(self._made(time))
            finally:
                self._busy = False
        # Again, because a signal handler may have forked in the meantime.
        self._check_process()
        return made

    def _check_process(self) -> None:
        if self._life.over:
            raise RuntimeError(
                "this Backfill was made before a fork, or before a clone of the machine, and would"
                f" return the ids of its original again in process {os.getpid()}: make another one"
                " there"
            )

    # Each id has a *place* of its own: a tick, and for Snowflakes a slot. The first id of a time
    # takes the place at exactly that time. A repeat takes the next free place in the same unit; at
    # the end of the unit the search continues at its beginning.

    def _made(self, time: Time) -> int:
        """Take the place of an id for *time*, and return its bits."""
        tick = tick_of(time, self._time)
        unit = self._unit_at if isinstance(time, datetime) else self._unit
        first, end = whole(tick, UNITS[unit], self._time)
        begin, until = self._places(first, end - first)
        # That at *tick*, or the last one before it.
        place = self._used.free(self._places(tick + 1, 0)[0] - 1)
        if place >= until:
            place = self._used.free(begin)
            if place >= until:
                raise ValueError(self._full(tick, unit, until - begin))
        made = self._template.at(self._tick_of(place))
        self._used.add(place)
        return made

    def _full(self, tick: int, unit: str, places: int) -> str:
        other = [*self._template.accepted, "Backfill, whose random bits differ"][0]
        coarser = "a coarser unit or " if unit != "s" else ""
        begin = text(tick, UNITS[unit])
        return (
            f"time is {text(tick)}; all {places} places of the {unit} {begin} are taken: use"
            f" {coarser}another {other}"
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
    field = bounded_field_of(kind, epoch)
    first = last = tick_of(time, field)
    if until is not None:
        last = tick_of(until, field)
        if last < first:
            raise ValueError(f"until is {until}, which is before time, {time}")
    ticks = UNITS[unit_of(unit, field)]
    begin, end = whole(first, ticks, field)[0], whole(last, ticks, field)[1]
    form = SORTED_FORMATS[kind]
    low, high = form.bounds(field.raw(begin))[0], form.bounds(field.raw(end - 1))[1]
    if kind == "cassandra":
        low, high = low ^ _SIGNS, high ^ _SIGNS
    made = _maker(form)
    return made(low), made(high)


def sort_key(kind: str, id: UUID | str | int) -> bytes:
    """Return bytes of *id* that sort by time when they are compared as bytes.

    For v1 they are those of the v6 with the same fields. For cassandra they have Cassandra's order.
    For all others they are the id's own.

    Raises ValueError for an unknown kind and for an id that is not of *kind*; TypeError for an id
    that is not of the kind's type.
    """
    form = look_up("kind", kind, SORTED_FORMATS)
    expected = {"uuid": UUID, "text": str, "int": int}[form.forms[0]]
    if not isinstance(id, expected) or isinstance(id, bool):
        raise TypeError(f"id is {shown(id)}; a {kind} must be a {expected.__name__}")
    value = form.from_text(id) if isinstance(id, str) else int(id)
    form.unpack(value)
    if kind in ("v1", "cassandra"):
        value = versions.v1_to_v6(value)
    if kind == "cassandra":
        value ^= _SIGNS
    return value.to_bytes(form.size, "big")


def bounded_field_of(kind: str, epoch: int = snowflake.TWITTER_EPOCH) -> TimeField:
    """Return the time field of a kind that has bounds.

    Raises ValueError, listing the kinds, for another; for v1 the error says what to use instead.
    """
    if kind == "v1":
        raise ValueError(
            "kind is 'v1'; its ids do not sort by time as bytes, so it has no bounds: use"
            " cassandra for Cassandra's order, or v6 for ids that uuid_v1_to_v6 of postgresql.sql"
            " has converted"
        )
    check_name("kind", kind, BOUNDED_KINDS)
    # Cassandra's has v1's time, and no epoch either.
    return field_of("v1" if kind == "cassandra" else kind, epoch)._replace(kind=kind)


def field_of(kind: str, epoch: int = snowflake.TWITTER_EPOCH) -> TimeField:
    """Return the time field of *kind*; *epoch*, in Unix milliseconds, is for Snowflakes.

    Raises ValueError, listing the kinds, for an unknown one, and for an epoch passed for a kind
    whose epoch is fixed; TypeError for an epoch that is not an int.
    """
    time = look_up("kind", kind, TIMED_FORMATS).time
    check_bits("epoch", epoch, snowflake.EPOCH_BITS)
    if kind == "snowflake":
        return snowflake.time_field(epoch)
    if epoch != snowflake.TWITTER_EPOCH:
        raise ValueError(f"epoch is {shown(epoch)}; only a snowflake has one, a {kind} has not")
    assert time is not None  # noqa: S101  (each of these kinds has a time)
    return time


def unit_of(name: str | None, field: TimeField) -> str:
    """Return the name of a unit; None: that of the time field's own unit.

    Raises ValueError if it is unknown, or finer than the field's.
    """
    coarse = [each for each, ticks in UNITS.items() if ticks >= field.unit]
    if name is None:
        return coarse[0]
    check_name("unit", name, UNITS)
    if name not in coarse:
        raise ValueError(
            f"unit is {name!r}, which is finer than the time of a {field.kind}; it must be"
            f" {' or '.join(coarse)}"
        )
    return name


def whole(tick: int, ticks: int, field: TimeField) -> tuple[int, int]:
    """Return the half-open unit of *ticks* ticks around *tick*, cut at the ends of the field."""
    begin = tick - tick % ticks
    return max(begin, field.epoch), min(begin + ticks, field.end)


_SIGNS = 0x00808080_80808080
"""The highest bit of each byte after a UUID's variant: Cassandra compares these bytes as signed."""
