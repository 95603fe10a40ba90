"""An id read as one kind: its fields, and its text as that kind writes it."""

from __future__ import annotations

from dataclasses import dataclass

from uuidd.core.ids import nodes, snowflake, times, uuids
from uuidd.core.ids.kinds import FORMATS
from uuidd.core.ids.ticks import TICKS_PER_MS, TimeField
from uuidd.core.ids.versions import LANE_BITS

Values = dict[str, int | str]
"""The fields of an id, by name."""

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
    "full_on",
)
"""The names of all fields, in the order in which they are shown."""

UUID_KINDS = (*(kind for kind, form in FORMATS.items() if form.version), "nil", "max", "guid")

ALIASES = {"cassandra": "v1"}
"""Kinds by another name: Cassandra's TimeUUID is a v1."""

INSPECTED_KINDS = (*UUID_KINDS, *(kind for kind in FORMATS if kind not in UUID_KINDS), *ALIASES)
"""All kinds that a caller can name."""

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


def time_field(kind: str, epoch: int | None) -> TimeField | None:
    """Return the time field of a kind; *epoch* is that of a Snowflake, by default Twitter's."""
    if epoch is not None:
        return snowflake.time_field(epoch)
    return FORMATS[kind].time if kind in FORMATS else None


@dataclass(frozen=True, slots=True)
class Reading:
    """An id read as one kind. Its text and fields are computed at each access.

    *kind* is a key of ``FORMATS``, or ``nil``, ``max``, ``guid``, or ``unknown`` for a UUID whose
    version or variant is not in use. *epoch*, in Unix milliseconds, is that of a Snowflake, by
    default Twitter's.
    """

    kind: str
    value: int
    epoch: int | None = None

    @property
    def text(self) -> str:
        """The id as its kind writes it."""
        value = uuids.guid_swapped(self.value) if self.kind == "guid" else self.value
        return FORMATS[self.kind].to_text(value) if self.kind in FORMATS else uuids.to_text(value)

    @property
    def fields(self) -> Values:
        """The fields that the kind has, in the order of ``ORDER``."""
        kind, value = self.kind, self.value
        if kind == "guid":
            value = uuids.guid_swapped(value)
            kind = kind_of_uuid(value)
        found: Values = {}
        if kind in FORMATS:
            found = _of_format(kind, value)
            time = time_field(kind, self.epoch)
            if time is not None:
                raw = int(found["timestamp"])
                found |= {
                    "time": times.text(time.tick(raw), time.unit),
                    "full_on": times.day(time.end),
                }
        if kind == "unknown" or "version" in found:
            found |= _of_uuid(value)
        return {name: found[name] for name in ORDER if name in found}


def _of_format(kind: str, value: int) -> Values:
    form = FORMATS[kind]
    found: Values = {}
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
            found |= _place(raw, form.sizes[name] - form.rest, form.slots)
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


def _of_uuid(value: int) -> Values:
    version = uuids.version(value)
    if version is not None:
        return {"version": version, "variant": "RFC 9562"}
    if not value >> 63 & 1:
        return {"variant": "NCS"}
    return {"variant": "future" if value >> 61 & 1 else "Microsoft"}


def _place(bits: int, after: int, places: int) -> Values:
    """Return the tick in the millisecond and the lane, which are the highest of these *bits*.

    *after* is how many of them come after the tick. Nothing is returned if there can be no tick.
    """
    tick = bits >> after
    if places != TICKS_PER_MS or tick >= TICKS_PER_MS:
        return {}
    if not after:
        return {"tick": tick}
    return {"tick": tick, "lane": bits >> after - LANE_BITS & (1 << LANE_BITS) - 1}
