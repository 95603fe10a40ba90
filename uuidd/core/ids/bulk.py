"""Many ids of one block at once: v1, v6 and those that end in random bits.

Each function returns what the kind's own function returns for the same ticks and random bits, at
C's speed: no id takes a step of the interpreter. Most set one byte, or one character, of all ids
with one slice assignment.

All ids of a call lie in one *run*: the ticks over which only the low part of the tick changes. That
is 4,096 ticks for v1 and v6, a second for KSUIDs, and a millisecond for the others.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Callable
from itertools import starmap
from struct import iter_unpack

from uuidd.core.ids import uuids, versions
from uuidd.core.ids.bases import CROCKFORD, PUSH, encode
from uuidd.core.ids.checks import check_bits
from uuidd.core.ids.kinds import TIMES
from uuidd.core.ids.places import RUN, Origin
from uuidd.core.ids.tables import (
    free_characters,
    lane_bytes,
    letters,
    masked,
    run_bytes,
    tick_characters,
    v7_ticks,
)
from uuidd.core.ids.ticks import TICKS_PER_SECOND, UNIX_EPOCH, milliseconds
from uuidd.core.ids.versions import LANE_BITS

RandomBytes = Callable[[int], bytes]
"""Returns that number of random bytes."""

_GREGORIAN = {"v1": versions.v1, "v6": versions.v6}


def gregorian(kind: str, first: int, count: int, origin: Origin, _: RandomBytes) -> bytearray:
    """Return the v1 or v6 UUIDs of ``first .. first + count``, 16 bytes each."""
    id = _GREGORIAN[kind](first, origin.clock_seq, origin.node)
    packed = bytearray(id.to_bytes(16, "big") * count)
    # The two bytes that hold the low 12 bits of the tick: the last of v1's time_low, or those of
    # v6's version and time_low.
    at, stamp = (2, first & 0xF000) if kind == "v1" else (6, 0x6000)
    high, low = run_bytes(stamp >> 8)
    begin = first & RUN - 1
    packed[at::16] = high[begin : begin + count]
    packed[at + 1 :: 16] = low[begin : begin + count]
    return packed


def v4(_first: int, count: int, _origin: Origin, random: RandomBytes) -> bytearray:
    """Return *count* v4 UUIDs, 16 bytes each."""
    packed = bytearray(random(16 * count))
    packed[6::16] = packed[6::16].translate(masked(0x0F, 0x40))
    packed[8::16] = packed[8::16].translate(masked(0x3F, 0x80))
    return packed


def v7(first: int, count: int, origin: Origin, random: RandomBytes) -> bytearray:
    """Return the v7 UUIDs of ``first .. first + count``, 16 bytes each."""
    TIMES["v7"].raw(first)
    ms, rest = milliseconds(first)
    packed = bytearray((ms.to_bytes(6, "big") + bytes(10)) * count)
    high, low, mixed = v7_ticks()
    packed[6::16] = high[rest : rest + count]
    packed[7::16] = low[rest : rest + count]
    tail = random(8 * count)
    begin, end = lane_bytes(origin.lane, 4)
    packed[8::16] = _or(mixed[rest : rest + count], tail[:count].translate(begin))
    packed[9::16] = tail[count : 2 * count].translate(end)
    for place in range(2, 8):
        packed[8 + place :: 16] = tail[place * count : (place + 1) * count]
    return packed


def ulids(first: int, count: int, origin: Origin, random: RandomBytes) -> bytearray:
    """Return the ULIDs of ``first .. first + count``, 16 bytes each."""
    TIMES["ulid"].raw(first)
    ms, rest = milliseconds(first)
    packed = bytearray((ms.to_bytes(6, "big") + bytes(10)) * count)
    # The tick within the millisecond in the high 14 of 16 bits.
    ticks = _big_endian(array("H", range(rest << 2, rest + count << 2, 4)))
    packed[6::16] = ticks[::2]
    tail = random(9 * count)
    begin, end = lane_bytes(origin.lane, 2)
    packed[7::16] = _or(ticks[1::2], tail[:count].translate(begin))
    packed[8::16] = tail[count : 2 * count].translate(end)
    for place in range(2, 9):
        packed[7 + place :: 16] = tail[place * count : (place + 1) * count]
    return packed


def ksuids(first: int, count: int, origin: Origin, random: RandomBytes) -> bytearray:
    """Return the KSUIDs of ``first .. first + count``, 20 bytes each."""
    timestamp = TIMES["ksuid"].raw(first)
    laned = b""
    if origin.lane is not None:
        laned = check_bits("lane", origin.lane, LANE_BITS).to_bytes(1, "big")
    head = timestamp.to_bytes(4, "big") + bytes(3) + laned
    packed = bytearray(head.ljust(20, b"\0") * count)
    rest = (first - UNIX_EPOCH) % TICKS_PER_SECOND
    ticks = _big_endian(array("I", range(rest, rest + count)))
    for place in range(1, 4):
        packed[3 + place :: 20] = ticks[place::4]
    at = len(head)
    tail = random((20 - at) * count)
    for place in range(20 - at):
        packed[at + place :: 20] = tail[place * count : (place + 1) * count]
    return packed


def ulid_texts(first: int, count: int, origin: Origin, random: RandomBytes) -> list[str]:
    """Return the texts of the ULIDs of ``first .. first + count``."""
    TIMES["ulid"].raw(first)
    ms, rest = milliseconds(first)
    # The 14 bits of the tick and 1 of the lane fill 3 characters of 5 bits; 13 more follow.
    head = encode(ms, CROCKFORD, 10)
    ticks, tables = (
        tick_characters(CROCKFORD, 1),
        free_characters(CROCKFORD, origin.lane, 1, 1 + 13),
    )
    return _texts(head, ticks, tables, rest, count, random, CROCKFORD)


def push_id_texts(first: int, count: int, origin: Origin, random: RandomBytes) -> list[str]:
    """Return the texts of the Push IDs of ``first .. first + count``."""
    TIMES["push_id"].raw(first)
    ms, rest = milliseconds(first)
    # The 14 bits of the tick and 4 of the lane fill 3 characters of 6 bits; 9 more follow.
    head = encode(ms, PUSH, 8)
    ticks, tables = tick_characters(PUSH, 4), free_characters(PUSH, origin.lane, 4, 1 + 9)
    return _texts(head, ticks, tables, rest, count, random, PUSH)


def ints(packed: bytearray, width: int) -> list[int]:
    """Return as ints the ids in *packed*, of *width* bytes each."""
    # int.from_bytes reads the highest byte first by default.
    return list(starmap(int.from_bytes, iter_unpack(f"{width}s", packed)))


def _texts(
    head: str,
    ticks: tuple[bytes, bytes, bytes],
    tables: tuple[bytes, ...],
    rest: int,
    count: int,
    random: RandomBytes,
    alphabet: str,
) -> list[str]:
    """Return texts of *head*, three characters with the tick, and those after it.

    *ticks* are the ``tick_characters``, and *tables* the ``free_characters``.
    """
    at, width = len(head), len(head) + 3 + len(tables)
    laid_out = bytearray((head + "-" * (2 + len(tables)) + "\n").encode() * count)
    high, middle, mixed = (part[rest : rest + count] for part in ticks)
    drawn = random(len(tables) * count)
    laid_out[at::width] = high
    laid_out[at + 1 :: width] = middle
    mixed = _or(mixed, drawn[:count].translate(tables[0]))
    laid_out[at + 2 :: width] = mixed.translate(letters(alphabet))
    for place in range(1, len(tables)):
        part = drawn[place * count : (place + 1) * count]
        laid_out[at + 2 + place :: width] = part.translate(tables[place])
    return uuids.lines(laid_out)


def _or(one: bytes | bytearray, other: bytes | bytearray) -> bytes:
    both = int.from_bytes(one, "big") | int.from_bytes(other, "big")
    return both.to_bytes(len(one), "big")


def _big_endian(numbers: array[int]) -> bytes:
    """Return the bytes of an array of numbers, each with its highest byte first."""
    if sys.byteorder == "little":
        numbers.byteswap()
    return numbers.tobytes()
