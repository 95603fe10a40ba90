"""What UUIDs tell of themselves, by kind, and which kind their bits say that they are."""

from __future__ import annotations

from collections.abc import Callable

from uuidd.core.ids import apollo, nodes, uuids, versions
from uuidd.core.ids.inspect import parts
from uuidd.core.ids.inspect.parts import Fields
from uuidd.core.ids.ticks import GREGORIAN, TimeField


def kind_of_uuid(value: int) -> str:
    """Give the kind that a UUID's version and variant say, ``unknown`` for one not in use."""
    version = uuids.version(value)
    if version is not None:
        return f"v{version}" if 1 <= version <= 8 else "unknown"
    if value == uuids.NIL:
        return "nil"
    if value == uuids.MAX:
        return "max"
    return "unknown" if value >> 63 & 1 else "ncs"


def _rfc(version: int) -> Fields:
    return {"version": version, "variant": "RFC 9562"}


def _timebased(value: int, field: TimeField, version: int) -> Fields:
    tick, clock_seq, node = versions.gregorian_fields(value)
    return {
        **_rfc(version),
        **parts.time(field, tick),
        "clock_seq": clock_seq,
        "node": nodes.to_text(node),
        "node_is": parts.node_is(node),
        "full_on": parts.full_on(field),
    }


def _v1(value: int) -> Fields:
    return _timebased(value, GREGORIAN["v1"], 1)


def _v2(value: int) -> Fields:
    found = versions.v2_fields(value)
    return {
        **_rfc(2),
        **parts.time(versions.V2_TIME, found.timestamp),
        "clock_seq": found.clock_seq,
        "node": nodes.to_text(found.node),
        "domain": versions.V2_DOMAINS.get(found.domain, str(found.domain)),
        "local_id": found.local_id,
        "node_is": parts.node_is(found.node),
        "full_on": parts.full_on(versions.V2_TIME),
    }


def _v3(_: int) -> Fields:
    return _rfc(3)


def _v4(value: int) -> Fields:
    return {**_rfc(4), "random": f"0x{versions.v4_bits(value):031x}"}


def _v5(_: int) -> Fields:
    return _rfc(5)


def _v6(value: int) -> Fields:
    return _timebased(value, GREGORIAN["v6"], 6)


def _v7(value: int) -> Fields:
    ms, rand_a, rand_b = versions.v7_fields(value)
    return {
        **_rfc(7),
        **parts.time(versions.V7_TIME, ms),
        "random": f"0x{rand_a << 62 | rand_b:019x}",
        **parts.tick(rand_a << 2 | rand_b >> versions.V7_RANDOM_BITS),
        "full_on": parts.full_on(versions.V7_TIME),
    }


def _v8(value: int) -> Fields:
    custom_a, custom_b, custom_c = versions.v8_fields(value)
    return {
        **_rfc(8),
        "custom_a": f"0x{custom_a:012x}",
        "custom_b": f"0x{custom_b:03x}",
        "custom_c": f"0x{custom_c:016x}",
    }


def _no_fields(_: int) -> Fields:
    return {}


def _ncs(value: int) -> Fields:
    found = apollo.ncs_fields(value)
    return {
        "variant": "NCS",
        **parts.time(apollo.NCS_TIME, found.timestamp),
        "family": apollo.FAMILIES.get(found.family, str(found.family)),
        "host": ".".join(f"{octet:02x}" for octet in found.host.to_bytes(7, "big")),
        "full_on": parts.full_on(apollo.NCS_TIME),
    }


def _guid(value: int) -> Fields:
    turned = uuids.guid_swapped(value)
    return FIELDS[kind_of_uuid(turned)](turned)


def _unknown(value: int) -> Fields:
    version = uuids.version(value)
    if version is not None:
        return _rfc(version)
    return {"variant": "future" if value >> 61 & 1 else "Microsoft"}


def _ncs_text(value: int) -> str:
    """Give NCS's text, which has no place for the reserved bits: with some set, the UUID's."""
    reserved = apollo.ncs_fields(value).reserved
    return uuids.to_text(value) if reserved else apollo.ncs_to_text(value)


def _guid_text(value: int) -> str:
    return uuids.to_text(uuids.guid_swapped(value))


FIELDS: dict[str, Callable[[int], Fields]] = {
    "v1": _v1,
    "v2": _v2,
    "v3": _v3,
    "v4": _v4,
    "v5": _v5,
    "v6": _v6,
    "v7": _v7,
    "v8": _v8,
    "nil": _no_fields,
    "max": _no_fields,
    "ncs": _ncs,
    "guid": _guid,
    "unknown": _unknown,
}

TEXTS: dict[str, Callable[[int], str]] = {
    **dict.fromkeys(FIELDS, uuids.to_text),
    "ncs": _ncs_text,
    "guid": _guid_text,
}

KINDS = tuple(kind for kind in FIELDS if kind != "unknown")
"""The kinds that can be asked for."""
