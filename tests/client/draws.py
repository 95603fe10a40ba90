"""Compare ids that the C extension and Python make with what ``tests/kinds.py`` says.

The places, the origin and the random bytes of each draw come from a seed. The ids of the
extension are compared bit for bit; those of Python in all but their random bits.

As a command it tries millions: ``python -m tests.client.draws --count 1000000 --seed 7``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from random import Random
from typing import Any
from uuid import UUID, SafeUUID

from tests import kinds
from tests.client.cutters import CUTTERS, Hand
from tests.kinds import KINDS
from uuidd.cli.arguments import whole
from uuidd.core.ids.places import Origin
from uuidd_client.cutter import Cutter

EPOCH = 1_600_000_000_000
"""Unix milliseconds from which Snowflakes count here."""

MOST = 5
"""How many ids a draw makes at most."""

Read = Callable[[int], bytes]


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


def check(
    new: Any, kind: str, form: str, places: range, origin: Origin, read: Read, way: str, safe: bool
) -> None:
    """Compare the ids of *places* that a cutter of *new* draws with what it *read*.

    The *way* is "one", "many" for a list, or "passed" for a list of a source that is passed.
    """
    drawn: list[bytes] = []

    def noted(size: int) -> bytes:
        drawn.append(read(size))
        return drawn[-1]

    # Nothing is made or read ahead, so the ids have all that was read.
    hand = Hand(new, max_age=0, random=noted)
    source = hand.source(places.start, places.stop, origin=origin, safe=safe)
    passed = source if way == "passed" else None
    hand.cutter.source = None if passed else source
    made = [hand.one(kind, form)] if way == "one" else hand.many(len(places), kind, form, passed)
    size = kinds.random_size(kind, origin.lane)
    tails = [b""] * len(places)
    if new is Cutter:
        # layouts.py says how Python uses them.
        tails = [kinds.number(kind, id).to_bytes(20, "big") for id in made]
    elif size:
        # The extension takes them from the last to the first.
        tails = [part[at - size : at] for part in drawn for at in range(len(part), size - 1, -size)]
    assert [seen(id) for id in made] == [
        formed(kind, form, bits(kind, place, origin, tail), safe=safe)
        for place, tail in zip(places, tails, strict=True)
    ], (kind, form, places, origin, way)


def check_draws(name: str, kind: str, seed: int, count: int) -> None:
    """Compare so many draws of an implementation, in all forms and ways in turn."""
    random = Random(f"{kind} {seed}")
    begin, end = range_of(kind)
    forms = KINDS[kind].forms
    for turn in range(count):
        first = random.randrange(begin, end - MOST)
        lane = random.choice((None, random.getrandbits(8)))
        node, clock_seq, worker = map(random.getrandbits, (48, 14, 10))
        form, way = forms[turn % len(forms)], ("one", "many", "passed")[turn // len(forms) % 3]
        places = range(first, first + (1 if way == "one" else random.randint(0, MOST)))
        origin = Origin(node, clock_seq, worker, EPOCH, lane)
        safe = bool(random.getrandbits(1))
        check(CUTTERS[name], kind, form, places, origin, random.randbytes, way, safe)


def main(words: Sequence[str] | None = None) -> int:
    """Compare as many as *words*, the arguments of the command, ask for."""
    parser = argparse.ArgumentParser(prog="python -m tests.client.draws", description=__doc__)
    count = whole(1)
    parser.add_argument("--count", type=count, default=200_000, metavar="N", help="draws of a kind")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="draw them from N")
    given = parser.parse_args(words)
    for name in CUTTERS:
        for kind in KINDS:
            check_draws(name, kind, given.seed, given.count)
    sys.stdout.write(f"{given.count} draws of each of {len(KINDS)} kinds are right\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
