"""How ids of each kind are made of blocks, in each of its forms.

The ids of several places in a row are drawn at once, at C's speed. The places of one such call are
of one run ("places.py", "bulk.py").
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import islice

from uuidd.core.ids import bulk, snowflake, uuids, versions
from uuidd.core.ids.bases import encode
from uuidd.core.ids.bulk import RandomBytes
from uuidd.core.ids.checks import check_bits
from uuidd.core.ids.formats import FORMATS
from uuidd.core.ids.kinds import TIMES
from uuidd.core.ids.nodes import NODE_BITS
from uuidd.core.ids.places import Origin
from uuidd.core.ids.ticks import TICKS_PER_MS
from uuidd.core.typed import Any

Draw = Callable[[int, int, Origin, RandomBytes], Any]
"""Returns the ids of *count* places from *first*, all in one run."""

_KSUID, _FLAKE, _FLAKE_TIME = FORMATS["ksuid"], FORMATS["flake"], TIMES["flake"]


def _uuid_forms(packed: Draw) -> dict[str, Draw]:
    def ints(*block: Any) -> list[int]:
        return bulk.ints(packed(*block), 16)

    def texts(*block: Any) -> list[str]:
        return uuids.texts(packed(*block))

    return {"uuid": ints, "text": texts, "bytes": packed}


def _gregorian_forms(kind: str, make: Callable[[int, int, int], int], step: int) -> dict[str, Draw]:
    def ints(first: int, count: int, origin: Origin, _: RandomBytes) -> Iterable[int]:
        # Within a run, an id is that before it and *step*.
        return islice(itertools.count(make(first, origin.clock_seq, origin.node), step), count)

    return {**_uuid_forms(partial(bulk.gregorian, kind)), "uuid": ints}


def _ksuid_texts(first: int, count: int, origin: Origin, random: RandomBytes) -> list[str]:
    values = bulk.ints(bulk.ksuids(first, count, origin, random), _KSUID.size)
    return [encode(value, _KSUID.digits, _KSUID.width) for value in values]


def _flakes(first: int, count: int, origin: Origin, _: RandomBytes) -> range:
    node = check_bits("node", origin.node, NODE_BITS)
    begin = _FLAKE_TIME.raw(first) << 64 | node << 16
    # Within a millisecond the sequence, the lowest bits, is all that changes.
    begin |= (first - _FLAKE_TIME.epoch) % TICKS_PER_MS
    return range(begin, begin + count)


def _flake_texts(values: Iterable[int]) -> list[str]:
    return [encode(value, _FLAKE.digits) for value in values]


def _snowflakes(first: int, count: int, origin: Origin, _: RandomBytes) -> range:
    if origin.worker is None:
        raise ValueError("worker is None; a Snowflake needs a worker number, 0 to 1023")
    begin = snowflake.of_place(first, origin.worker, epoch=origin.epoch)
    return range(begin, begin + count)


def _forms(
    ints: Draw, write: Callable[[Iterable[int]], Iterable[str]], size: int
) -> dict[str, Draw]:
    """Return the forms of ids of *size* bytes that are *ints*; *write* returns their texts."""

    def texts(*block: Any) -> Iterable[str]:
        return write(ints(*block))

    def packed(*block: Any) -> bytes:
        return b"".join([value.to_bytes(size, "big") for value in ints(*block)])

    return {"int": ints, "text": texts, "bytes": packed}


LAYOUTS: Mapping[str, Mapping[str, Draw]] = {
    "v1": _gregorian_forms("v1", versions.v1, 1 << 96),
    "v4": _uuid_forms(bulk.v4),
    "v6": _gregorian_forms("v6", versions.v6, 1 << 64),
    "v7": _uuid_forms(bulk.v7),
    "snowflake": _forms(_snowflakes, lambda values: map(str, values), 8),
    "flake": _forms(_flakes, _flake_texts, 16),
    "ulid": {**_uuid_forms(bulk.ulids), "text": bulk.ulid_texts},
    "ksuid": {"text": _ksuid_texts, "bytes": bulk.ksuids},
    "push_id": {"text": bulk.push_id_texts},
}
"""What draws each form of each kind in ``kinds.KINDS``: the bytes in one piece, UUIDs as ints."""
