"""The likely kinds of an id of which only the bits are known.

A UUID of a version in use is marked by its version and variant. The other kinds have no such mark:
any bits can be read as one of them, so only those are plausible that then have a plausible time.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from uuidd.core.ids import flake, ksuid, snowflake, ulid, uuids
from uuidd.core.ids.inspect.fields import kind_of_uuid
from uuidd.core.ids.inspect.kinds import Reading, snowflake_time
from uuidd.core.ids.ticks import TICKS_PER_SECOND, UNIX_EPOCH, TimeField

FROM = UNIX_EPOCH + 946_684_800 * TICKS_PER_SECOND
UNTIL = UNIX_EPOCH + 4_102_444_800 * TICKS_PER_SECOND
"""2000-01-01 and 2100-01-01, as ticks: a time between them is plausible.

No kind without a mark is older than 2000, and 2100 leaves room for a clock or an epoch that is far
off. A century is one in ninety of the times in 48 bits of milliseconds, so few
bits are plausible by chance.
"""


def of_integer(value: int, epoch: int | None) -> Iterator[Reading]:
    """Yield the plausible readings of an integer, most likely first; *epoch* is for Snowflakes."""
    if value >> 64:
        if value >> 128:
            yield from _plausible_ksuid(value)
        elif value >> 96:
            # 128 bits begin with 32 zeros once in four thousand million cases.
            yield from of_octets(value)
        return
    if not value:
        yield Reading("nil", value)
    if not value >> 63:
        found = Reading("snowflake", value, epoch)
        if is_plausible(found):
            yield found


def of_octets(value: int) -> Iterator[Reading]:
    """Yield the plausible readings of 128 bits, most likely first.

    A Flake comes before a UUID, because its 64 bits of time are hardly ever plausible by chance. A
    marked UUID comes before a ULID, because it is more common. A ULID comes before a GUID, because
    one in sixteen values has a GUID's mark by chance.
    """
    yield from as_flake(value)
    kind = kind_of_uuid(value)
    if is_marked(kind):
        yield Reading(kind, value)
    yield from _plausible_ulid(value)
    if not is_marked(kind):
        yield from _marked_guid(value)


def beside_uuid(value: int) -> Iterator[Reading]:
    """Yield the plausible readings of an unmarked UUID's bits as other kinds."""
    yield from as_flake(value)
    yield from _plausible_ulid(value)
    yield from _marked_guid(value)


def as_flake(value: int) -> Iterator[Reading]:
    """Yield the reading of 128 bits as a Flake, if it is plausible."""
    if value >> 64 in _plausible(flake.TIME):
        yield Reading("flake", value)


def is_marked(kind: str) -> bool:
    """Return whether UUIDs of this kind are marked."""
    return kind != "unknown"


def is_plausible(reading: Reading) -> bool:
    """Return whether the time of a Snowflake is plausible."""
    return snowflake.fields(reading.value).timestamp in _plausible_since(reading.epoch)


def _plausible_ulid(value: int) -> Iterator[Reading]:
    if value >> 80 in _plausible(ulid.TIME):
        yield Reading("ulid", value)


def _plausible_ksuid(value: int) -> Iterator[Reading]:
    if value >> 128 in _plausible(ksuid.TIME):
        yield Reading("ksuid", value)


def _marked_guid(value: int) -> Iterator[Reading]:
    if kind_of_uuid(uuids.guid_swapped(value)).startswith("v"):
        yield Reading("guid", value)


@lru_cache(maxsize=64)
def _plausible(field: TimeField) -> range:
    """Return the values of a time field that stand for plausible times."""
    first = max(-((field.epoch - FROM) // field.unit), 0)
    last = min(-((field.epoch - UNTIL) // field.unit), 1 << field.bits)
    return range(first, max(first, last))


@lru_cache(maxsize=64)
def _plausible_since(epoch: int | None) -> range:
    return _plausible(snowflake_time(epoch))
