"""Many random-tailed ids of one block at once: v4, v7, ULID, KSUID and Push ID.

What these give is what the kinds' own functions give for the same ticks and random bits. They are
built by columns: the n-th byte of all ids, or the n-th character, in one slice assignment, so that
an id costs some ten of them and no step of the interpreter.

All ids of a call lie in one *run*: the ticks over which only the tick's own bits change, which is a
millisecond (KSUID: a second).
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import chain, starmap
from struct import iter_unpack

from uuidd.core.ids import ksuid, push_id, ulid, unixtime, uuids
from uuidd.core.ids.bases import CROCKFORD, PUSH
from uuidd.core.ids.timebased import TICKS_PER_SECOND, UNIX_EPOCH
from uuidd.core.ids.timefield import TICKS_PER_MS, milliseconds

RandomBytes = Callable[[int], bytes]
"""Gives so many random bytes."""

Packed = Callable[[int, int, RandomBytes], bytearray]


def room_in_ms(first: int) -> int:
    """Give how many ticks from *first* on lie in its millisecond."""
    return TICKS_PER_MS - (first - UNIX_EPOCH) % TICKS_PER_MS


def room_in_second(first: int) -> int:
    """Give how many ticks from *first* on lie in its second."""
    return TICKS_PER_SECOND - (first - UNIX_EPOCH) % TICKS_PER_SECOND


def v4(_: int, count: int, random: RandomBytes) -> bytearray:
    """Give *count* v4 UUIDs, 16 bytes each."""
    packed = bytearray(random(16 * count))
    packed[6::16] = packed[6::16].translate(_masked(0x0F, 0x40))
    packed[8::16] = packed[8::16].translate(_masked(0x3F, 0x80))
    return packed


def v7(first: int, count: int, random: RandomBytes) -> bytearray:
    """Give the v7 UUIDs of ``first .. first + count``, 16 bytes each."""
    unixtime.TIME.raw(first)
    ms, rest = milliseconds(first)
    packed = bytearray((ms.to_bytes(6, "big") + bytes(10)) * count)
    high, low, mixed = _v7_bytes()
    packed[6::16] = high[rest : rest + count]
    packed[7::16] = low[rest : rest + count]
    tail = random(8 * count)
    packed[8::16] = _or(mixed[rest : rest + count], tail[:count].translate(_masked(0x0F, 0)))
    for place in range(1, 8):
        packed[8 + place :: 16] = tail[place * count : (place + 1) * count]
    return packed


def ulids(first: int, count: int, random: RandomBytes) -> bytearray:
    """Give the ULIDs of ``first .. first + count``, 16 bytes each."""
    ulid.TIME.raw(first)
    ms, rest = milliseconds(first)
    packed = bytearray((ms.to_bytes(6, "big") + bytes(10)) * count)
    # The tick within the millisecond in the high 14 of 16 bits.
    ticks = _big_endian(array("H", range(rest << 2, rest + count << 2, 4)))
    packed[6::16] = ticks[::2]
    tail = random(9 * count)
    packed[7::16] = _or(ticks[1::2], tail[:count].translate(_masked(0x03, 0)))
    for place in range(1, 9):
        packed[7 + place :: 16] = tail[place * count : (place + 1) * count]
    return packed


def ksuids(first: int, count: int, random: RandomBytes) -> bytearray:
    """Give the KSUIDs of ``first .. first + count``, 20 bytes each."""
    timestamp = ksuid.TIME.raw(first)
    packed = bytearray((timestamp.to_bytes(4, "big") + bytes(16)) * count)
    rest = (first - UNIX_EPOCH) % TICKS_PER_SECOND
    ticks = _big_endian(array("I", range(rest, rest + count)))
    for place in range(1, 4):
        packed[3 + place :: 20] = ticks[place::4]
    tail = random(13 * count)
    for place in range(13):
        packed[7 + place :: 20] = tail[place * count : (place + 1) * count]
    return packed


def ulid_texts(first: int, count: int, random: RandomBytes) -> list[str]:
    """Give the texts of the ULIDs of ``first .. first + count``."""
    ulid.TIME.raw(first)
    ms, rest = milliseconds(first)
    # The 14 bits of the tick and 1 random bit fill 3 characters of 5 bits; 13 are all random.
    head = ulid.to_text(ulid.ulid(ms, 0))[:10]
    return _texts(head, 13, _ulid_digits(), 0b1, rest, count, random, CROCKFORD)


def push_id_texts(first: int, count: int, random: RandomBytes) -> list[str]:
    """Give the texts of the Push IDs of ``first .. first + count``."""
    push_id.TIME.raw(first)
    ms, rest = milliseconds(first)
    # The 14 bits of the tick and 4 random bits fill 3 characters of 6 bits; 9 are all random.
    head = push_id.to_text(push_id.push_id(ms, 0))[:8]
    return _texts(head, 9, _push_digits(), 0b1111, rest, count, random, PUSH)


def ints(packed: Packed, width: int) -> Callable[[int, int, RandomBytes], Iterator[int]]:
    """Give the function that gives as ints what *packed* gives as *width* bytes each."""
    form = f"{width}s"

    def draw(first: int, count: int, random: RandomBytes) -> Iterator[int]:
        # int.from_bytes reads the highest byte first unless told otherwise.
        return starmap(int.from_bytes, iter_unpack(form, packed(first, count, random)))

    return draw


def each(packed: Packed, width: int) -> Callable[[int, int, RandomBytes], Iterator[bytes]]:
    """Give the function that gives one by one what *packed* gives as *width* bytes each."""
    form = f"{width}s"

    def draw(first: int, count: int, random: RandomBytes) -> Iterator[bytes]:
        return chain.from_iterable(iter_unpack(form, packed(first, count, random)))

    return draw


def uuid_texts(packed: Packed) -> Callable[[int, int, RandomBytes], Iterator[str]]:
    """Give the function that gives as the text of UUIDs what *packed* gives as bytes."""

    def draw(first: int, count: int, random: RandomBytes) -> Iterator[str]:
        return iter(uuids.texts(packed(first, count, random)))

    return draw


def _texts(
    head: str,
    tail: int,
    ticks: tuple[bytes, bytes, bytes],
    free: int,
    rest: int,
    count: int,
    random: RandomBytes,
    alphabet: str,
) -> list[str]:
    """Give *head*, three characters of the tick, and *tail* random ones, for each of many ticks.

    *ticks* has the three digits, not yet characters, of each tick of a millisecond; *free* are the
    bits of the last that are random.
    """
    at, width = len(head), len(head) + 3 + tail + 1
    laid_out = bytearray((head + "-" * (3 + tail) + "\n").encode() * count)
    letters = _letters(alphabet)
    high, middle, mixed = (digits[rest : rest + count] for digits in ticks)
    drawn = random((tail + 1) * count)
    laid_out[at::width] = high.translate(letters)
    laid_out[at + 1 :: width] = middle.translate(letters)
    laid_out[at + 2 :: width] = _or(mixed, drawn[:count].translate(_masked(free, 0))).translate(
        letters
    )
    for place in range(1, tail + 1):
        column = drawn[place * count : (place + 1) * count]
        laid_out[at + 2 + place :: width] = column.translate(letters)
    return uuids.lines(laid_out)


@lru_cache(maxsize=1)
def _v7_bytes() -> tuple[bytes, bytes, bytes]:
    """Give bytes 6, 7 and 8 of a v7, without its random bits, for each tick of a millisecond."""
    ticks = range(TICKS_PER_MS)
    return (
        bytes(0x70 | tick >> 10 for tick in ticks),
        bytes(tick >> 2 & 0xFF for tick in ticks),
        bytes(0x80 | (tick & 0b11) << 4 for tick in ticks),
    )


@lru_cache(maxsize=1)
def _ulid_digits() -> tuple[bytes, bytes, bytes]:
    ticks = range(TICKS_PER_MS)
    return (
        bytes(tick >> 9 for tick in ticks),
        bytes(tick >> 4 & 0x1F for tick in ticks),
        bytes((tick & 0xF) << 1 for tick in ticks),
    )


@lru_cache(maxsize=1)
def _push_digits() -> tuple[bytes, bytes, bytes]:
    ticks = range(TICKS_PER_MS)
    return (
        bytes(tick >> 8 for tick in ticks),
        bytes(tick >> 2 & 0x3F for tick in ticks),
        bytes((tick & 0b11) << 4 for tick in ticks),
    )


@lru_cache(maxsize=8)
def _masked(mask: int, stamp: int) -> bytes:
    """Give a table that keeps the bits of *mask* of a byte, and sets those of *stamp*."""
    return bytes(byte & mask | stamp for byte in range(256))


@lru_cache(maxsize=2)
def _letters(alphabet: str) -> bytes:
    """Give a table from a byte's low bits to a character; each is as likely as any other."""
    return (alphabet * (256 // len(alphabet))).encode()


def _or(one: bytes | bytearray, other: bytes | bytearray) -> bytes:
    both = int.from_bytes(one, "big") | int.from_bytes(other, "big")
    return both.to_bytes(len(one), "big")


def _big_endian(numbers: array[int]) -> bytes:
    """Give the bytes of an array of numbers, each with its highest byte first."""
    if sys.byteorder == "little":
        numbers.byteswap()
    return numbers.tobytes()
