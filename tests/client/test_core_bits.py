"""What the C extension makes is bit for bit what ``tests/kinds.py`` says."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Any
from uuid import UUID, SafeUUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.client.cutters import Hand
from tests.client.draws import bits, check_draws, range_of
from tests.client.test_fast_paths import EPOCH, formed, seen
from tests.kinds import FORMS, KINDS, random_size
from uuidd.core.ids.layouts import Origin

origins = st.builds(
    Origin,
    st.integers(0, (1 << 48) - 1),
    st.integers(0, (1 << 14) - 1),
    st.integers(0, 1023),
    st.just(EPOCH),
    st.integers(0, 255) | st.none(),
)


def edges(kind: str) -> Iterator[int]:
    """Return places at which a field of a kind is zero, full, or carried into."""
    begin, end = range_of(kind)
    for shift in range(60):
        yield from (begin + (1 << shift) - 1, begin + (1 << shift), end - (1 << shift))
    middle = begin + (end - begin) // 3
    for unit in (4096, 10_000, 10_000_000, 1 << 32):
        at = begin + (middle - begin) // unit * unit
        yield from (at - 1, at, at + 1, at + unit // 2)


ORIGINS = [
    Origin(0, 0, 0, EPOCH, 0),
    Origin((1 << 48) - 1, (1 << 14) - 1, 1023, EPOCH, 255),
    Origin(0x0123_4567_89AB, 0x1234, 0x155, EPOCH, 0xA5),
    Origin(0x0123_4567_89AB, 0x1234, 0x155, EPOCH, None),
]


@pytest.mark.parametrize(("kind", "form"), FORMS)
@pytest.mark.parametrize("origin", ORIGINS, ids=["zeros", "ones", "mixed", "without"])
@pytest.mark.parametrize("fill", [b"\x00", b"\xff"], ids=["low", "high"])
def test_ids_at_the_edges_of_their_fields(
    kind: str, form: str, origin: Origin, fill: bytes
) -> None:
    """A field that runs into another shows with all its neighbours zeros, or all ones."""
    hand = Hand(kind, random=lambda count: fill * count)
    begin, end = range_of(kind)
    random = fill * random_size(kind, origin.lane)
    for place in sorted({place for place in edges(kind) if begin <= place < end}):
        (made,) = hand.cutter.many(form, place, 1, origin, True)
        expected = formed(kind, form, bits(kind, place, origin, random))
        assert seen(made) == expected, place


@pytest.mark.parametrize("kind", KINDS)
def test_thousands_of_draws(kind: str) -> None:
    """Of places, origins and random bytes that are all random; ``draws.py`` tries more."""
    check_draws(kind, 1, 2000)


@pytest.mark.parametrize(("kind", "form"), FORMS)
@pytest.mark.parametrize("count", [0, 1, 300])
def test_many_ids_have_random_bits_of_their_own(kind: str, form: str, count: int) -> None:
    """Each has some of those that were read, and nobody else has them."""
    drawn: list[bytes] = []
    random = Random(2)

    def read(size: int) -> bytes:
        drawn.append(random.randbytes(size))
        return drawn[-1]

    begin, end = range_of(kind)
    first = begin + (end - begin) // 3
    hand = Hand(kind, random=read)
    made = hand.cutter.many(form, first, count, ORIGINS[2], True)
    size = random_size(kind, ORIGINS[2].lane)
    tails = [tail for part in drawn for tail in _pieces(part, size)]
    assert len(tails) == count * bool(size)
    expected = [
        formed(kind, form, bits(kind, first + number, ORIGINS[2], tail))
        for number, tail in enumerate(tails or [b""] * count)
    ]
    assert [seen(id) for id in made] == expected


def _pieces(part: bytes, size: int) -> list[bytes]:
    """Return its pieces, from the last to the first, as the extension takes them."""
    return [part[at : at + size] for at in range(0, len(part), size)][::-1]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if "bytes" in KINDS[kind].forms])
@pytest.mark.parametrize("count", [0, 1, 300])
def test_packed_ids_are_those_of_a_list(kind: str, count: int) -> None:
    """One after the other, in one piece."""
    begin, end = range_of(kind)
    first = begin + (end - begin) // 3
    fills = [Hand(kind, random=Random(3).randbytes).cutter for _ in range(2)]
    packed = fills[0].packed(first, count, ORIGINS[1])
    listed = fills[1].many("bytes", first, count, ORIGINS[1], True)
    assert packed == b"".join(listed)
    assert len(packed) == count * KINDS[kind].size


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "v4"])
def test_places_without_a_time_are_refused(kind: str) -> None:
    """Before the first, past the last, or partly: such ids would begin anew at 0."""
    hand = Hand(kind)
    begin, end = range_of(kind)
    form = KINDS[kind].forms[0]
    assert hand.cutter.many(form, begin, 1, ORIGINS[0], True)
    wrong = [(begin - 1, 1), (begin, -1)]
    if end < (1 << 63) - 1:
        assert hand.cutter.many(form, end - 1, 1, ORIGINS[0], True)
        wrong += [(end, 1), (end - 1, 2), (end + 1, 0)]
    for first, count in wrong:
        if first >= 0:
            with pytest.raises(ValueError, match="no time that fits"):
                hand.cutter.many(form, first, count, ORIGINS[0], True)
        with pytest.raises((ValueError, OverflowError)):
            hand.cutter.packed(first, count, ORIGINS[0])


@given(st.sampled_from(FORMS), origins, st.data())
def test_an_id_alone_is_that_of_a_list(
    form: tuple[str, str], origin: Origin, data: st.DataObject
) -> None:
    """Both take random bytes from the end of what was read."""
    kind, shape = form
    begin, end = range_of(kind)
    first = data.draw(st.integers(begin, end - 1))
    one = Hand(kind, random=lambda count: bytes(range(256))[-count:])
    safe = kind != "v4"
    if kind == "v4":
        origin = origin._replace(lane=None)
    one.lend(first, 1, origin=origin)
    alone = one.one(shape)
    size = random_size(kind, origin.lane)
    whole = random_size(kind)
    tail = bytes(range(256))[-whole:][whole - size :]
    assert seen(alone) == formed(kind, shape, bits(kind, first, origin, tail), safe=safe)


class Subclass(UUID):
    """Its slots are those of another class."""

    __slots__ = ()


MAKERS: dict[str, Callable[[Hand], Any]] = {
    "alone": lambda hand: hand.one("uuid"),
    "listed": lambda hand: hand.cutter.many("uuid", 1 << 58, 1, ORIGINS[2], True)[0],
}


@pytest.mark.parametrize("way", MAKERS)
@pytest.mark.parametrize("kind", [UUID, Subclass])
def test_a_uuid_is_made_by_its_slots_or_its_class(way: str, kind: type[UUID]) -> None:
    """The same one."""
    hand = Hand(uuid=kind)
    hand.lend(1 << 58, 1, origin=ORIGINS[2])
    made = MAKERS[way](hand)
    assert type(made) is kind
    assert seen(UUID(int=made.int, is_safe=made.is_safe)) == formed(
        "v1", "uuid", bits("v1", 1 << 58, ORIGINS[2], b"")
    )


@pytest.mark.parametrize("way", MAKERS)
def test_a_class_that_cannot_be_written_to_is_called(way: str) -> None:
    """As one without slots, whatever was asked for."""

    class Another:
        def __init__(self, int: int, is_safe: SafeUUID) -> None:
            self.made = int, is_safe

    hand = Hand(uuid=Another)  # type: ignore[arg-type]
    hand.lend(1 << 58, 1, origin=ORIGINS[2])
    made = MAKERS[way](hand)
    assert made.made == (bits("v1", 1 << 58, ORIGINS[2], b""), SafeUUID.safe)


@pytest.mark.parametrize("way", MAKERS)
def test_the_error_of_a_class_is_the_callers(way: str) -> None:
    """And what was made until then is not seen by anybody."""

    class Failing(UUID):
        def __init__(self, **_: Any) -> None:
            raise RuntimeError("not today")

    hand = Hand(uuid=Failing)
    hand.lend(1 << 58, 1, origin=ORIGINS[2])
    with pytest.raises(RuntimeError, match="not today"):
        MAKERS[way](hand)


@pytest.mark.parametrize("count", [-1, (1 << 63) // 20 + 1, 1 << 59, 1 << 60, 1 << 62])
def test_more_ids_than_memory_can_have_are_refused(count: int) -> None:
    """And fewer than none. A v4 has no time that would set a bound."""
    cutter = Hand("v4").cutter
    with pytest.raises(ValueError, match=f"{count} places"):
        cutter.many("bytes", 0, count, ORIGINS[0], True)
    with pytest.raises(ValueError, match=f"{count} places"):
        cutter.packed(0, count, ORIGINS[0])
