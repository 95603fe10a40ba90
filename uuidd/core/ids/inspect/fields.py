"""The fields of an id, by its kind, and its text as that kind writes it."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from uuidd.core.ids import flake, ksuid, nodes, push_id, snowflake, times, ulid, uuids, versions
from uuidd.core.ids.ticks import TICKS_PER_MS, TIMES, TimeField
from uuidd.core.ids.versions import LANE_BITS

Fields = dict[str, int | str]


def kind_of_uuid(value: int) -> str:
    """Return the kind of a UUID by its version and variant; ``unknown`` if they are not in use."""
    version = uuids.version(value)
    if version is not None:
        return f"v{version}" if 1 <= version <= 8 else "unknown"
    if value == uuids.NIL:
        return "nil"
    return "max" if value == uuids.MAX else "unknown"


# --- what several kinds have in common


def _time(field: TimeField, raw: int) -> Fields:
    """Return the time of a field's value, in RFC 3339 with all its digits, and the value."""
    return {"time": times.text(field.tick(raw), field.unit), "timestamp": raw}


@lru_cache(maxsize=64)
def full_on(field: TimeField) -> str:
    """Return the day on which a time field is full."""
    return times.day(field.end)


def _tick(rest: int) -> Fields:
    """Return the tick in the millisecond, or nothing if *rest* is too high to be one."""
    return {"tick": rest} if rest < TICKS_PER_MS else {}


def _tick_and_lane(bits: int, after: int) -> Fields:
    """Return the tick in the millisecond and the lane, which are the highest of these *bits*.

    *after* is how many of them come after the tick. Nothing is returned if there can be no tick.
    """
    tick = _tick(bits >> after)
    return tick and {**tick, "lane": bits >> after - LANE_BITS & (1 << LANE_BITS) - 1}


def _node_is(node: int) -> str:
    """Return the source of a node, as its multicast bit says."""
    return "random" if node & nodes.MULTICAST else "a network address"


# --- UUIDs


def _rfc(version: int) -> Fields:
    return {"version": version, "variant": "RFC 9562"}


def _gregorian(value: int) -> Fields:
    kind, version = kind_of_uuid(value), uuids.version(value)
    tick, clock_seq, node = versions.gregorian_fields(value)
    return {
        **_rfc(version or 0),
        **_time(TIMES[kind], tick),
        "clock_seq": clock_seq,
        "node": nodes.to_text(node),
        "node_is": _node_is(node),
        "full_on": full_on(TIMES[kind]),
    }


def _v2(value: int) -> Fields:
    found = versions.v2_fields(value)
    return {
        **_rfc(2),
        **_time(versions.V2_TIME, found.timestamp),
        "clock_seq": found.clock_seq,
        "node": nodes.to_text(found.node),
        "domain": versions.V2_DOMAINS.get(found.domain, str(found.domain)),
        "local_id": found.local_id,
        "node_is": _node_is(found.node),
        "full_on": full_on(versions.V2_TIME),
    }


def _v4(value: int) -> Fields:
    return {**_rfc(4), "random": f"0x{versions.v4_bits(value):031x}"}


def _v7(value: int) -> Fields:
    ms, rand_a, rand_b = versions.v7_fields(value)
    random = rand_a << 62 | rand_b
    return {
        **_rfc(7),
        **_time(versions.V7_TIME, ms),
        "random": f"0x{random:019x}",
        **_tick_and_lane(random, versions.V7_RANDOM_BITS),
        "full_on": full_on(versions.V7_TIME),
    }


def _v8(value: int) -> Fields:
    custom_a, custom_b, custom_c = versions.v8_fields(value)
    return {
        **_rfc(8),
        "custom_a": f"0x{custom_a:012x}",
        "custom_b": f"0x{custom_b:03x}",
        "custom_c": f"0x{custom_c:016x}",
    }


def _guid(value: int) -> Fields:
    swapped = uuids.guid_swapped(value)
    return UUID_FIELDS[kind_of_uuid(swapped)](swapped)


def _unknown(value: int) -> Fields:
    version = uuids.version(value)
    if version is not None:
        return _rfc(version)
    if not value >> 63 & 1:
        return {"variant": "NCS"}
    return {"variant": "future" if value >> 61 & 1 else "Microsoft"}


UUID_FIELDS: dict[str, Callable[[int], Fields]] = {
    "v1": _gregorian,
    "v2": _v2,
    "v3": lambda _: _rfc(3),
    "v4": _v4,
    "v5": lambda _: _rfc(5),
    "v6": _gregorian,
    "v7": _v7,
    "v8": _v8,
    "nil": lambda _: {},
    "max": lambda _: {},
    "guid": _guid,
    "unknown": _unknown,
}


# --- other kinds


def _ulid(value: int) -> Fields:
    ms, random = ulid.fields(value)
    return {
        **_time(ulid.TIME, ms),
        "random": f"0x{random:020x}",
        **_tick_and_lane(random, ulid.RANDOM_BITS),
        # The text that a database shows if it stores ULIDs in its type for UUIDs.
        "uuid": uuids.to_text(value),
        "full_on": full_on(ulid.TIME),
    }


def _flake(value: int) -> Fields:
    ms, node, sequence = flake.fields(value)
    return {
        **_time(flake.TIME, ms),
        "node": nodes.to_text(node),
        "sequence": sequence,
        **_tick(sequence),
        "node_is": _node_is(node),
        "full_on": full_on(flake.TIME),
    }


def _ksuid(value: int) -> Fields:
    timestamp, payload = ksuid.fields(value)
    return {
        **_time(ksuid.TIME, timestamp),
        "payload": f"{payload:032X}",
        "full_on": full_on(ksuid.TIME),
    }


def _push_id(value: int) -> Fields:
    ms, random = push_id.fields(value)
    return {
        **_time(push_id.TIME, ms),
        "random": f"0x{random:018x}",
        **_tick_and_lane(random, push_id.RANDOM_BITS),
        "full_on": full_on(push_id.TIME),
    }


OTHER_FIELDS: dict[str, Callable[[int], Fields]] = {
    "ulid": _ulid,
    "flake": _flake,
    "ksuid": _ksuid,
    "push_id": _push_id,
}


# --- Snowflakes, whose users choose an epoch


def of_snowflake(value: int, field: TimeField) -> Fields:
    """Return the fields of a Snowflake whose time is in *field*."""
    found = snowflake.fields(value)
    return {
        **_time(field, found.timestamp),
        "worker": found.worker,
        "datacenter_id": found.datacenter_id,
        "worker_id": found.worker_id,
        "sequence": found.sequence,
        "full_on": full_on(field),
    }


# --- texts


TEXTS: dict[str, Callable[[int], str]] = {
    **dict.fromkeys(UUID_FIELDS, uuids.to_text),
    "guid": lambda value: uuids.to_text(uuids.guid_swapped(value)),
    "ulid": ulid.to_text,
    "flake": flake.to_text,
    "ksuid": ksuid.to_text,
    "push_id": push_id.to_text,
}
"""How the kinds that are not written in decimal are written."""
