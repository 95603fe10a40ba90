"""What cutters make, in C and in Python, is bit for bit what ``tests/kinds.py`` says."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from tests.client.cutters import CUTTERS, Hand, core
from tests.client.draws import EPOCH, bits, check_draws, formed, range_of, seen
from tests.kinds import FORMS, KINDS, random_size
from uuidd.core.ids.places import Origin


def edges(kind: str) -> Iterator[int]:
    """Return places at which a field of a kind is zero, full, or carried into."""
    begin, end = range_of(kind)
    for shift in range(60):
        yield from (begin + (1 << shift) - 1, begin + (1 << shift), end - (1 << shift))
    middle = begin + (end - begin) // 3
    for unit in (4096, 10_000, 10_000_000, 1 << 32):
        at = begin + (middle - begin) // unit * unit
        yield from (at - 1, at, at + 1, at + unit // 2)


ORIGINS = {
    "zeros": Origin(0, 0, 0, EPOCH, 0),
    "ones": Origin((1 << 48) - 1, (1 << 14) - 1, 1023, EPOCH, 255),
    "mixed": Origin(0x0123_4567_89AB, 0x1234, 0x155, EPOCH, 0xA5),
    "without": Origin(0x0123_4567_89AB, 0x1234, 0x155, EPOCH, None),
}


@pytest.mark.parametrize(("kind", "form"), FORMS)
@pytest.mark.parametrize("origin", ORIGINS.values(), ids=ORIGINS)
@pytest.mark.parametrize("fill", [b"\x00", b"\xff"], ids=["low", "high"])
def test_ids_at_the_edges_of_their_fields(
    new: Any, kind: str, form: str, origin: Origin, fill: bytes
) -> None:
    """A field that runs into another shows with all its neighbours zeros, or all ones."""
    hand = Hand(new, random=lambda count: fill * count)
    begin, end = range_of(kind)
    random = fill * random_size(kind, origin.lane)
    for place in sorted({place for place in edges(kind) if begin <= place < end}):
        (made,) = hand.many(1, kind, form, hand.source(place, place + 1, origin=origin))
        assert seen(made) == formed(kind, form, bits(kind, place, origin, random)), place


@pytest.mark.parametrize(("kind", "form"), FORMS)
@pytest.mark.parametrize("safe", [True, False])
@pytest.mark.parametrize("shift", [12, 32, None], ids=["run of v6", "run of v1", "second"])
def test_many_ids_over_the_end_of_a_run(
    new: Any, kind: str, form: str, safe: bool, shift: int | None
) -> None:
    """Where the low part of the tick wraps, and where the next unit of time begins."""
    random, origin = b"\xff" * random_size(kind, None), ORIGINS["without"]
    begin, end = range_of(kind)
    unit = KINDS[kind].slots if shift is None else 1 << shift
    middle = begin + (end - begin) // 3
    first = middle - (middle - (begin if shift is None else 0)) % unit - 150
    hand = Hand(new, random=lambda count: b"\xff" * count)
    found = hand.many(300, kind, form, hand.source(first, end, origin=origin, safe=safe))
    assert [seen(id) for id in found] == [
        formed(kind, form, bits(kind, place, origin, random), safe=safe)
        for place in range(first, first + 300)
    ]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", CUTTERS)
def test_thousands_of_draws(name: str, kind: str) -> None:
    """Of places, origins and random bytes that are all random; ``draws.py`` tries more."""
    check_draws(name, kind, 1, 1000)


@pytest.mark.skipif(core is None, reason="bulk.py says how Python uses them")
@pytest.mark.parametrize(("kind", "form"), FORMS)
@pytest.mark.parametrize("count", [0, 1, 300])
def test_many_ids_have_random_bits_of_their_own(kind: str, form: str, count: int) -> None:
    """Each of the extension has some of those that were read, and nobody else has them."""
    drawn: list[bytes] = []
    random = Random(2)

    def read(size: int) -> bytes:
        drawn.append(random.randbytes(size))
        return drawn[-1]

    begin, end = range_of(kind)
    first, origin = begin + (end - begin) // 3, ORIGINS["mixed"]
    hand = Hand(core.Cutter, random=read)
    made = hand.many(count, kind, form, hand.source(first, end, origin=origin))
    size = random_size(kind, origin.lane)
    tails = [tail for part in drawn for tail in _pieces(part, size)]
    assert len(tails) == count * bool(size)
    expected = [
        formed(kind, form, bits(kind, first + number, origin, tail))
        for number, tail in enumerate(tails or [b""] * count)
    ]
    assert [seen(id) for id in made] == expected


def _pieces(part: bytes, size: int) -> list[bytes]:
    """Return its pieces, from the last to the first, as the extension takes them."""
    return [part[at : at + size] for at in range(0, len(part), size)][::-1]
