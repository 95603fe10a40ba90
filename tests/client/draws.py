"""Compare ids that the C extension and Python make with what ``tests/kinds.py`` says.

The place, the origin and the random bytes of each id are drawn from a seed. The id of the extension
is compared bit for bit; that of Python in all but its random bits.

As a command it tries millions: ``python -m tests.client.draws --count 1000000 --seed 7``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from random import Random
from typing import Any
from uuid import UUID, SafeUUID

from tests import kinds
from tests.client.cutters import CUTTERS, Hand
from tests.kinds import KINDS
from uuidd.cli.arguments import whole
from uuidd.core.ids.places import Origin

EPOCH = 1_600_000_000_000
"""Unix milliseconds from which Snowflakes count here."""


def range_of(kind: str) -> tuple[int, int]:
    """Return the first place of a kind, and the end of its places."""
    if not KINDS[kind].timeline:
        return 0, 1 << 60
    begin, end = kinds.places(kind, EPOCH)
    # Of a Flake's time 64 bits are only for the future: ticks end before.
    return begin, min(end, (1 << 63) - 1)


def bits(kind: str, place: int, origin: Origin, random: bytes) -> int:
    """Return the id of a place that has these random bytes."""
    return kinds.made(kind, place, origin, int.from_bytes(random, "big"))


def formed(kind: str, form: str, value: int, *, safe: bool = True) -> Any:
    """Return the bits of an id in a form; a UUID with its mark, which no comparison would see."""
    if form == "uuid":
        mark = SafeUUID.safe if safe else SafeUUID.unknown
        return UUID(int=value, is_safe=mark), mark
    if form == "text":
        return kinds.text(kind, value)
    return value if form == "int" else kinds.octets(kind, value)


def seen(id: Any) -> Any:
    return (id, id.is_safe) if isinstance(id, UUID) else id


def check_draws(name: str, kind: str, seed: int, count: int) -> None:
    """Compare that many ids of an implementation, in all forms and in three ways in turn.

    They are drawn alone, in a list, and in a list of a source that is passed.
    """
    random = Random(f"{kind} {seed}")
    drawn = [b""]

    def read(size: int) -> bytes:
        drawn[0] = random.randbytes(size)
        return drawn[0]

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
        # Nothing is made or read ahead, so each id has the bytes of the last read.
        hand = Hand(CUTTERS[name], max_age=0, random=read)
        source = hand.source(place, place + 1, origin=origin, safe=safe)
        passed = source if way == 2 else None
        hand.cutter.source = None if passed else source
        (made,) = hand.many(1, kind, form, passed) if way else [hand.one(kind, form)]
        size = kinds.random_size(kind, origin.lane)
        tail = drawn[0][len(drawn[0]) - size :]
        if name == "python":
            tail = kinds.number(kind, made).to_bytes(20, "big")
        expected = formed(kind, form, bits(kind, place, origin, tail), safe=safe)
        assert seen(made) == expected, (name, kind, seed, turn)


def main(words: Sequence[str] | None = None) -> int:
    """Compare as many as *words*, the arguments of the command, ask for."""
    parser = argparse.ArgumentParser(prog="python -m tests.client.draws", description=__doc__)
    count = whole(1)
    parser.add_argument("--count", type=count, default=300_000, metavar="N", help="ids of a kind")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="draw them from N")
    given = parser.parse_args(words)
    for name in CUTTERS:
        for kind in KINDS:
            check_draws(name, kind, given.seed, given.count)
    sys.stdout.write(f"{given.count} ids of each of {len(KINDS)} kinds are right\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
