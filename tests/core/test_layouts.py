"""How each kind is made of blocks: bit for bit as ``tests/kinds.py`` says; runs, time fields."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import kinds
from tests.kinds import FORMS, LANED, MS, SECOND, TIMED, UNIX
from uuidd.core.ids import versions
from uuidd.core.ids.kinds import KINDS, PLACES, time_fields
from uuidd.core.ids.layouts import LAYOUTS, RandomBytes
from uuidd.core.ids.places import Origin

EPOCH = 1_600_000_000_000
TICK = UNIX + 1_700_000_000 * SECOND
"""The first of a second, so also of a millisecond."""

ORIGIN = Origin(0x9F6BDECED846, clock_seq=0x33C8, worker=0x2A5, epoch=EPOCH, lane=0xA5)

EACH = pytest.mark.parametrize(("kind", "form"), FORMS)
TICKS = st.integers(TICK, TICK + 100 * SECOND)

ORIGINS = st.builds(
    Origin,
    st.integers(0, (1 << 48) - 1),
    clock_seq=st.integers(0, (1 << 14) - 1),
    worker=st.integers(0, 1023),
    epoch=st.just(EPOCH),
    lane=st.none() | st.integers(0, 255),
)


def zeros(count: int) -> bytes:
    """A source of zeros."""
    return bytes(count)


def draw(
    kind: str,
    form: str,
    place: int,
    count: int,
    random: RandomBytes = zeros,
    origin: Origin = ORIGIN,
) -> list[int]:
    """Return the numbers of the ids of some places, all in one run, asserting their form."""
    made = LAYOUTS[kind][form](place, count, origin, random)
    if form == "bytes":
        size = kinds.KINDS[kind].size
        made = [bytes(made[at : at + size]) for at in range(0, len(made), size)]
    made = list(made)
    assert {*map(type, made)} <= {{"text": str, "bytes": bytes}.get(form, int)}
    return [kinds.number(kind, each) for each in made]


def one(kind: str, place: int, random: RandomBytes = zeros, origin: Origin = ORIGIN) -> int:
    """Return the number of one id in the kind's default form."""
    [made] = draw(kind, KINDS[kind].forms[0], place, 1, random, origin)
    return made


def check(kind: str, form: str, place: int, count: int, origin: Origin = ORIGIN) -> None:
    """Assert that the ids of some places are right, whatever random bits they have."""
    found = draw(kind, form, place, count, Random(count).randbytes, origin)
    assert found == [kinds.made(kind, place + at, origin, id) for at, id in enumerate(found)]
    assert len(found) == count


def test_each_kind_that_is_made_has_a_layout_in_each_form() -> None:
    documented = {kind: (found.timeline, found.forms) for kind, found in kinds.KINDS.items()}
    assert {kind: (found.timeline, found.forms) for kind, found in KINDS.items()} == documented
    assert {kind: {*forms} for kind, forms in LAYOUTS.items()} == {
        kind: {*found.forms} for kind, found in KINDS.items()
    }


@EACH
@given(data=st.data(), origin=ORIGINS)
def test_any_places_of_a_run_are_right(
    kind: str, form: str, data: st.DataObject, origin: Origin
) -> None:
    begin, end = kinds.places(kind, EPOCH) if KINDS[kind].timeline else (0, 1 << 60)
    # Of a Flake's time 64 bits are only for the future: ticks end before.
    first = data.draw(st.integers(begin, min(end, 1 << 63) - 1))
    if data.draw(st.booleans()):
        first += PLACES[kind].room(first) - data.draw(st.integers(1, 40))
    count = min(PLACES[kind].room(first), data.draw(st.integers(0, 40)))
    check(kind, form, max(first, begin), count, origin)


@EACH
def test_a_whole_run_is_right(kind: str, form: str) -> None:
    place = PLACES[kind].places(TICK + SECOND - MS, 1)[0]
    check(kind, form, place, min(PLACES[kind].room(place), MS))


def reached(draw: Callable[[RandomBytes], list[int]]) -> list[tuple[int, int]]:
    """Return which bit of which id each bit of the source sets, asserting that it is one or none.

    The source is called once, and each of its bits is set alone.
    """
    asked: list[int] = []

    def note(count: int) -> bytes:
        asked.append(count)
        return bytes(count)

    plain = draw(note)
    found = []
    for bit in range(8 * sum(asked)):
        drawn = draw(partial((1 << bit).to_bytes, byteorder="little"))
        changed = [
            (at, one ^ other)
            for at, (one, other) in enumerate(zip(plain, drawn, strict=True))
            if one != other
        ]
        assert len(changed) <= 1
        found += changed
    assert len(asked) == bool(found)
    return found


@EACH
@pytest.mark.parametrize("lane", [None, 0, 0xA5])
def test_each_random_bit_comes_from_a_bit_of_its_own(
    kind: str, form: str, lane: int | None
) -> None:
    """So no two random bits depend on each other. Kinds without random bits read none."""
    origin = ORIGIN._replace(lane=lane)
    place = PLACES[kind].places(TICK + 77, 1)[0]
    found = reached(lambda random: draw(kind, form, place, 3, random, origin))
    low, high = (kinds.made(kind, place, origin, random) for random in (0, -1))
    bits = [1 << bit for bit in range(160) if (low ^ high) >> bit & 1]
    assert sorted(found) == [(at, bit) for at in range(3) for bit in bits]
    assert len(bits) == kinds.tail(kind, lane)
    assert bool(bits) == PLACES[kind].random


@pytest.mark.parametrize(
    ("kind", "form", "id"),
    [
        ("v7", "text", "017f22e2-79b0-7134-aa50-000000000000"),
        ("v7", "uuid", 0x017F22E2_79B0_7134_AA50_000000000000),
        ("v7", "bytes", bytes.fromhex("017f22e279b07134aa50000000000000")),
        ("ulid", "text", "01FWHE4YDG2D59800000000000"),
        ("ulid", "uuid", 0x017F22E2_79B0_134A_9400_000000000000),
        ("ulid", "bytes", bytes.fromhex("017f22e279b0134a9400000000000000")),
        ("ksuid", "bytes", bytes.fromhex("0ea2e9ee0004d2a5000000000000000000000000")),
        ("push_id", "text", "-MwXsbak3oeJ--------"),
    ],
    ids=lambda value: value if value in {"text", "uuid", "bytes", *LANED} else "",
)
def test_the_lane_stands_where_it_is_documented(kind: str, form: str, id: object) -> None:
    """Tick 1,234 is 00 0100 1101 0010, and lane 165 follows it as 1010 0101."""
    tick = UNIX + 1_645_557_742_000 * MS + 1_234
    made = LAYOUTS[kind][form](tick, 1, Origin(1, lane=0b1010_0101), zeros)
    assert (made if form == "bytes" else [*made]) == (id if form == "bytes" else [id])


@pytest.mark.parametrize(
    ("kind", "origin", "error"),
    [
        *(
            (kind, Origin(1, worker=1)._replace(**{field: beyond}), f"^{field} is {beyond}; ")
            for kind, found in kinds.KINDS.items()
            for field, size in kinds.sizes(found.layout).items()
            if field in Origin._fields
            for beyond in (-1, 1 << size)
        ),
        ("snowflake", Origin(1, worker=1, epoch=EPOCH * 2), "^ms is "),
        ("snowflake", Origin(1), r"^worker is None; .* 0 to 1023$"),
    ],
)
def test_an_origin_that_does_not_fit_is_refused(kind: str, origin: Origin, error: str) -> None:
    place = PLACES[kind].places(TICK, 1)[0]
    for form in LAYOUTS[kind]:
        with pytest.raises(ValueError, match=error):
            draw(kind, form, place, 1, zeros, origin)


@pytest.mark.parametrize(("kind", "form"), [each for each in FORMS if each[0] in LANED])
def test_a_tick_fits_up_to_the_ends_of_the_field(kind: str, form: str) -> None:
    begin, end = kinds.places(kind)
    for tick in (begin, end - 1):
        check(kind, form, tick, 1)
    for tick in (begin - 1, end):
        message = f"^tick is {tick}; the time of a {kind} is "
        with pytest.raises(ValueError, match=message):
            draw(kind, form, tick, 1)


@pytest.mark.parametrize("kind", TIMED)
@given(tick=st.integers(EPOCH * MS + UNIX, 1 << 60))
def test_room_goes_up_to_the_end_of_the_run(kind: str, tick: int) -> None:
    place = PLACES[kind].places(tick, 1)[0]
    end = place + PLACES[kind].room(place)
    run, begin = (
        (4096, 0)
        if KINDS[kind].timeline == "utc"
        else (
            kinds.KINDS[kind].slots,
            kinds.places(kind)[0],
        )
    )
    assert (place - begin) // run == (end - 1 - begin) // run
    assert (end - begin) % run == 0


@pytest.mark.parametrize("kind", LAYOUTS)
@given(first=TICKS, count=st.integers(1, 50_000))
def test_the_ticks_for_a_number_of_ids_hold_them(kind: str, first: int, count: int) -> None:
    places = PLACES[kind]
    begin, end = places.places(first, places.ticks(count))
    assert end - begin >= count
    if kind != "snowflake":
        assert (begin, end) == (first, first + count)


@pytest.mark.parametrize("kind", TIMED)
@given(TICKS, st.integers(0, 2 * SECOND) | st.integers(0, 9), ORIGINS, ORIGINS)
def test_a_later_tick_gives_a_greater_id_wherever_it_is_made(
    kind: str, tick: int, later: int, here: Origin, there: Origin
) -> None:
    """Whatever the node, the worker number, the lane and the random bits; v1 sorts as v6 here.

    Of steady kinds without random bits only in a later run, for there clients begin a run with each
    node: so in no other kind may a node come before the tick.
    """
    places = PLACES[kind]
    place, _ = places.places(tick, 1)
    starts_anew = KINDS[kind].timeline != "utc" and not places.random
    later += places.room(place) if starts_anew else 1
    ids = [
        one(kind, place, lambda count: b"\xff" * count, here),
        one(kind, place + later, zeros, there),
    ]
    if kind == "v1":
        ids = [versions.v1_to_v6(id) for id in ids]
    assert ids[0] < ids[1]


def test_snowflakes_at_a_low_rate_do_not_share_a_sequence_number() -> None:
    """At 10 a second, some microseconds late each, they spread over all shards modulo 16."""
    places, late = PLACES["snowflake"], Random(7)
    sequences = []
    for at in range(100):
        now = TICK + at * SECOND // 10 + late.randrange(MS)
        place, _ = places.places(now, places.ticks(1))
        sequences.append(kinds.fields("snowflake", one("snowflake", place))["rest"])
    assert len(set(sequences)) > 90
    assert {sequence % 16 for sequence in sequences} == set(range(16))


@given(TICKS)
def test_a_time_field_has_the_value_that_is_in_the_id(tick: int) -> None:
    for kind, field in time_fields(EPOCH).items():
        place, _ = PLACES[kind].places(tick, 1)
        carried = kinds.fields(kind, one(kind, place))["time"]
        assert field.raw(kinds.tick_of_place(kind, place)) == carried, kind
