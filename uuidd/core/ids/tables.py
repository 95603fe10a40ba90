"""Tables for ``bulk``, each computed once.

Some hold a byte or a character of an id for each tick of a run. The others are for
``bytes.translate``, and turn a random byte into a byte or a character of an id.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from uuidd.core.ids.checks import check_bits
from uuidd.core.ids.places import RUN
from uuidd.core.ids.ticks import TICKS_PER_MS
from uuidd.core.ids.versions import LANE_BITS

MS_BITS = 14
"""Bits of a tick within its millisecond."""


@lru_cache(maxsize=17)
def run_bytes(stamp: int) -> tuple[bytes, bytes]:
    """Return both bytes of the low 12 bits of a run's ticks, with *stamp* set in the high one."""
    return _each(range(stamp, stamp + 16), 256, RUN), _each(range(256), 1, RUN)


@lru_cache(maxsize=1)
def v7_ticks() -> tuple[bytes, bytes, bytes]:
    """Return bytes 6, 7 and 8 of a v7 for each tick of a millisecond; 4 bits of byte 8 are 0."""
    return (
        _each(range(0x70, 0x80), 1 << 10, TICKS_PER_MS),
        _each(range(256), 1 << 2, TICKS_PER_MS),
        _each((0x80, 0x90, 0xA0, 0xB0), 1, TICKS_PER_MS),
    )


@lru_cache(maxsize=2)
def tick_characters(alphabet: str, free: int) -> tuple[bytes, bytes, bytes]:
    """Return three characters for each tick of a millisecond; *free* bits of the third are 0.

    In place of the third character is its value, because a part of the lane is to be added.
    """
    characters, width = alphabet.encode(), (MS_BITS + free) // 3
    return (
        _each(characters, 1 << 2 * width - free, TICKS_PER_MS),
        _each(characters, 1 << width - free, TICKS_PER_MS),
        _each(range(0, 1 << width, 1 << free), 1, TICKS_PER_MS),
    )


def _each(values: Iterable[int], times: int, size: int) -> bytes:
    """Return *size* bytes: each of *values* that many *times* in a row, then all of that again."""
    all_once = b"".join(bytes([value]) * times for value in values)
    return (all_once * -(-size // len(all_once)))[:size]


@lru_cache(maxsize=8)
def masked(mask: int, stamp: int) -> bytes:
    """Return a table that keeps the bits of *mask* in a byte, and sets those of *stamp*."""
    return bytes(byte & mask | stamp for byte in range(256))


@lru_cache(maxsize=2)
def letters(alphabet: str) -> bytes:
    """Return a table from a byte's low bits to a character; each character is equally likely."""
    return (alphabet * (256 // len(alphabet))).encode()


@lru_cache(maxsize=16)
def lane_bytes(lane: int | None, free: int, width: int = 8) -> tuple[bytes, ...]:
    """Return a table for each byte that holds a part of *lane*, in their order.

    The lane begins in the lowest *free* bits of the first byte, and goes on in the lowest *width*
    bits of the next. The bits after it stay random, and its own too if it is None.
    """
    bits = free
    while bits < LANE_BITS:
        bits += width
    stamp, mask = 0, (1 << bits) - 1
    if lane is not None:
        stamp = check_bits("lane", lane, LANE_BITS) << bits - LANE_BITS
        mask >>= LANE_BITS
    full = (1 << width) - 1
    shifts = range(bits - free, -1, -width)
    return tuple(masked(mask >> shift & full, stamp >> shift & full) for shift in shifts)


@lru_cache(maxsize=8)
def free_characters(alphabet: str, lane: int | None, free: int, count: int) -> tuple[bytes, ...]:
    """Return a table for each of the last *count* characters of a text, which begin with *lane*.

    Only *free* bits of the first are the lane's, so its table gives no character but its value.
    """
    width = (MS_BITS + free) // 3
    first, *rest = lane_bytes(lane, free, width)
    tables = first, *(table.translate(letters(alphabet)) for table in rest)
    return tables + (letters(alphabet),) * (count - len(tables))
