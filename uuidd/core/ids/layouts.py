"""How ids of each kind are made of blocks, in each form of ``kinds``.

An id sits on a *place*: for nearly all kinds that is a tick; for Snowflakes, of which a millisecond
holds 4,096, a slot. Ids of some places in a row are drawn at once, at C's speed; a *run* is how far
that goes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import count as count_up
from itertools import islice, repeat
from struct import Struct
from typing import Any, NamedTuple

from uuidd.core.ids import bulk, flake, ksuid, push_id, runs, snowflake, ulid, unixtime
from uuidd.core.ids.bulk import RandomBytes
from uuidd.core.ids.origin import Origin
from uuidd.core.ids.timefield import GREGORIAN, TimeField

Draw = Callable[[int, int, Origin, RandomBytes], Iterator[Any]]
"""Gives the ids of so many places from the first on, all in one run.

The iterator runs in C: under the GIL each ``next`` is atomic, and several threads may share it.
"""

Joined = Callable[[int, int, Origin, RandomBytes], bytes | bytearray]
"""Gives the bytes of the ids of so many places from the first on, all in one run."""

_PACK_FLAKE = Struct(">QQ").pack
_PACK_SNOWFLAKE = Struct(">Q").pack


class Recipe(NamedTuple):
    """How ids of a kind are made.

    *forms* gives what draws each form; a ``uuid`` is drawn as an int. *room* tells how many places
    of a run there are from one on, *places* which lie on some ticks, half open, *ticks* how many
    ticks it takes to be sure of so many ids. *random*: an id has random bits, and a place gives
    another one each time. *joined* gives the bytes of all ids in one piece, faster than one by one;
    None where there is no such way.
    """

    forms: Mapping[str, Draw]
    room: Callable[[int], int]
    places: Callable[[int, int], tuple[int, int]]
    ticks: Callable[[int], int]
    random: bool
    joined: Joined | None


def time_fields(epoch: int) -> dict[str, TimeField]:
    """Give the time field of each kind that has a time; Snowflakes have *epoch*, in Unix ms."""
    return {
        **GREGORIAN,
        "v7": unixtime.TIME,
        "snowflake": snowflake.time_field(epoch),
        "flake": flake.TIME,
        "ulid": ulid.TIME,
        "ksuid": ksuid.TIME,
        "push_id": push_id.TIME,
    }


def _ticks(first: int, count: int) -> tuple[int, int]:
    return first, first + count


def _as_many(count: int) -> int:
    return count


def _gregorian(kind: str) -> Recipe:
    def form(draw: Callable[[str, int, int, int, int], Iterator[Any]]) -> Draw:
        return lambda first, count, origin, _: draw(
            kind, first, count, origin.clock_seq, origin.node
        )

    forms = {"uuid": form(runs.ints), "text": form(runs.texts), "bytes": form(runs.packed)}

    def joined(first: int, count: int, origin: Origin, _: RandomBytes) -> bytearray:
        return runs.joined(kind, first, count, origin.clock_seq, origin.node)

    return Recipe(forms, runs.room, _ticks, _as_many, random=False, joined=joined)


def _random_tailed(
    room: Callable[[int], int],
    forms: Mapping[str, Callable[[int, int, RandomBytes], Any]],
    packed: bulk.Packed | None = None,
) -> Recipe:
    def form(draw: Callable[[int, int, RandomBytes], Any]) -> Draw:
        return lambda first, count, _, random: iter(draw(first, count, random))

    made = {name: form(draw) for name, draw in forms.items()}

    def joined(first: int, count: int, _: Origin, random: RandomBytes) -> bytearray:
        assert packed is not None  # noqa: S101  (else this is not used)
        return packed(first, count, random)

    return Recipe(made, room, _ticks, _as_many, random=True, joined=packed and joined)


def _uuid_forms(packed: bulk.Packed) -> dict[str, Callable[[int, int, RandomBytes], Any]]:
    return {
        "uuid": bulk.ints(packed, 16),
        "text": bulk.uuid_texts(packed),
        "bytes": bulk.each(packed, 16),
    }


_ksuid_ints = bulk.ints(bulk.ksuids, ksuid.BYTES)


def _ksuid_texts(first: int, count: int, random: RandomBytes) -> Iterator[str]:
    return iter([ksuid.to_text(value) for value in _ksuid_ints(first, count, random)])


def _flakes(first: int, count: int, origin: Origin, _: RandomBytes) -> Iterator[int]:
    # Within a millisecond the sequence, the lowest bits, is all that changes.
    return islice(count_up(flake.of_tick(first, origin.node)), count)


def _flake_texts(first: int, count: int, origin: Origin, _: RandomBytes) -> Iterator[str]:
    return iter([flake.to_text(value) for value in _flakes(first, count, origin, _)])


def _flake_bytes(first: int, count: int, origin: Origin, _: RandomBytes) -> Iterator[bytes]:
    whole = flake.of_tick(first, origin.node)
    high, low = whole >> 64, whole & (1 << 64) - 1
    return map(_PACK_FLAKE, repeat(high), range(low, low + count))


def _snowflakes(first: int, count: int, origin: Origin, _: RandomBytes) -> Iterator[int]:
    if origin.worker is None:
        raise ValueError("worker is None; a Snowflake needs a worker number, 0 to 1023")
    begin = snowflake.of_place(first, origin.worker, epoch=origin.epoch)
    return iter(range(begin, begin + count))


def _snowflake_texts(first: int, count: int, origin: Origin, _: RandomBytes) -> Iterator[str]:
    return map(str, _snowflakes(first, count, origin, _))


def _snowflake_bytes(first: int, count: int, origin: Origin, _: RandomBytes) -> Iterator[bytes]:
    return map(_PACK_SNOWFLAKE, _snowflakes(first, count, origin, _))


RECIPES: Mapping[str, Recipe] = {
    "v1": _gregorian("v1"),
    "v4": _random_tailed(lambda _: runs.RUN, _uuid_forms(bulk.v4), bulk.v4),
    "v6": _gregorian("v6"),
    "v7": _random_tailed(bulk.room_in_ms, _uuid_forms(bulk.v7), bulk.v7),
    "snowflake": Recipe(
        {"int": _snowflakes, "text": _snowflake_texts, "bytes": _snowflake_bytes},
        lambda place: snowflake.SLOTS - place % snowflake.SLOTS,
        snowflake.places,
        snowflake.ticks_for,
        random=False,
        joined=None,
    ),
    "flake": Recipe(
        {"int": _flakes, "text": _flake_texts, "bytes": _flake_bytes},
        bulk.room_in_ms,
        _ticks,
        _as_many,
        random=False,
        joined=None,
    ),
    "ulid": _random_tailed(
        bulk.room_in_ms,
        {**_uuid_forms(bulk.ulids), "text": bulk.ulid_texts},
        bulk.ulids,
    ),
    "ksuid": _random_tailed(
        bulk.room_in_second,
        {"text": _ksuid_texts, "bytes": bulk.each(bulk.ksuids, ksuid.BYTES)},
        bulk.ksuids,
    ),
    "push_id": _random_tailed(bulk.room_in_ms, {"text": bulk.push_id_texts}),
}
"""The recipe of each kind of ``kinds``."""
