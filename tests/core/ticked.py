"""The kinds whose ids carry a tick, and how to read it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from uuidd.core.ids import flake, ksuid, push_id, snowflake, ulid, uuids, versions
from uuidd.core.ids.ticks import TimeField


class Ticked(NamedTuple):
    """A kind whose ids carry a tick and *free* random bits, or a node; *read* returns both."""

    of_tick: Callable[[int, int], int]
    read: Callable[[int], tuple[int, int]]
    field: TimeField
    free: int
    name: str = "random"


def of_v7(value: int) -> tuple[int, int]:
    """Return the tick and the random bits of a v7 of ours."""
    return versions.v7_tick(value), value & (1 << versions.V7_RANDOM_BITS) - 1


def of_ulid(value: int) -> tuple[int, int]:
    """Return the tick and the random bits of a ULID of ours."""
    found = ulid.fields(value)
    rest, random = divmod(found.random, 1 << ulid.RANDOM_BITS)
    return ulid.TIME.tick(found.ms) + rest, random


def of_push_id(value: int) -> tuple[int, int]:
    """Return the tick and the random bits of a Push ID of ours."""
    found = push_id.fields(value)
    rest, random = divmod(found.random, 1 << push_id.RANDOM_BITS)
    return push_id.TIME.tick(found.ms) + rest, random


def of_ksuid(value: int) -> tuple[int, int]:
    """Return the tick and the random bits of a KSUID of ours."""
    found = ksuid.fields(value)
    rest, random = divmod(found.payload, 1 << ksuid.RANDOM_BITS)
    return ksuid.TIME.tick(found.timestamp) + rest, random


def of_flake(value: int) -> tuple[int, int]:
    """Return the tick and the node of a Flake of ours."""
    found = flake.fields(value)
    return flake.TIME.tick(found.ms) + found.sequence, found.node


TICKED = {
    "v7": Ticked(versions.v7_of_tick, of_v7, versions.V7_TIME, 60),
    "ulid": Ticked(ulid.of_tick, of_ulid, ulid.TIME, 66),
    "push_id": Ticked(push_id.of_tick, of_push_id, push_id.TIME, 58),
    "ksuid": Ticked(ksuid.of_tick, of_ksuid, ksuid.TIME, 104),
    "flake": Ticked(flake.of_tick, of_flake, flake.TIME, 48, "node"),
}


def tick_of(kind: str, value: int) -> int:
    """Return the tick of an id of any kind with a time; a Snowflake's slot is on a tick."""
    if kind in TICKED:
        return TICKED[kind].read(value)[0]
    if kind == "snowflake":
        fields = snowflake.fields(value)
        return snowflake.tick_of_place((fields.ms << 12) + fields.sequence)
    return versions.gregorian_fields(value).tick


_FROM_TEXT: dict[str, Callable[[str], int]] = {
    "ulid": ulid.from_text,
    "ksuid": ksuid.from_text,
    "push_id": push_id.from_text,
    "flake": lambda text: flake.from_text(text) if len(text) < 30 else int(text),
    "snowflake": int,
}


def value_of(kind: str, text: str) -> int:
    """Return the id in *text*, which is in the kind's own form, a UUID or a number."""
    return uuids.from_text(text) if len(text) == 36 else _FROM_TEXT[kind](text)
