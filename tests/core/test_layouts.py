"""How each kind is made of blocks: each form, each run, and what kinds have in common."""

from __future__ import annotations

import inspect
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import kinds
from tests.kinds import FORMS, LANED, MS, SECOND, TIMED, UNIX
from uuidd.core.ids import versions
from uuidd.core.ids.bulk import RandomBytes
from uuidd.core.ids.kinds import KINDS, PLACES, time_fields
from uuidd.core.ids.layouts import LAYOUTS
from uuidd.core.ids.places import Origin

EPOCH = 1_600_000_000_000
TICK = UNIX + 1_700_000_000 * SECOND
ORIGIN = Origin(0x9F6BDECED846, clock_seq=0x33C8, worker=0x2A5, epoch=EPOCH, lane=0xA5)

EACH = pytest.mark.parametrize(("kind", "form"), FORMS)
EACH_KIND = pytest.mark.parametrize("kind", LAYOUTS)
TICKS = st.integers(TICK, TICK + 100 * SECOND)
SEEDS = st.integers(0, 9)

EACH_LANED = pytest.mark.parametrize(
    ("kind", "form"), [(kind, form) for kind, form in FORMS if kind in LANED]
)


def zeros(count: int) -> bytes:
    """A source of zeros."""
    return bytes(count)


def ones(count: int) -> bytes:
    """A source of ones."""
    return b"\xff" * count


def draw(
    kind: str,
    form: str,
    place: int,
    count: int,
    random: RandomBytes = zeros,
    origin: Origin = ORIGIN,
) -> list[Any]:
    """Return the ids of *count* places, all in one run."""
    return list(LAYOUTS[kind].forms[form](place, count, origin, random))


def read(kind: str, form: str, made: Any) -> int:
    """Return the number of an id, asserting that it has that form."""
    assert type(made) is {"text": str, "bytes": bytes}.get(form, int)
    return kinds.number(kind, made)


def run_of(kind: str) -> tuple[int, int]:
    """Return where a run of the kind begins, and how long it is."""
    places = PLACES[kind]
    place = places.places(TICK, 1)[0]
    begin = place + places.room(place)
    return begin, places.room(begin)


def all_of(kind: str, first: int, ticks: int) -> list[int]:
    """Return the ids of all places of a block, run by run."""
    layout, places = LAYOUTS[kind], PLACES[kind]
    place, end = places.places(first, ticks)
    found: list[int] = []
    form = next(form for form in layout.forms if form != "bytes")
    while place < end:
        part = min(places.room(place), end - place)
        found += [read(kind, form, made) for made in draw(kind, form, place, part, ones)]
        place += part
    return found


def test_each_kind_that_is_made_has_a_layout_in_each_form() -> None:
    """Of the forms and the timeline that are documented."""
    documented = {kind: (found.timeline, found.forms) for kind, found in kinds.KINDS.items()}
    assert {kind: (found.timeline, found.forms) for kind, found in KINDS.items()} == documented
    assert [(kind, form) for kind in KINDS for form in KINDS[kind].forms] == FORMS
    for kind, layout in LAYOUTS.items():
        assert set(layout.forms) == set(KINDS[kind].forms)


# --- each form of each kind


@EACH
@pytest.mark.parametrize(
    ("numerator", "count"),
    [
        (0, 0),
        (0, 1),
        (1, 300),
        (2, 1_000),
        (3, 1_000),
        pytest.param(0, 10_000, marks=pytest.mark.thorough),
    ],
)
def test_ids_are_what_the_oracle_says(kind: str, form: str, numerator: int, count: int) -> None:
    """At the beginning, in the middle and at the end of a run, in each form and number."""
    begin, run = run_of(kind)
    count = min(count, run)
    # At the beginning, a third and two thirds in, and up to the end.
    place = begin + min(numerator * run // 3, run - count)
    made = draw(kind, form, place, count, Random(count).randbytes)
    found = [read(kind, form, each) for each in made]
    assert found == [kinds.made(kind, place + at, ORIGIN, id) for at, id in enumerate(found)]
    assert len(found) == count
    assert PLACES[kind].room(place) >= count


@EACH
def test_the_last_of_a_run_and_the_first_of_the_next_are_right(kind: str, form: str) -> None:
    """A run ends where its room does, and the next begins at the next place."""
    begin, run = run_of(kind)
    for place in (begin - 1, begin, begin + run - 1, begin + run):
        (made,) = draw(kind, form, place, 1)
        assert read(kind, form, made) == kinds.made(kind, place, ORIGIN)


@EACH
@pytest.mark.parametrize("lane", [0, 1, 16, 0xA5, 255, None])
def test_random_bits_are_all_of_the_source(kind: str, form: str, lane: int | None) -> None:
    """A source of zeros sets none of them, a source of ones all; the lane is not among them."""
    begin, _ = run_of(kind)
    origin = ORIGIN._replace(lane=lane)
    for source, random in ((zeros, 0), (ones, -1)):
        made = draw(kind, form, begin, 20, source, origin)
        assert [read(kind, form, each) for each in made] == [
            kinds.made(kind, begin + at, origin, random) for at in range(20)
        ]


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
    assert draw(kind, form, tick, 1, zeros, Origin(1, lane=0b1010_0101)) == [id]


@EACH_LANED
@given(lanes=st.sets(st.integers(0, 255), min_size=2, max_size=2), seeds=st.tuples(*[SEEDS] * 2))
def test_no_two_lanes_make_the_same_id_of_a_tick(
    kind: str, form: str, lanes: set[int], seeds: tuple[int, int]
) -> None:
    """Their ids differ in the lane, whether or not they have the same random bits."""
    begin, _ = run_of(kind)
    found = [
        {read(kind, form, made) for made in draw(kind, form, begin, 20, source, origin)}
        for source, origin in zip(
            [Random(seed).randbytes for seed in seeds],
            [ORIGIN._replace(lane=lane) for lane in lanes],
            strict=True,
        )
    ]
    assert not found[0] & found[1]
    for ids, lane in zip(found, lanes, strict=True):
        assert {kinds.fields(kind, id)["lane"] for id in ids} == {lane}


@EACH_LANED
def test_ids_of_all_lanes_sort_by_tick_first(kind: str, form: str) -> None:
    """The highest id of a tick is of the last lane, and lower than all ids of the next tick."""
    begin, _ = run_of(kind)
    highest = draw(kind, form, begin, 20, ones, ORIGIN._replace(lane=255))
    lowest = draw(kind, form, begin, 20, zeros, ORIGIN._replace(lane=0))
    pairs = zip(highest, lowest[1:], strict=False)
    assert all(read(kind, form, high) < read(kind, form, low) and high < low for high, low in pairs)


@EACH
def test_only_kinds_with_random_bits_draw_any(kind: str, form: str) -> None:
    """If a place has only one id, the source is not called."""
    asked: list[int] = []

    def note(count: int) -> bytes:
        asked.append(count)
        return bytes(count)

    draw(kind, form, run_of(kind)[0], 5, note)
    assert bool(asked) == PLACES[kind].random == bool(kinds.tail(kind))


@EACH
def test_an_iterator_runs_in_c(kind: str, form: str) -> None:
    """No step of it is in Python, so that several threads may share it."""
    made = LAYOUTS[kind].forms[form](run_of(kind)[0], 3, ORIGIN, zeros)
    assert iter(made) is made
    assert not inspect.isgenerator(made)
    assert type(made).__module__ in {"builtins", "itertools"}


@pytest.mark.parametrize("form", LAYOUTS["snowflake"].forms)
def test_a_snowflake_without_a_worker_is_refused(form: str) -> None:
    """The error names the field and the range."""
    with pytest.raises(ValueError, match=r"^worker is None; .* 0 to 1023$"):
        LAYOUTS["snowflake"].forms[form](run_of("snowflake")[0], 1, Origin(1), zeros)


@pytest.mark.parametrize(
    ("kind", "origin", "name"),
    [
        *(
            (kind, Origin(1, worker=1)._replace(**{field: beyond}), field)
            for kind, found in kinds.KINDS.items()
            for field, size in kinds.sizes(found.layout).items()
            if field in Origin._fields
            for beyond in (-1, 1 << size)
        ),
        ("snowflake", Origin(1, worker=1, epoch=EPOCH * 2), "ms"),
    ],
)
def test_an_origin_that_does_not_fit_is_refused(kind: str, origin: Origin, name: str) -> None:
    """In each form the error names the field."""
    for form in LAYOUTS[kind].forms.values():
        with pytest.raises(ValueError, match=f"^{name} is "):
            form(run_of(kind)[0], 1, origin, zeros)


# --- places, runs and ticks


@pytest.mark.parametrize("kind", TIMED)
def test_room_is_the_rest_of_the_run(kind: str) -> None:
    """It falls by one with each place, down to one, and is whole again after that."""
    begin, run = run_of(kind)
    # The tables of v1 and v6 have so many ids.
    assert run == max(kinds.KINDS[kind].slots, 4096)
    room = PLACES[kind].room
    assert [room(begin + at) for at in (0, 1, run // 2, run - 1, run)] == [
        run,
        run - 1,
        run - run // 2,
        1,
        run,
    ]


@EACH_KIND
@given(first=TICKS, count=st.integers(1, 50_000))
def test_the_ticks_for_a_number_of_ids_hold_them(kind: str, first: int, count: int) -> None:
    """Wherever a block begins. For all kinds except Snowflakes, a place is a tick."""
    places = PLACES[kind]
    begin, end = places.places(first, places.ticks(count))
    assert end - begin >= count
    if kind != "snowflake":
        assert (begin, end) == (first, first + count)


# --- what kinds have in common


@pytest.mark.parametrize("kind", TIMED)
@given(first=TICKS, count=st.integers(1, 200), back=st.integers(0, 60))
def test_ids_of_a_block_rise_over_the_ends_of_runs(
    kind: str, first: int, count: int, back: int
) -> None:
    """Each place has an id higher than the one before it; v1 sorts as v6 here."""
    if back:
        first += -(first - UNIX) % SECOND - back
    found = all_of(kind, first, count)
    if kind == "v1":
        found = [versions.v1_to_v6(value) for value in found]
    assert found == sorted(set(found))


ORIGINS = st.builds(
    Origin,
    st.integers(0, (1 << 48) - 1),
    clock_seq=st.integers(0, (1 << 14) - 1),
    worker=st.integers(0, 1023),
    epoch=st.just(EPOCH),
    lane=st.none() | st.integers(0, 255),
)


@pytest.mark.parametrize("kind", TIMED)
@given(TICKS, st.integers(0, 2 * SECOND) | st.integers(0, 9), ORIGINS, ORIGINS)
def test_a_later_tick_gives_a_greater_id_wherever_it_is_made(
    kind: str, tick: int, later: int, one: Origin, other: Origin
) -> None:
    """Whatever the node, the worker number, the lane and the random bits; v1 sorts as v6 here.

    Of steady kinds without random bits only in a later run, for there clients begin a run with each
    node: so in no other kind may a node come before the tick.
    """
    layout, places = LAYOUTS[kind], PLACES[kind]
    place, _ = places.places(tick, 1)
    starts_anew = KINDS[kind].timeline != "utc" and not places.random
    later += places.room(place) if starts_anew else 1
    form = next(form for form in layout.forms if form != "bytes")
    (low,) = draw(kind, form, place, 1, ones, one)
    (high,) = draw(kind, form, place + later, 1, zeros, other)
    ids = [read(kind, form, made) for made in (low, high)]
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
        (made,) = draw("snowflake", "int", place, 1)
        sequences.append(kinds.fields("snowflake", made)["rest"])
    assert len(set(sequences)) > 90
    assert {sequence % 16 for sequence in sequences} == set(range(16))


# --- time fields


def test_each_kind_with_a_time_has_a_time_field() -> None:
    """All on a timeline have one, with the kind's name; v4 has none."""
    fields = time_fields(EPOCH)
    assert set(fields) == {kind for kind in KINDS if KINDS[kind].timeline}
    assert {kind: field.kind for kind, field in fields.items()} == {kind: kind for kind in fields}


@given(TICKS)
def test_a_time_field_has_the_value_that_is_in_the_id(tick: int) -> None:
    """For each kind, the field's value at a tick is the one that the id of the tick carries."""
    for kind, field in time_fields(EPOCH).items():
        place, _ = PLACES[kind].places(tick, 1)
        (made,) = draw(kind, KINDS[kind].forms[0], place, 1)
        carried = kinds.fields(kind, made)["time"]
        assert field.raw(kinds.tick_of_place(kind, place)) == carried, kind


PACKED = [kind for kind, layout in LAYOUTS.items() if layout.packed]


@pytest.mark.parametrize("kind", PACKED)
@given(TICKS, st.integers(1, 5000), st.none() | st.integers(0, 255))
def test_bytes_in_one_piece_are_those_of_one_by_one(
    kind: str, first: int, count: int, lane: int | None
) -> None:
    """Byte for byte, over all of a run, for the same random bytes."""
    origin = ORIGIN._replace(lane=lane)
    layout, places = LAYOUTS[kind], PLACES[kind]
    count = min(count, places.room(first))
    assert layout.packed is not None
    packed = layout.packed(first, count, origin, Random(1).randbytes)
    assert packed == b"".join(layout.forms["bytes"](first, count, origin, Random(1).randbytes))
