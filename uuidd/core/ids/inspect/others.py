"""What other ids than UUIDs tell of themselves, by kind."""

from __future__ import annotations

from collections.abc import Callable

from uuidd.core.ids import (
    apollo,
    flake,
    ksuid,
    nodes,
    push_id,
    snowflake,
    sonyflake,
    uidgenerator,
    ulid,
    uuids,
)
from uuidd.core.ids.inspect import parts
from uuidd.core.ids.inspect.parts import Fields
from uuidd.core.ids.ticks import TimeField

EPOCHS = {
    "snowflake": snowflake.TWITTER_EPOCH,
    "leaf": snowflake.TWITTER_EPOCH,
    **sonyflake.EPOCHS,
    "uidgenerator": uidgenerator.EPOCH,
}
"""The kinds whose users choose an epoch, and the one that is meant if none is told."""


def time_field(kind: str, epoch: int) -> TimeField:
    """Give the time field of a kind whose epoch is chosen."""
    if kind == "uidgenerator":
        return uidgenerator.time_field(epoch)
    if kind in sonyflake.EPOCHS:
        return sonyflake.time_field(epoch)
    return snowflake.time_field(epoch)


def _apollo(value: int) -> Fields:
    found = apollo.uid_fields(value)
    return {
        **parts.time(apollo.UID_TIME, found.timestamp),
        "node": f"0x{found.node:05x}",
        "sequence": found.counter,
        "full_on": parts.full_on(apollo.UID_TIME),
    }


def _ulid(value: int) -> Fields:
    ms, random = ulid.fields(value)
    return {
        **parts.time(ulid.TIME, ms),
        "random": f"0x{random:020x}",
        **parts.tick(random >> ulid.RANDOM_BITS),
        # How a database's type for UUIDs shows it.
        "uuid": uuids.to_text(value),
        "full_on": parts.full_on(ulid.TIME),
    }


def _flake(value: int) -> Fields:
    ms, node, sequence = flake.fields(value)
    return {
        **parts.time(flake.TIME, ms),
        "node": nodes.to_text(node),
        "sequence": sequence,
        **parts.tick(sequence),
        "node_is": parts.node_is(node),
        "full_on": parts.full_on(flake.TIME),
    }


def _ksuid(value: int) -> Fields:
    timestamp, payload = ksuid.fields(value)
    return {
        **parts.time(ksuid.TIME, timestamp),
        "payload": f"{payload:032X}",
        "full_on": parts.full_on(ksuid.TIME),
    }


def _push_id(value: int) -> Fields:
    ms, random = push_id.fields(value)
    return {
        **parts.time(push_id.TIME, ms),
        "random": f"0x{random:018x}",
        **parts.tick(random >> push_id.RANDOM_BITS),
        "full_on": parts.full_on(push_id.TIME),
    }


def _snowflake(value: int, field: TimeField) -> Fields:
    found = snowflake.fields(value)
    return {
        **parts.time(field, found.timestamp),
        "datacenter": found.datacenter,
        "worker": found.worker,
        "sequence": found.sequence,
        "machine": found.machine,
    }


def _leaf(value: int, field: TimeField) -> Fields:
    found = snowflake.fields(value)
    return {
        **parts.time(field, found.timestamp),
        "worker": found.machine,
        "sequence": found.sequence,
    }


def _sonyflake(value: int, field: TimeField) -> Fields:
    found = sonyflake.fields(value)
    return {
        **parts.time(field, found.timestamp),
        "sequence": found.sequence,
        "machine": found.machine,
    }


def _uidgenerator(value: int, field: TimeField) -> Fields:
    found = uidgenerator.fields(value)
    return {
        **parts.time(field, found.timestamp),
        "worker": found.worker,
        "sequence": found.sequence,
    }


FIELDS: dict[str, Callable[[int], Fields]] = {
    "ulid": _ulid,
    "flake": _flake,
    "ksuid": _ksuid,
    "push_id": _push_id,
    "apollo": _apollo,
}

BY_EPOCH: dict[str, Callable[[int, TimeField], Fields]] = {
    "snowflake": _snowflake,
    "leaf": _leaf,
    "sonyflake": _sonyflake,
    "sonyflake2": _sonyflake,
    "uidgenerator": _uidgenerator,
}
"""The fields of those of ``EPOCHS``, all but the end of their time; they are written in decimal."""

TEXTS: dict[str, Callable[[int], str]] = {
    "ulid": ulid.to_text,
    "flake": flake.to_text,
    "ksuid": ksuid.to_text,
    "push_id": push_id.to_text,
    "apollo": apollo.uid_to_text,
}
