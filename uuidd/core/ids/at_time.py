"""One id for a time that is given, past or future: the bits of an id with all its fields.

These are ids for old rows, tests and imports. They come from no clock and no timeline, so nothing
here knows which ids were given out before: see ``backfill`` for many.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from uuidd.core.ids import flake, ksuid, nodes, push_id, snowflake, ulid, versions
from uuidd.core.ids.checks import check_bits, look_up, shown
from uuidd.core.ids.nodes import MULTICAST, NODE_BITS
from uuidd.core.ids.ticks import GREGORIAN, TimeField, milliseconds
from uuidd.core.ids.times import Time, tick_of
from uuidd.core.ids.versions import CLOCK_SEQ_BITS

RandomBits = Callable[[int], int]
"""Gives that many random bits, as an int."""


class Given(NamedTuple):
    """The fields of an id beside its time, as the caller gives them; None is for not given."""

    clock_seq: int | None = None
    node: int | str | None = None
    worker: int | None = None
    datacenter: int | None = None
    sequence: int | None = None
    epoch: int = snowflake.TWITTER_EPOCH


class Pattern(NamedTuple):
    """An id whose every field but the time is settled: *at* gives its bits at a tick."""

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
    """Give the bits of the id of *kind* at *time*; what is random in it comes from *random*.

    v1, v6 and Flakes draw a clock_seq and a node that are not given; a drawn node has the multicast
    bit. Snowflakes need a worker, 0 to 1023, or a datacenter and a worker, 0 to 31 each; with no
    sequence they take the slot of the tick, as Flakes take the tick within the millisecond. The
    others carry the tick of *time* and random bits.

    Raises ValueError, naming it, for a field that the kind lacks, needs or cannot hold, and for a
    time out of its range; TypeError for a value of the wrong type.
    """
    given = Given(clock_seq, node, worker, datacenter, sequence, epoch)
    settled = pattern(kind, given, random)
    return settled.at(tick_of(time, settled.time))


def field_of(kind: str, epoch: int = snowflake.TWITTER_EPOCH) -> TimeField:
    """Give the time field of *kind*; *epoch*, in Unix milliseconds, is for Snowflakes.

    Raises ValueError, listing the kinds, for an unknown one, and for an epoch given to a kind whose
    epoch is fixed; TypeError for an epoch that is no int.
    """
    needs = _needs(kind)
    if type(epoch) is not int:
        raise TypeError(f"epoch is {shown(epoch)}; it must be an int, in Unix milliseconds")
    if needs.time is None:
        check_bits("epoch", epoch, snowflake.EPOCH_BITS)
        return snowflake.time_field(epoch)
    if epoch != snowflake.TWITTER_EPOCH:
        raise ValueError(f"epoch is {shown(epoch)}; only a snowflake has one, a {kind} has not")
    return needs.time


def pattern(kind: str, given: Given, random: RandomBits) -> Pattern:
    """Give the pattern of a kind's ids with these fields; what they lack is drawn now, once.

    Raises ValueError and TypeError as ``id_at_time`` does.
    """
    needs = _needs(kind)
    time = field_of(kind, given.epoch)
    for name in ("clock_seq", "node", "worker", "datacenter", "sequence"):
        value = getattr(given, name)
        if value is not None and name not in needs.fields:
            has = f"has {', '.join(needs.fields)}" if needs.fields else "has none but its time"
            raise ValueError(f"{name} is {shown(value)}; a {kind} has no {name}, it {has}")
    return Pattern(time, needs.settle(given, random))


def _gregorian(build: Callable[[int, int, int], int]) -> _Settle:
    def settle(given: Given, random: RandomBits) -> Callable[[int], int]:
        clock_seq = given.clock_seq
        if clock_seq is None:
            clock_seq = random(CLOCK_SEQ_BITS)
        check_bits("clock_seq", clock_seq, CLOCK_SEQ_BITS)
        node = _node(given, random)
        return lambda tick: build(tick, clock_seq, node)

    return settle


def _random_after_tick(of_tick: Callable[[int, int], int], bits: int) -> _Settle:
    return lambda _given, random: lambda tick: of_tick(tick, random(bits))


def _snowflake(given: Given, _random: RandomBits) -> Callable[[int], int]:
    worker = _worker(given)
    _check_sequence(given, snowflake.SEQUENCE_BITS)

    def at(tick: int) -> int:
        ms, rest = milliseconds(tick)
        sequence = snowflake.slot_at(rest) if given.sequence is None else given.sequence
        return snowflake.snowflake(ms, worker, sequence, epoch=given.epoch)

    return at


def _flake(given: Given, random: RandomBits) -> Callable[[int], int]:
    node = _node(given, random)
    _check_sequence(given, 16)

    def at(tick: int) -> int:
        ms, rest = milliseconds(tick)
        return flake.flake(ms, node, rest if given.sequence is None else given.sequence)

    return at


def _node(given: Given, random: RandomBits) -> int:
    if given.node is None:
        return random(NODE_BITS) | MULTICAST
    return nodes.node(given.node)


def _worker(given: Given) -> int:
    if given.worker is None:
        raise ValueError(
            "worker is missing; a snowflake needs a worker, 0 to 1023, or a datacenter and a"
            " worker, 0 to 31 each"
        )
    if given.datacenter is None:
        return check_bits("worker", given.worker, snowflake.WORKER_BITS)
    return snowflake.worker_from_halves(given.datacenter, given.worker)


def _check_sequence(given: Given, bits: int) -> None:
    if given.sequence is not None:
        check_bits("sequence", given.sequence, bits)


_Settle = Callable[[Given, RandomBits], Callable[[int], int]]
"""Checks and draws the fields of a kind, and gives what makes its ids of ticks."""


class _Needs(NamedTuple):
    """What a kind has: its time field (None: it hangs on an epoch) and the fields it takes."""

    time: TimeField | None
    fields: tuple[str, ...]
    settle: _Settle


_NEEDS = {
    "v1": _Needs(GREGORIAN["v1"], ("clock_seq", "node"), _gregorian(versions.v1)),
    "v6": _Needs(GREGORIAN["v6"], ("clock_seq", "node"), _gregorian(versions.v6)),
    "v7": _Needs(
        versions.V7_TIME, (), _random_after_tick(versions.v7_of_tick, versions.V7_RANDOM_BITS)
    ),
    "ulid": _Needs(ulid.TIME, (), _random_after_tick(ulid.of_tick, ulid.RANDOM_BITS)),
    "ksuid": _Needs(ksuid.TIME, (), _random_after_tick(ksuid.of_tick, ksuid.RANDOM_BITS)),
    "snowflake": _Needs(None, ("worker", "datacenter", "sequence"), _snowflake),
    "flake": _Needs(flake.TIME, ("node", "sequence"), _flake),
    "push_id": _Needs(push_id.TIME, (), _random_after_tick(push_id.of_tick, push_id.RANDOM_BITS)),
}

AT_TIME_KINDS = tuple(_NEEDS)
"""The kinds that are formed for a time."""


def _needs(kind: str) -> _Needs:
    return look_up("kind", kind, _NEEDS)
