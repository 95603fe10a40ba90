"""The fields of an id, by its kind, and its text as that kind writes it."""

from __future__ import annotations

from functools import lru_cache

from uuidd.core.ids import nodes, snowflake, times, uuids
from uuidd.core.ids.formats import FORMATS
from uuidd.core.ids.ticks import TICKS_PER_MS, TimeField
from uuidd.core.ids.versions import LANE_BITS

Fields = dict[str, int | str]

ORDER = (
    "version",
    "variant",
    "time",
    "timestamp",
    "clock_seq",
    "node",
    "worker",
    "datacenter_id",
    "worker_id",
    "sequence",
    "payload",
    "domain",
    "local_id",
    "custom_a",
    "custom_b",
    "custom_c",
    "random",
    "tick",
    "lane",
    "uuid",
    "node_is",
    "base",
    "full_on",
)
"""The names of all fields, in the order in which they are shown."""

_DOMAINS = {0: "person", 1: "group", 2: "org"}
"""What the local id of a v2 is: the number of a user, a group or an organization."""


def kind_of_uuid(value: int) -> str:
    """Return the kind of a UUID by its version and variant; ``unknown`` if they are not in use."""
    version = uuids.version(value)
    if version is not None:
        return f"v{version}" if 1 <= version <= 8 else "unknown"
    if value == uuids.NIL:
        return "nil"
    return "max" if value == uuids.MAX else "unknown"


def fields_of(kind: str, value: int, time: TimeField | None, base: str | None) -> Fields:
    """Return the fields of an id, in the order of ``ORDER``.

    *time* is the time field of the kind. *base* is that of the text that was read.
    """
    if kind == "guid":
        value = uuids.guid_swapped(value)
        kind = kind_of_uuid(value)
        time = (kind in FORMATS and FORMATS[kind].time) or None
    found: Fields = {}
    if kind in FORMATS:
        found = _of_format(kind, value)
        if time is not None:
            raw = int(found["timestamp"])
            found |= {"time": times.text(time.tick(raw), time.unit), "full_on": full_on(time)}
    if kind == "unknown" or "version" in found:
        found |= _of_uuid(value)
    if base is not None:
        found["base"] = base
    return {name: found[name] for name in ORDER if name in found}


def _of_format(kind: str, value: int) -> Fields:
    form = FORMATS[kind]
    found: Fields = {}
    for name, raw in form.unpack(value).items():
        digits = -(-form.sizes[name] // 4)
        if name == "node":
            found["node"] = nodes.to_text(raw)
            found["node_is"] = "random" if raw & nodes.MULTICAST else "a network address"
        elif name == "payload":
            found["payload"] = f"{raw:0{digits}X}"
        elif name == "domain":
            found["domain"] = _DOMAINS.get(raw, str(raw))
        elif name == "random" or name.startswith("custom"):
            found[name] = f"0x{raw:0{digits}x}"
        else:
            found[name] = raw
        if name == form.tail:
            found |= _place(raw, form.sizes[name] - form.rest, form.places)
    if form.version:
        found["version"] = form.version
    if "worker" in found:
        worker = int(found["worker"])
        found["datacenter_id"] = worker >> snowflake.WORKER_ID_BITS
        found["worker_id"] = worker & (1 << snowflake.WORKER_ID_BITS) - 1
    if kind == "ulid":
        # The text that a database shows if it stores ULIDs in its type for UUIDs.
        found["uuid"] = uuids.to_text(value)
    return found


def _of_uuid(value: int) -> Fields:
    version = uuids.version(value)
    if version is not None:
        return {"version": version, "variant": "RFC 9562"}
    if not value >> 63 & 1:
        return {"variant": "NCS"}
    return {"variant": "future" if value >> 61 & 1 else "Microsoft"}


def _place(bits: int, after: int, places: int) -> Fields:
    """Return the tick in the millisecond and the lane, which are the highest of these *bits*.

    *after* is how many of them come after the tick. Nothing is returned if there can be no tick.
    """
    tick = bits >> after
    if places != TICKS_PER_MS or tick >= TICKS_PER_MS:
        return {}
    if not after:
        return {"tick": tick}
    return {"tick": tick, "lane": bits >> after - LANE_BITS & (1 << LANE_BITS) - 1}


@lru_cache(maxsize=64)
def full_on(field: TimeField) -> str:
    """Return the day on which a time field is full."""
    return times.day(field.end)


def text_of(kind: str, value: int) -> str:
    """Return an id as its kind writes it."""
    if kind == "guid":
        value = uuids.guid_swapped(value)
    return FORMATS[kind].to_text(value) if kind in FORMATS else uuids.to_text(value)
