"""Compare ids that the C extension makes with those of Python, and with what they are to say.

The place, the origin and the random bytes of each id are drawn from a seed. Each id is made by the
kind's plain function of Python too, bit for bit. And its fields are read from it by the formats'
own documents, without any code of ours.

As a command it tries millions: ``python -m tests.client.draws --count 1000000 --seed 7``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple
from uuid import UUID

from tests.client.cutters import Hand
from tests.client.test_fast_paths import EPOCH, PLAIN, formed, seen
from uuidd.core.ids import versions
from uuidd.core.ids.kinds import KINDS
from uuidd.core.ids.layouts import LAYOUTS, Origin, time_fields

FIELDS = time_fields(EPOCH)

TAILS = {"v7": 60, "ulid": 66, "ksuid": 104, "push_id": 58}
"""The bits after the tick, the first 8 of which are the lane, if there is one."""

SIZES = {"v4": 16, "v7": 8, "push_id": 8}
"""Random bytes of an id, with a lane or without; of the others they depend on that."""


def range_of(kind: str) -> tuple[int, int]:
    """Return the first place of a kind, and the end of its places."""
    if kind == "v4":
        return 0, 1 << 60
    begin, end = FIELDS[kind].epoch, FIELDS[kind].end
    begin, end = LAYOUTS[kind].places(begin, end - begin)
    # Of a Flake's time 64 bits are only for the future: ticks end before.
    return begin, min(end, (1 << 63) - 1)


def random_size(kind: str, origin: Origin) -> int:
    """Return how many random bytes an id takes: as many as its random bits need."""
    if kind in SIZES:
        return SIZES[kind]
    return {"ulid": 9, "ksuid": 13}.get(kind, 0) - (origin.lane is not None) * (kind in TAILS)


def bits(kind: str, place: int, origin: Origin, random: bytes) -> int:
    """Return the id of a place as the plain functions make it of these random bytes."""
    number = int.from_bytes(random, "big")
    if kind == "v4":
        return versions.v4(
            number >> 80 << 74 | (number >> 64 & 0xFFF) << 62 | number & (1 << 62) - 1
        )
    if kind not in TAILS:
        return PLAIN[kind](place, origin, 0)
    free = TAILS[kind]
    if origin.lane is None:
        return PLAIN[kind](place, origin, number & (1 << free) - 1)
    free -= 8
    return PLAIN[kind](place, origin, origin.lane << free | number & (1 << free) - 1)


# --- without our own code

DIGITS = "0123456789"
UPPER = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
LOWER = UPPER.lower()
ALPHABETS = {
    "ulid": "0123456789ABCDEFGHJKMNPQRSTVWXYZ",
    "ksuid": DIGITS + UPPER + LOWER,
    "flake": DIGITS + UPPER + LOWER,
    "push_id": f"-{DIGITS}{UPPER}_{LOWER}",
    "snowflake": DIGITS,
}

GREGORIAN = 0x01B2_1DD2_1381_4000
"""100 ns from 1582-10-15 to 1970, as RFC 9562 has it."""

MS, SECOND = 10_000, 10_000_000


def number(kind: str, made: Any) -> int:
    """Return an id of any form as one number."""
    if isinstance(made, UUID):
        return made.int
    if isinstance(made, bytes):
        return int.from_bytes(made, "big")
    if isinstance(made, str):
        if kind not in ALPHABETS:
            return UUID(made).int
        value = 0
        for character in made:
            value = value * len(ALPHABETS[kind]) + ALPHABETS[kind].index(character)
        return value
    return int(made)


class Fields(NamedTuple):
    """What an id says: a place, and what tells apart those that have the same."""

    place: int
    other: tuple[int, ...]


def _of_time(id: UUID) -> Fields:
    time = id.time
    if id.version == 6:
        time = id.time_low << 28 | id.time_mid << 12 | id.time_hi_version & 0xFFF
    return Fields(time, (id.version or 0, id.clock_seq, id.node))


def _of_ms(ms: int, rest: int, lane: int) -> Fields:
    return Fields(GREGORIAN + ms * MS + rest, (lane,))


READERS: dict[str, Callable[[int], Fields]] = {
    "v1": lambda id: _of_time(UUID(int=id)),
    "v6": lambda id: _of_time(UUID(int=id)),
    "v4": lambda id: Fields(0, (id >> 76 & 15, id >> 62 & 3)),
    "v7": lambda id: _of_ms(id >> 80, (id >> 64 & 0xFFF) << 2 | id >> 60 & 3, id >> 52 & 255),
    "ulid": lambda id: _of_ms(id >> 80, id >> 66 & 0x3FFF, id >> 58 & 255),
    "push_id": lambda id: _of_ms(id >> 72, id >> 58 & 0x3FFF, id >> 50 & 255),
    "ksuid": lambda id: Fields(
        GREGORIAN + ((id >> 128) + 1_400_000_000) * SECOND + (id >> 104 & 0xFF_FFFF),
        (id >> 96 & 255,),
    ),
    "flake": lambda id: Fields(
        GREGORIAN + (id >> 64) * MS + (id & 0xFFFF), (id >> 16 & (1 << 48) - 1,)
    ),
    "snowflake": lambda id: Fields(((id >> 22) + EPOCH) << 12 | id & 0xFFF, (id >> 12 & 0x3FF,)),
}
"""What the fields of an id are, by kind."""


def said(kind: str, place: int, origin: Origin, random: bytes) -> Fields:
    """Return what an id of these is to say."""
    if kind == "v4":
        return Fields(0, (4, 2))
    if kind in ("v1", "v6"):
        return Fields(place, (int(kind[1]), origin.clock_seq, origin.node))
    if kind in ("flake", "snowflake"):
        return Fields(place, (origin.node if kind == "flake" else origin.worker or 0,))
    if origin.lane is not None:
        return Fields(place, (origin.lane,))
    # The random bits of all of the tail: the lane's are the highest of them.
    tail = int.from_bytes(random, "big") & (1 << TAILS[kind]) - 1
    return Fields(place, (tail >> TAILS[kind] - 8,))


def check_draws(kind: str, seed: int, count: int) -> None:
    """Compare that many ids, in all forms in turn, alone and of a list."""
    random = Random(f"{kind} {seed}")
    drawn = [b""]

    def read(size: int) -> bytes:
        drawn[0] = random.randbytes(size)
        return drawn[0]

    # Nothing is read ahead, so each id has the bytes of the last read.
    hand = Hand(kind, random=read, max_age=0)
    begin, end = range_of(kind)
    forms = KINDS[kind].forms
    for turn in range(count):
        place = random.randrange(begin, end)
        origin = Origin(
            random.getrandbits(48),
            random.getrandbits(14),
            random.getrandbits(10),
            EPOCH,
            random.choice((None, random.getrandbits(8))),
        )
        form, way = forms[turn % len(forms)], turn // len(forms) % 3
        safe = bool(random.getrandbits(1))
        if way == 0:
            (made,) = hand.cutter.many(form, place, 1, origin, safe)
        elif way == 1 and form == "bytes":
            made = hand.cutter.packed(place, 1, origin)
        else:
            hand.lend(place, 1, origin=origin, safe=safe)
            made = hand.one(form)
            # A v4 has no place, and so no block that could be a safe one.
            safe = safe and kind != "v4"
            hand.cutter.take_back()
        size = random_size(kind, origin)
        tail = drawn[0][len(drawn[0]) - size :]
        expected = formed(kind, form, bits(kind, place, origin, tail), safe=safe)
        assert seen(made) == expected, (kind, seed, turn)
        fields = READERS[kind](number(kind, made))
        assert fields == said(kind, place, origin, tail), (kind, seed, turn)


def main() -> int:
    """Compare them; 0 if all are the same."""
    parser = argparse.ArgumentParser(prog="python -m tests.client.draws", description=__doc__)
    parser.add_argument("--count", type=int, default=300_000, metavar="N", help="ids of each kind")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="draw them from N")
    given = parser.parse_args()
    for kind in KINDS:
        check_draws(kind, given.seed, given.count)
    sys.stdout.write(f"{given.count} ids of each of {len(KINDS)} kinds are those of Python\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
