"""Many ids of one block at once, each form by its fastest way.

What these give is bit for bit what ``timebased`` gives for the same fields. The iterators run in
C from end to end, so under the GIL each ``next`` is atomic and several threads may share one.

A *run* is a stretch of 4,096 ticks, over which only the low 12 bits of the tick change: the last
part of ``time_low``, in v1 as in v6.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import count as count_up
from itertools import islice, repeat
from struct import Struct

from uuidd.core.ids import timebased, uuids

KINDS: dict[str, Callable[[int, int, int], int]] = {"v1": timebased.v1, "v6": timebased.v6}
"""Kinds made of a tick, a clock sequence and a node."""

RUN_BITS = 12
RUN = 1 << RUN_BITS
_LOW = (1 << RUN_BITS) - 1

_STEP = {"v1": 1 << 96, "v6": 1 << 64}
_LOW_DIGITS = {"v1": 5, "v6": 15}
"""Where in the text the three digits stand that change in a run."""

_PACK_V1 = Struct(">I12s").pack
_PACK_V6 = Struct(">6sH8s").pack


def room(first: int) -> int:
    """Give how many ticks from *first* on lie in one run."""
    return _LOW + 1 - (first & _LOW)


def ints(kind: str, first: int, count: int, clock_seq: int, node: int) -> Iterator[int]:
    """Give the ids of ``first .. first + count``, all in one run, as 128-bit ints."""
    return islice(count_up(KINDS[kind](first, clock_seq, node), _STEP[kind]), count)


def texts(kind: str, first: int, count: int, clock_seq: int, node: int) -> Iterator[str]:
    """Give the ids of ``first .. first + count``, all in one run, as 36 characters each."""
    text = uuids.to_text(KINDS[kind](first, clock_seq, node))
    laid_out = bytearray(f"{text}\n".encode() * count)
    at, low = _LOW_DIGITS[kind], first & _LOW
    for place, column in enumerate(_digits(), at):
        laid_out[place::37] = column[low : low + count]
    return iter(uuids.lines(laid_out))


def packed(kind: str, first: int, count: int, clock_seq: int, node: int) -> Iterator[bytes]:
    """Give the ids of ``first .. first + count``, all in one run, as 16 bytes each."""
    raw = KINDS[kind](first, clock_seq, node).to_bytes(16, "big")
    if kind == "v1":
        low = first & 0xFFFF_FFFF
        return map(_PACK_V1, range(low, low + count), repeat(raw[4:]))
    stamped = 0x6000 | first & 0xFFF
    return map(_PACK_V6, repeat(raw[:6]), range(stamped, stamped + count), repeat(raw[8:]))


def joined(kind: str, first: int, count: int, clock_seq: int, node: int) -> bytearray:
    """Give the ids of ``first .. first + count``, all in one run, as 16 bytes each in one piece."""
    ids = bytearray(KINDS[kind](first, clock_seq, node).to_bytes(16, "big") * count)
    # In a run only the low 12 bits of the tick change: the last two bytes of time_low, or those of
    # the version and it.
    at, stamp = (2, first & 0xF000) if kind == "v1" else (6, 0x6000)
    high, low = _columns(stamp >> 8)
    begin = first & _LOW
    ids[at::16], ids[at + 1 :: 16] = high[begin : begin + count], low[begin : begin + count]
    return ids


def all_texts(kind: str, first: int, count: int, clock_seq: int, node: int) -> list[str]:
    """Give the ids of ``first .. first + count``, over as many runs as it takes, as text."""
    found: list[str] = []
    while count:
        part = min(count, room(first))
        found += texts(kind, first, part, clock_seq, node)
        first, count = first + part, count - part
    return found


@lru_cache(maxsize=17)
def _columns(stamp: int) -> tuple[bytes, bytes]:
    """Give both bytes of the low 12 bits of a run's ticks, *stamp* set in the high one."""
    return bytes(stamp | low >> 8 for low in range(RUN)), bytes(range(256)) * (RUN >> 8)


@lru_cache(maxsize=1)
def _digits() -> list[bytes]:
    """Give each of the three last hex digits of a run's ticks."""
    return [
        bytes(b"0123456789abcdef"[low >> shift & 0xF] for low in range(RUN)) for shift in (8, 4, 0)
    ]
