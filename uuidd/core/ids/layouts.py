"""How ids of each kind are made of blocks, in each of its forms.

The ids of several places in a row are drawn at once, at C's speed. The places of one such call are
of one run ("places.py", "bulk.py").
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import count as count_up
from itertools import islice, repeat
from struct import Struct

from uuidd.core.ids import bulk, snowflake
from uuidd.core.ids.bases import encode
from uuidd.core.ids.bulk import RandomBytes
from uuidd.core.ids.checks import check_bits
from uuidd.core.ids.formats import FORMATS
from uuidd.core.ids.kinds import TIMES
from uuidd.core.ids.nodes import NODE_BITS
from uuidd.core.ids.places import Origin
from uuidd.core.ids.ticks import TICKS_PER_MS
from uuidd.core.typed import Any, NamedTuple

Draw = Callable[[int, int, Origin, RandomBytes], Iterator[Any]]
"""Returns the ids of *count* places from *first*, all in one run.

The iterator runs in C, and is for one thread.
"""

Packed = Callable[[int, int, Origin, RandomBytes], bytes | bytearray]
"""Returns the bytes of the ids of *count* places from *first*, all in one run, in one piece."""

_PACK_FLAKE = Struct(">QQ").pack
_PACK_SNOWFLAKE = Struct(">Q").pack


class Layout(NamedTuple):
    """How ids of a kind are made.

    *forms* holds what draws each form; a ``uuid`` is drawn as an int. *packed* is a faster way to
    the bytes of many ids, or None if there is none.
    """

    forms: Mapping[str, Draw]
    packed: Packed | None


def _gregorian(kind: str) -> Layout:
    def form(draw: Callable[[str, int, int, int, int], Iterator[Any]]) -> Draw:
        return lambda first, count, origin, _: draw(
            kind, first, count, origin.clock_seq, origin.node
        )

    forms = {
        "uuid": form(bulk.gregorian_ints),
        "text": form(bulk.gregorian_texts),
        "bytes": form(bulk.gregorian_bytes),
    }

    def packed(first: int, count: int, origin: Origin, _: RandomBytes) -> bytearray:
        return bulk.gregorian_packed(kind, first, count, origin.clock_seq, origin.node)

    return Layout(forms, packed)


def _random_tailed(forms: Mapping[str, bulk.Ids[Any]], packed: bulk.Packed | None = None) -> Layout:
    def form(draw: bulk.Ids[Any]) -> Draw:
        return lambda first, count, origin, random: iter(draw(first, count, origin.lane, random))

    made = {name: form(draw) for name, draw in forms.items()}

    def all_packed(first: int, count: int, origin: Origin, random: RandomBytes) -> bytearray:
        assert packed is not None  # noqa: S101  (this function is used only if it is there)
        return packed(first, count, origin.lane, random)

    return Layout(made, packed and all_packed)


def _uuid_forms(packed: bulk.Packed) -> dict[str, bulk.Ids[Any]]:
    return {
        "uuid": bulk.ints(packed, 16),
        "text": bulk.uuid_texts(packed),
        "bytes": bulk.each(packed, 16),
    }


_KSUID, _FLAKE, _FLAKE_TIME = FORMATS["ksuid"], FORMATS["flake"], TIMES["flake"]
_ksuid_ints = bulk.ints(bulk.ksuids, _KSUID.size)


def _ksuid_texts(first: int, count: int, lane: int | None, random: RandomBytes) -> list[str]:
    return [
        encode(value, _KSUID.digits, _KSUID.width)
        for value in _ksuid_ints(first, count, lane, random)
    ]


def _flake(first: int, node: int) -> int:
    return (
        _FLAKE_TIME.raw(first) << 64
        | check_bits("node", node, NODE_BITS) << 16
        | (first - _FLAKE_TIME.epoch) % TICKS_PER_MS
    )


def _flakes(first: int, count: int, origin: Origin, _: RandomBytes) -> Iterator[int]:
    # Within a millisecond the sequence, the lowest bits, is all that changes.
    return islice(count_up(_flake(first, origin.node)), count)


def _flake_texts(first: int, count: int, origin: Origin, _: RandomBytes) -> Iterator[str]:
    return iter([encode(value, _FLAKE.digits) for value in _flakes(first, count, origin, _)])


def _flake_bytes(first: int, count: int, origin: Origin, _: RandomBytes) -> Iterator[bytes]:
    whole = _flake(first, origin.node)
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


LAYOUTS: Mapping[str, Layout] = {
    "v1": _gregorian("v1"),
    "v4": _random_tailed(_uuid_forms(bulk.v4), bulk.v4),
    "v6": _gregorian("v6"),
    "v7": _random_tailed(_uuid_forms(bulk.v7), bulk.v7),
    "snowflake": Layout(
        {"int": _snowflakes, "text": _snowflake_texts, "bytes": _snowflake_bytes}, None
    ),
    "flake": Layout({"int": _flakes, "text": _flake_texts, "bytes": _flake_bytes}, None),
    "ulid": _random_tailed(
        {**_uuid_forms(bulk.ulids), "text": bulk.ulid_texts},
        bulk.ulids,
    ),
    "ksuid": _random_tailed(
        {"text": _ksuid_texts, "bytes": bulk.each(bulk.ksuids, _KSUID.size)},
        bulk.ksuids,
    ),
    "push_id": _random_tailed({"text": bulk.push_id_texts}),
}
"""The layout of each kind in ``kinds.KINDS``."""
