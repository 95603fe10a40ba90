"""Many ids of one block at once, each form by its fastest way.

What these give is bit for bit what ``timebased`` gives for the same fields. The iterators run in
C from end to end, so under the GIL each ``next`` is atomic and several threads may share one.

A *run* is a stretch of ticks over which only one field of the id counts up: 2**32 ticks for v1
(``time_low``), 4,096 for v6 (``time_low``, its 12 bits).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count as count_up
from itertools import islice, repeat
from struct import Struct

from uuidd.core.ids import timebased, uuids

KINDS: dict[str, tuple[Callable[[int, int, int], int], int]] = {
    "v1": (timebased.v1, 32),
    "v6": (timebased.v6, 12),
}
"""Kinds made of a tick, a clock sequence and a node: how, and the bits that count up in a run."""

_PACK_V1 = Struct(">I12s").pack
_PACK_V6 = Struct(">6sH8s").pack


def room(kind: str, first: int) -> int:
    """Give how many ticks from *first* on lie in one run."""
    bits = KINDS[kind][1]
    return (1 << bits) - (first & (1 << bits) - 1)


def ints(kind: str, first: int, count: int, clock_seq: int, node: int) -> Iterator[int]:
    """Give the ids of ``first .. first + count``, all in one run, as 128-bit ints."""
    step = 1 << 96 if kind == "v1" else 1 << 64
    return islice(count_up(KINDS[kind][0](first, clock_seq, node), step), count)


def texts(kind: str, first: int, count: int, clock_seq: int, node: int) -> Iterator[str]:
    """Give the ids of ``first .. first + count``, all in one run, as 36 characters each."""
    text = uuids.to_text(KINDS[kind][0](first, clock_seq, node))
    if kind == "v1":
        low = first & 0xFFFF_FFFF
        return map(("%08x" + text[8:]).__mod__, range(low, low + count))
    low = first & 0xFFF
    return map((text[:15] + "%03x" + text[18:]).__mod__, range(low, low + count))


def packed(kind: str, first: int, count: int, clock_seq: int, node: int) -> Iterator[bytes]:
    """Give the ids of ``first .. first + count``, all in one run, as 16 bytes each."""
    raw = KINDS[kind][0](first, clock_seq, node).to_bytes(16, "big")
    if kind == "v1":
        low = first & 0xFFFF_FFFF
        return map(_PACK_V1, range(low, low + count), repeat(raw[4:]))
    stamped = 0x6000 | first & 0xFFF
    return map(_PACK_V6, repeat(raw[:6]), range(stamped, stamped + count), repeat(raw[8:]))


def all_texts(kind: str, first: int, count: int, clock_seq: int, node: int) -> list[str]:
    """Give the ids of ``first .. first + count``, over as many runs as it takes, as text."""
    found: list[str] = []
    while count:
        part = min(count, room(kind, first))
        found += texts(kind, first, part, clock_seq, node)
        first, count = first + part, count - part
    return found
