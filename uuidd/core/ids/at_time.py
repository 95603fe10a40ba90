"""One id of a time that the caller chooses, past or future.

Such ids are for old rows, tests and imports. They come from no clock and no timeline, so nothing
here knows which ids exist already; ``backfill`` makes many that differ.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from uuidd.core.ids import flake, ksuid, nodes, push_id, snowflake, ulid, versions
from uuidd.core.ids.checks import check_bits, look_up, shown
from uuidd.core.ids.nodes import MULTICAST, NODE_BITS
from uuidd.core.ids.ticks import TIMES, TimeField, milliseconds
from uuidd.core.ids.times import Time, tick_of
from uuidd.core.ids.versions import CLOCK_SEQ_BITS

RandomBits = Callable[[int], int]
"""Returns that number of random bits, as an int."""


class IdFields(NamedTuple):
    """The fields of an id beside its time, as the caller passes them; None means not passed."""

    clock_seq: int | None = None
    node: int | str | None = None
    worker: int | None = None
    datacenter: int | None = None
    sequence: int | None = None
    epoch: int = snowflake.TWITTER_EPOCH


class Template(NamedTuple):
    """An id in which only the time is open: *at* returns its bits at a tick."""

    time: TimeField
    at: Callable[[int], int]


def id_at_time(
    kind: str,
    time: Time,
    *,
    clock_seq: int | None = None,
    node: int | str | None = None,
    worker: int | None = None,
    datacenter: int | None = None,
    sequence: int | None = None,
    epoch: int = snowflake.TWITTER_EPOCH,
    random: RandomBits,
) -> int:
    """Return the bits of an id of *kind* at *time*; its random bits come from *random*.

    For v1, v6 and Flakes, a clock_seq or node that is not passed is random; a random node has the
    multicast bit. Snowflakes need a worker, 0 to 1023, or a datacenter and a worker, 0 to 31 each.
    Without a sequence, a Snowflake has the slot of the tick, and a Flake the tick within the
    millisecond. The other kinds carry the tick of *time* and random bits.

    Raises ValueError, naming it, for a field that the kind does not have, needs or has too few bits
    for, and for a time out of its range; TypeError for a value of the wrong type.
    """
    fields = IdFields(clock_seq, node, worker, datacenter, sequence, epoch)
    made = template(kind, fields, random)
    return made.at(tick_of(time, made.time))


def field_of(kind: str, epoch: int = snowflake.TWITTER_EPOCH) -> TimeField:
    """Return the time field of *kind*; *epoch*, in Unix milliseconds, is for Snowflakes.

    Raises ValueError, listing the kinds, for an unknown one, and for an epoch passed for a kind
    whose epoch is fixed; TypeError for an epoch that is not an int.
    """
    time = look_up("kind", kind, _KINDS).time
    if type(epoch) is not int:
        raise TypeError(f"epoch is {shown(epoch)}; it must be an int, in Unix milliseconds")
    if time is None:
        check_bits("epoch", epoch, snowflake.EPOCH_BITS)
        return snowflake.time_field(epoch)
    if epoch != snowflake.TWITTER_EPOCH:
        raise ValueError(f"epoch is {shown(epoch)}; only a snowflake has one, a {kind} has not")
    return time


def template(kind: str, fields: IdFields, random: RandomBits) -> Template:
    """Return the template of a kind's ids with these fields; missing ones are drawn now, once.

    Raises ValueError and TypeError as ``id_at_time`` does.
    """
    made = look_up("kind", kind, _KINDS)
    time = field_of(kind, fields.epoch)
    for name in ("clock_seq", "node", "worker", "datacenter", "sequence"):
        value = getattr(fields, name)
        if value is not None and name not in made.fields:
            has = f"only {', '.join(made.fields)}" if made.fields else "only its time"
            raise ValueError(f"{name} is {shown(value)}; a {kind} has no {name}, {has}")
    return Template(time, made.prepare(fields, random))


def _gregorian(build: Callable[[int, int, int], int]) -> _Prepare:
    def prepare(fields: IdFields, random: RandomBits) -> Callable[[int], int]:
        clock_seq = fields.clock_seq
        if clock_seq is None:
            clock_seq = random(CLOCK_SEQ_BITS)
        check_bits("clock_seq", clock_seq, CLOCK_SEQ_BITS)
        node = _node(fields, random)
        return lambda tick: build(tick, clock_seq, node)

    return prepare


def _random_after_tick(of_tick: Callable[[int, int], int], bits: int) -> _Prepare:
    return lambda _fields, random: lambda tick: of_tick(tick, random(bits))


def _snowflake(fields: IdFields, _random: RandomBits) -> Callable[[int], int]:
    worker = _worker(fields)
    _check_sequence(fields, snowflake.SEQUENCE_BITS)

    def at(tick: int) -> int:
        ms, rest = milliseconds(tick)
        sequence = snowflake.slot_at(rest) if fields.sequence is None else fields.sequence
        return snowflake.snowflake(ms, worker, sequence, epoch=fields.epoch)

    return at


def _flake(fields: IdFields, random: RandomBits) -> Callable[[int], int]:
    node = _node(fields, random)
    _check_sequence(fields, 16)

    def at(tick: int) -> int:
        ms, rest = milliseconds(tick)
        return flake.flake(ms, node, rest if fields.sequence is None else fields.sequence)

    return at


def _node(fields: IdFields, random: RandomBits) -> int:
    if fields.node is None:
        return random(NODE_BITS) | MULTICAST
    return nodes.node(fields.node)


def _worker(fields: IdFields) -> int:
    if fields.worker is None:
        raise ValueError(
            "worker is missing; a snowflake needs a worker, 0 to 1023, or a datacenter and a"
            " worker, 0 to 31 each"
        )
    if fields.datacenter is None:
        return check_bits("worker", fields.worker, snowflake.WORKER_BITS)
    return snowflake.worker_from_halves(fields.datacenter, fields.worker)


def _check_sequence(fields: IdFields, bits: int) -> None:
    if fields.sequence is not None:
        check_bits("sequence", fields.sequence, bits)


_Prepare = Callable[[IdFields, RandomBits], Callable[[int], int]]
"""Checks a kind's fields, draws the missing ones, and returns what makes ids of ticks."""


class _Kind(NamedTuple):
    """A kind's time field (None if it depends on an epoch), and the fields that it accepts."""

    time: TimeField | None
    fields: tuple[str, ...]
    prepare: _Prepare


_KINDS = {
    "v1": _Kind(TIMES["v1"], ("clock_seq", "node"), _gregorian(versions.v1)),
    "v6": _Kind(TIMES["v6"], ("clock_seq", "node"), _gregorian(versions.v6)),
    "v7": _Kind(
        versions.V7_TIME, (), _random_after_tick(versions.v7_of_tick, versions.V7_RANDOM_BITS)
    ),
    "ulid": _Kind(ulid.TIME, (), _random_after_tick(ulid.of_tick, ulid.RANDOM_BITS)),
    "ksuid": _Kind(ksuid.TIME, (), _random_after_tick(ksuid.of_tick, ksuid.RANDOM_BITS)),
    "snowflake": _Kind(None, ("worker", "datacenter", "sequence"), _snowflake),
    "flake": _Kind(flake.TIME, ("node", "sequence"), _flake),
    "push_id": _Kind(push_id.TIME, (), _random_after_tick(push_id.of_tick, push_id.RANDOM_BITS)),
}

AT_TIME_KINDS = tuple(_KINDS)
"""The kinds of which ids of a chosen time can be made."""
