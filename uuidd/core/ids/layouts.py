"""How ids of each kind are made of blocks, in each of their forms.

Each function returns the ids of several places in a row, at C's speed: no id takes a step of the
interpreter. Most set one byte, or one character, of all ids with one slice assignment. What they
set comes from tables that are computed once.

All ids of a call lie in one *run*: the ticks over which only the low part of the tick changes. That
is 4,096 ticks for v1 and v6, a second for KSUIDs, and a millisecond for the others.
"""

from __future__ import annotations

import itertools
import sys
from array import array
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache, partial
from itertools import islice, starmap
from struct import iter_unpack

from uuidd.core.ids import snowflake, uuids, versions
from uuidd.core.ids.bases import encode
from uuidd.core.ids.checks import check_bits
from uuidd.core.ids.kinds import KINDS, TIMES
from uuidd.core.ids.nodes import NODE_BITS
from uuidd.core.ids.places import RUN, Origin
from uuidd.core.ids.ticks import TICKS_PER_MS, TICKS_PER_SECOND, UNIX_EPOCH
from uuidd.core.ids.versions import LANE_BITS
from uuidd.core.typed import Any

RandomBytes = Callable[[int], bytes]
"""Returns that number of random bytes."""

Digits = tuple[tuple[bytes | range, int], ...]
"""Digits that hold a tick: of each its values, and how many ticks in a row have the same one."""

Draw = Callable[[int, int, Origin, RandomBytes], Any]
"""Returns the ids of *count* places from *first*, all in one run."""


@lru_cache(maxsize=17)
def run_bytes(stamp: int) -> tuple[bytes, bytes]:
    """Return both bytes of the low 12 bits of a run's ticks, with *stamp* set in the high one."""
    return _each(range(stamp, stamp + 16), 256, RUN), _each(range(256), 1, RUN)


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


def gregorian(kind: str, first: int, count: int, origin: Origin, _: RandomBytes) -> bytearray:
    """Return the v1 or v6 UUIDs of ``first .. first + count``, 16 bytes each."""
    id = versions.gregorian(kind, first, origin.clock_seq, origin.node)
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


def _with_ticks(kind: str, free: int, digits: Digits, alphabet: str = "") -> Draw:
    """Return what makes the ids of *kind*: bytes, or texts in *alphabet*.

    After the millisecond come *digits*, which hold the 14 bits of the tick. The lane begins in the
    lowest *free* bits of the last one. A digit is a byte, or a character.
    """
    time, width = TIMES[kind], _digit_bits(free) if alphabet else 8
    at = -(-time.bits // width)
    # Each text is a line.
    size = KINDS[kind].width + 1 if alphabet else KINDS[kind].size
    mixed_at, line = at + len(digits) - 1, b"\n" * bool(alphabet)
    left = size - len(line) - mixed_at

    @lru_cache(maxsize=1)
    def ticks() -> tuple[list[bytes], bytes]:
        """Return each of the digits for each tick of a millisecond, the last by itself."""
        *whole, last = [_each(values, times, TICKS_PER_MS) for values, times in digits]
        return whole, last

    @lru_cache(maxsize=16)
    def tables(lane: int | None) -> tuple[bytes, list[bytes | None]]:
        """Return a table for the last of the digits, and one for each digit after it."""
        mixed, *laned = lane_bytes(lane, free, width)
        plain = letters(alphabet) if alphabet else None
        rest = [table.translate(plain) for table in laned]
        return mixed, [*rest, *[plain] * (left - 1 - len(rest))]

    def draw(first: int, count: int, origin: Origin, random: RandomBytes) -> bytearray | list[str]:
        ms, rest = time.raw(first), (first - UNIX_EPOCH) % TICKS_PER_MS
        head = encode(ms, alphabet, at).encode() if alphabet else ms.to_bytes(at, "big")
        made = bytearray((head + bytes(size - at - len(line)) + line) * count)
        (whole, last), (begin, others) = ticks(), tables(origin.lane)
        drawn, end, place = random(left * count), rest + count, at
        for column in whole:
            made[place::size] = column[rest:end]
            place += 1
        mixed = _or(last[rest:end], drawn[:count].translate(begin))
        made[place::size] = mixed.translate(letters(alphabet)) if alphabet else mixed
        used = count
        for table in others:
            place += 1
            part = drawn[used : used + count]
            made[place::size] = part.translate(table) if table else part
            used += count
        return uuids.lines(made) if alphabet else made

    return draw


def _digit_bits(free: int) -> int:
    """Return the bits of a character, of which three hold a tick in its millisecond, 14 bits."""
    return (14 + free) // 3


def _texts_with_ticks(kind: str, free: int) -> Draw:
    """Return what makes texts of which three characters hold the tick and *free* bits of a lane."""
    alphabet, width = KINDS[kind].digits, _digit_bits(free)
    characters, last = alphabet.encode(), range(0, 1 << width, 1 << free)
    # In place of the last character is its value, because a part of the lane is to be added.
    digits = (characters, 1 << 2 * width - free), (characters, 1 << width - free), (last, 1)
    return _with_ticks(kind, free, digits, alphabet)


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


def as_ints(packed: bytearray, width: int) -> list[int]:
    """Return as ints the ids in *packed*, of *width* bytes each."""
    # int.from_bytes reads the highest byte first by default.
    return list(starmap(int.from_bytes, iter_unpack(f"{width}s", packed)))


def _or(one: bytes | bytearray, other: bytes | bytearray) -> bytes:
    both = int.from_bytes(one, "big") | int.from_bytes(other, "big")
    return both.to_bytes(len(one), "big")


def _big_endian(numbers: array[int]) -> bytes:
    """Return the bytes of an array of numbers, each with its highest byte first."""
    if sys.byteorder == "little":
        numbers.byteswap()
    return numbers.tobytes()


_KSUID, _FLAKE, _FLAKE_TIME = KINDS["ksuid"], KINDS["flake"], TIMES["flake"]


def _uuid_forms(packed: Draw) -> dict[str, Draw]:
    def ints(*block: Any) -> list[int]:
        return as_ints(packed(*block), 16)

    def texts(*block: Any) -> list[str]:
        return uuids.texts(packed(*block))

    return {"uuid": ints, "text": texts, "bytes": packed}


def _gregorian_forms(kind: str, step: int) -> dict[str, Draw]:
    def ints(first: int, count: int, origin: Origin, _: RandomBytes) -> Iterable[int]:
        # Within a run, an id is that before it and *step*.
        begin = versions.gregorian(kind, first, origin.clock_seq, origin.node)
        return islice(itertools.count(begin, step), count)

    return {**_uuid_forms(partial(gregorian, kind)), "uuid": ints}


def _ksuid_texts(first: int, count: int, origin: Origin, random: RandomBytes) -> list[str]:
    values = as_ints(ksuids(first, count, origin, random), _KSUID.size)
    return [encode(value, _KSUID.digits, _KSUID.width) for value in values]


def _flakes(first: int, count: int, origin: Origin, _: RandomBytes) -> range:
    node = check_bits("node", origin.node, NODE_BITS)
    begin = _FLAKE_TIME.raw(first) << 64 | node << 16
    # Within a millisecond the sequence, the lowest bits, is all that changes.
    begin |= (first - _FLAKE_TIME.epoch) % TICKS_PER_MS
    return range(begin, begin + count)


def _flake_texts(values: Iterable[int]) -> list[str]:
    return [encode(value, _FLAKE.digits) for value in values]


def _snowflakes(first: int, count: int, origin: Origin, _: RandomBytes) -> range:
    if origin.worker is None:
        raise ValueError("worker is None; a Snowflake needs a worker number, 0 to 1023")
    begin = snowflake.of_place(first, origin.worker, epoch=origin.epoch)
    return range(begin, begin + count)


def _forms(
    ints: Draw, write: Callable[[Iterable[int]], Iterable[str]], size: int
) -> dict[str, Draw]:
    """Return the forms of ids of *size* bytes that are *ints*; *write* returns their texts."""

    def texts(*block: Any) -> Iterable[str]:
        return write(ints(*block))

    def packed(*block: Any) -> bytes:
        return b"".join([value.to_bytes(size, "big") for value in ints(*block)])

    return {"int": ints, "text": texts, "bytes": packed}


LAYOUTS: Mapping[str, Mapping[str, Draw]] = {
    "v1": _gregorian_forms("v1", 1 << 96),
    "v4": _uuid_forms(v4),
    "v6": _gregorian_forms("v6", 1 << 64),
    "v7": _uuid_forms(
        _with_ticks(
            "v7", 4, ((range(0x70, 0x80), 1 << 10), (range(256), 4), (range(0x80, 0xC0, 16), 1))
        )
    ),
    "snowflake": _forms(_snowflakes, lambda values: map(str, values), 8),
    "flake": _forms(_flakes, _flake_texts, 16),
    "ulid": {
        **_uuid_forms(_with_ticks("ulid", 2, ((range(256), 1 << 6), (range(0, 256, 4), 1)))),
        "text": _texts_with_ticks("ulid", 1),
    },
    "ksuid": {"text": _ksuid_texts, "bytes": ksuids},
    "push_id": {"text": _texts_with_ticks("push_id", 4)},
}
"""What draws each form of each kind in ``kinds.KINDS``: the bytes in one piece, UUIDs as ints."""
