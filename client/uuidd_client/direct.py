"""One id of the own lane, with the tick of now: for programs that make a few ids now and then.

A run is made ahead, and is worth it for many ids. After a rest a program's first ids cost most,
because the processor has none of the code at hand. So the way to them is short: no lock, no run,
and few functions. ``places`` says why no lock is needed.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import unpack
from typing import Any
from uuid import UUID, SafeUUID

from uuidd.core.ids import uuids, versions
from uuidd.core.ids.ticks import TICKS_PER_MS, UNIX_EPOCH
from uuidd.core.timeline.page import HORIZON_AT
from uuidd_client.lease import Holding
from uuidd_client.places import Places
from uuidd_client.system import random_bytes
from uuidd_client.uuid_objects import new_uuid

MANY = 32
"""Ids after which runs serve, until there is a pause."""

PAUSE = TICKS_PER_MS
"""Ticks without an id that count as a pause."""

POOL = 16
"""Ids whose random bits are read at once."""

_RANDOM_BITS = versions.V7_RANDOM_BITS - versions.LANE_BITS


def direct(form: str, places: Places, lease: Holding) -> Callable[[], Any] | None:
    """Return a function that returns one id in *form*, or None if a run has to serve.

    None if there is no such function.
    """
    make = _MAKERS.get(places.kind)
    if make is None or form not in ("uuid", "text"):
        return None
    reserve, value = _reserving(places, lease), make(lease, places)
    alive, safe, to_text, to_uuid = places.guard.alive, SafeUUID.safe, uuids.to_text, new_uuid

    def one_uuid() -> UUID | None:
        tick = reserve()
        if not tick:
            return None
        made = to_uuid(value(tick), safe)
        # This is the last look: after it, no handler can fork before the caller has the id.
        return made if alive[0] else None

    def one_text() -> str | None:
        tick = reserve()
        if not tick:
            return None
        made = to_text(value(tick))
        return made if alive[0] else None

    return one_uuid if form == "uuid" else one_text


def _reserving(places: Places, lease: Holding) -> Callable[[], int]:
    """Return a function that reserves the tick of now; it returns 0 if a run has to serve."""
    words, at, token, begin = lease.words, lease.at, lease.token, lease.begin
    reserved, times = places.reserved, places.blocks.times
    utc_ns = places.clock.utc_ns
    latest = None
    if places.lane is not None and places.lane.latest is not None:
        latest = places.lane.latest.mark
    end = 1 << 60 if times is None else times.end
    alone = not places.max_age

    def reserve() -> int:
        now = utc_ns() // 100 + UNIX_EPOCH
        if not begin <= now < words[HORIZON_AT] or words[at] != token:
            return 0
        if now >= lease.tell_at or now >= end:
            return 0
        # The tick itself may be used by another kind.
        if now < places.first or (latest is not None and latest.end > now + 1):
            return 0
        if now - reserved.end > PAUSE:
            places.direct = 0
        elif places.direct >= MANY and not alone:
            return 0
        tick_end = now + 1
        # One line, see mark.py.
        reserved.end = tick_end if (free := reserved.end <= now) else reserved.end
        if not free:
            return 0
        places.direct += 1
        if latest is not None:
            latest.end = tick_end if latest.end < tick_end else latest.end  # noqa: FURB136  (a call)
        # What is left of a run in another form is older.
        places.deadline[0] = 0.0
        return now

    return reserve


def _v1(lease: Holding, _: Places) -> Callable[[int], int]:
    tail = versions.v1(0, lease.origin.clock_seq, lease.origin.node)

    def value(tick: int) -> int:
        return (tick & 0xFFFF_FFFF) << 96 | (tick >> 32 & 0xFFFF) << 80 | tick >> 48 << 64 | tail

    return value


def _v6(lease: Holding, _: Places) -> Callable[[int], int]:
    tail = versions.v6(0, lease.origin.clock_seq, lease.origin.node)

    def value(tick: int) -> int:
        return tick >> 12 << 80 | (tick & 0xFFF) << 64 | tail

    return value


def _v7(lease: Holding, places: Places) -> Callable[[int], int]:
    lane = lease.origin.lane
    assert lane is not None  # noqa: S101  (a lease has one)
    tail = versions.v7(0, 0, lane << _RANDOM_BITS)
    pool: list[int] = []

    def value(tick: int) -> int:
        nonlocal pool
        ms, rest = divmod(tick - UNIX_EPOCH, TICKS_PER_MS)
        # A few at a time, because a system call takes long; after a pause new ones.
        words = [] if places.direct == 1 else pool
        try:
            random = words.pop()
        except IndexError:
            words = list(unpack(f">{POOL}Q", random_bytes(8 * POOL)))
            random = words.pop()
            pool = words
        return ms << 80 | rest >> 2 << 64 | (rest & 3) << 60 | tail | random >> 64 - _RANDOM_BITS

    return value


_MAKERS = {"v1": _v1, "v6": _v6, "v7": _v7}
