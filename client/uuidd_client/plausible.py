"""The likely kinds of an id of which only the bits are known.

A UUID of a version in use is marked by its version and variant. The other kinds have no such mark:
any bits can be read as one of them, so only those are plausible that then have a plausible time.
"""

from __future__ import annotations

from collections.abc import Iterator

from uuidd.core.ids import uuids
from uuidd.core.ids.kinds import FORMATS
from uuidd.core.ids.ticks import TICKS_PER_SECOND, UNIX_EPOCH
from uuidd_client.fields import Reading, kind_of_uuid, time_field

FROM = UNIX_EPOCH + 946_684_800 * TICKS_PER_SECOND
UNTIL = UNIX_EPOCH + 4_102_444_800 * TICKS_PER_SECOND
"""2000-01-01 and 2100-01-01, as ticks: a time between them is plausible.

No kind without a mark is older than 2000, and 2100 leaves room for a clock or an epoch that is far
off. A century is one in ninety of the times in 48 bits of milliseconds, so few
bits are plausible by chance.
"""


def of_integer(value: int, epoch: int | None) -> Iterator[Reading]:
    """Yield the plausible readings of an integer, most likely first; *epoch* is for Snowflakes."""
    if value >> 128:
        yield from as_kind(value, "ksuid")
    elif value >> 96:
        # 128 bits begin with 32 zeros once in four thousand million cases.
        yield from of_octets(value)
    elif not value >> 64:
        if not value:
            yield Reading("nil", value)
        yield from as_kind(value, "snowflake", epoch)


def of_octets(value: int) -> Iterator[Reading]:
    """Yield the plausible readings of 128 bits, most likely first.

    A Flake comes before a UUID, because its 64 bits of time are hardly ever plausible by chance. A
    marked UUID comes before a ULID, because it is more common. A ULID comes before a GUID, because
    one in sixteen values has a GUID's mark by chance.
    """
    kind = kind_of_uuid(value)
    if kind == "unknown":
        yield from beside_uuid(value)
        return
    yield from as_kind(value, "flake")
    yield Reading(kind, value)
    yield from as_kind(value, "ulid")


def beside_uuid(value: int) -> Iterator[Reading]:
    """Yield the plausible readings of an unmarked UUID's bits as other kinds."""
    yield from as_kind(value, "flake")
    yield from as_kind(value, "ulid")
    if kind_of_uuid(uuids.guid_swapped(value)).startswith("v"):
        yield Reading("guid", value)


def as_kind(
    value: int, kind: str, epoch: int | None = None, base: str | None = None
) -> Iterator[Reading]:
    """Yield the reading of bits as a kind with a time, if that time is plausible."""
    form = FORMATS[kind]
    if value >> form.bits:
        return
    field = time_field(kind, epoch)
    assert field is not None  # noqa: S101  (only kinds with a time are asked for)
    if FROM <= field.tick(form.unpack(value)["timestamp"]) < UNTIL:
        yield Reading(kind, value, epoch, base)
