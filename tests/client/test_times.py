from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

import uuidd_client
from tests import kinds
from tests.client.raw import of_child, raw_fork
from tests.core.draws import Draws, ones, zeros
from tests.kinds import GREGORIAN, KINDS, LANED, TIMED, TWITTER
from uuidd.core.ids import snowflake, versions
from uuidd.core.ids.nodes import MULTICAST
from uuidd.core.ids.places import Origin
from uuidd.core.ids.ticks import TICKS_PER_MS
from uuidd_client import times
from uuidd_client.times import Backfill, Template, Used

TIME = datetime(2022, 2, 22, 19, 22, 22, 123456, tzinfo=UTC)
RFC_TIME = datetime(2022, 2, 22, 19, 22, 22, tzinfo=UTC)
RFC_TICK = 138648505420000000
TICK = RFC_TICK + 1_234_560
MS, REST = 1_645_557_742_123, 4560
SLOT, SLOT_REST = 1867, 4559
"""The slot of a Snowflake up to REST, and the tick that it is on."""

# Published: RFC 9562, A.1 and A.6.
RFC_V1 = UUID("c232ab00-9414-11ec-b3c8-9f6bdeced846")
RFC_V6 = UUID("1ec9414c-232a-6b00-b3c8-9f6bdeced846")


def needed(kind: str) -> dict[str, Any]:
    """Return the fields without which no id of a kind is made."""
    return {"worker": 5} if KINDS[kind].has("worker") else {}


def made_at(kind: str) -> Any:
    """Return an id of TIME, of the type that a program has it in."""
    return times.at_time(kind, TIME, **needed(kind))


@pytest.mark.parametrize(("kind", "expected"), [("v1", RFC_V1), ("v6", RFC_V6)])
@pytest.mark.parametrize("node", [0x9F6BDECED846, "9f:6b:de:ce:d8:46", "9F-6B-DE-CE-D8-46"])
@pytest.mark.parametrize("time", [RFC_TIME, RFC_TICK])
def test_the_rfcs_own_ids_are_made(kind: str, expected: UUID, node: int | str, time: Any) -> None:
    assert times.at_time(kind, time, clock_seq=13256, node=node) == expected


@pytest.mark.parametrize("kind", GREGORIAN)
@pytest.mark.parametrize(
    ("given", "random", "expected"),
    [
        ({}, zeros, (TICK, 0, MULTICAST)),
        ({}, ones, (TICK, 0x3FFF, (1 << 48) - 1)),
        ({"node": 7}, ones, (TICK, 0x3FFF, 7)),
        ({"clock_seq": 7}, zeros, (TICK, 7, MULTICAST)),
    ],
)
def test_only_missing_fields_are_drawn(
    kind: str, given: dict[str, Any], random: Callable[[int], int], expected: tuple[int, ...]
) -> None:
    made = Template(kind, random, **given).at(TICK)
    assert kinds.gregorian(made) == expected


@pytest.mark.parametrize("kind", LANED)
@pytest.mark.parametrize(("random", "bits"), [(zeros, 0), (ones, -1)])
def test_a_tick_is_where_the_daemons_ids_have_it(
    kind: str, random: Callable[[int], int], bits: int
) -> None:
    assert Template(kind, random).at(TICK) == kinds.made(kind, TICK, Origin(0, lane=None), bits)


@pytest.mark.parametrize("kind", TIMED)
def test_an_id_has_the_kinds_own_type_and_else_is_random(kind: str) -> None:
    one, other = made_at(kind), made_at(kind)
    assert type(one) is KINDS[kind].type
    assert (one == other) == (kind == "snowflake")


@pytest.mark.parametrize(
    ("kind", "time", "given", "expected"),
    [
        ("snowflake", TIME, {"worker": 1023}, {"worker": 1023, "rest": SLOT}),
        ("snowflake", TIME, {"worker": 0, "sequence": 4095}, {"worker": 0, "rest": 4095}),
        ("snowflake", TIME, {"datacenter": 31, "worker": 2}, {"worker": 31 * 32 + 2}),
        ("snowflake", MS, {"worker": 9, "epoch": MS - 1}, {"time": 1, "worker": 9, "rest": 0}),
        ("flake", TIME, {"node": 7}, {"time": MS, "node": 7, "rest": REST}),
        ("flake", MS, {"node": 7, "sequence": 9}, {"time": MS, "node": 7, "rest": 9}),
        ("flake", TIME, {"node": 7, "sequence": 0}, {"time": MS, "node": 7, "rest": 0}),
    ],
)
def test_a_sequence_that_is_not_given_is_that_of_the_time(
    kind: str, time: Any, given: dict[str, Any], expected: dict[str, int]
) -> None:
    found = kinds.fields(kind, times.at_time(kind, time, **given))
    assert {name: found[name] for name in expected} == expected


def test_a_flakes_missing_node_is_drawn() -> None:
    assert kinds.fields("flake", Template("flake", zeros).at(TICK))["node"] == MULTICAST


@pytest.mark.parametrize("kind", TIMED)
def test_a_field_that_the_kind_does_not_have_is_refused(kind: str) -> None:
    found = KINDS[kind]
    fields = {name for name in ("clock_seq", "node", "worker") if found.has(name)}
    if found.has("rest") and not kinds.tail(kind):
        fields.add("sequence")
    if found.has("worker"):
        fields |= {"datacenter", "epoch"}
    for name in ("clock_seq", "node", "worker", "datacenter", "sequence", "epoch"):
        given: dict[str, Any] = {**needed(kind), name: 0}
        if name in fields:
            times.at_time(kind, TIME, **given)
            continue
        with pytest.raises(ValueError, match=name) as refused:
            times.at_time(kind, TIME, **given)
        assert name == "epoch" or all(field in str(refused.value) for field in fields - {"epoch"})


@pytest.mark.parametrize(
    ("kind", "given", "message"),
    [
        ("v1", {"clock_seq": 1 << 14}, "clock_seq is 16384; it must be 0 to 16383"),
        ("v1", {"clock_seq": True}, "clock_seq is True; it must be an int"),
        ("v6", {"node": 1 << 48}, "node is 281474976710656; it must be"),
        ("v1", {"node": "44:88:99"}, "node is '44:88:99'; it must be six octets"),
        ("v1", {"node": 1.0}, "node is 1.0; it must be an int"),
        ("snowflake", {}, "worker is missing; a snowflake needs a worker"),
        ("snowflake", {"datacenter": 1}, "worker is missing"),
        ("snowflake", {"worker": 1024}, "worker is 1024; it must be 0 to 1023"),
        ("snowflake", {"worker": -1}, "worker is -1; it must be 0 to 1023"),
        ("snowflake", {"worker": "1"}, "worker is '1'; it must be an int"),
        ("snowflake", {"worker": 32, "datacenter": 0}, "worker is 32; it must be 0 to 31"),
        ("snowflake", {"worker": 0, "datacenter": 32}, "datacenter is 32; it must be 0 to 31"),
        ("snowflake", {"worker": 0, "sequence": 4096}, "sequence is 4096; it must be 0 to 4095"),
        ("snowflake", {"worker": 1, "epoch": 1.0}, "epoch is 1.0; it must be an int"),
        ("flake", {"sequence": 1 << 16}, "sequence is 65536; it must be 0 to 65535"),
        ("flake", {"sequence": 1.0}, "sequence is 1.0; it must be an int"),
        ("v7", {"epoch": 0}, "epoch is 0; only a snowflake has one, a v7 has not"),
        ("v7", {"epoch": float(TWITTER)}, "epoch is 1288834974657.0; it must be an int"),
    ],
)
def test_a_value_that_does_not_fit_is_refused(
    kind: str, given: dict[str, Any], message: str
) -> None:
    """The error names field, value and rule. Neither a bool nor a float is an int here."""
    refusal = TypeError if message.endswith("an int") else ValueError
    with pytest.raises(refusal, match=f"^{message}"):
        times.at_time(kind, RFC_TIME, **given)


@pytest.mark.parametrize(
    ("call", "name", "fields"),
    [
        (times.at_time, "wrker", "clock_seq, node, worker, datacenter, epoch, sequence"),
        (times.Backfill, "wrker", "clock_seq, node, worker, datacenter, epoch"),
    ],
)
def test_an_unknown_field_is_refused_with_those_that_there_are(
    call: Callable[..., object], name: str, fields: str
) -> None:
    given = () if call is times.Backfill else (RFC_TIME,)
    with pytest.raises(TypeError) as refused:
        call("snowflake", *given, **{name: 5})
    told = f"{name} is not a field that can be passed here; these are {fields}"
    assert str(refused.value) == told


@pytest.mark.parametrize(
    "call",
    [times.at_time, times.Backfill, times.bounds, times.sort_key],
    ids=lambda it: it.__name__,
)
@pytest.mark.parametrize("kind", ["v4", "v8", "V1", ""])
def test_an_unknown_kind_is_refused(call: Callable[..., object], kind: str) -> None:
    given = () if call is times.Backfill else (RFC_TIME,)
    known = "v6, v7" if call is times.bounds else "v1, v6, v7"
    with pytest.raises(ValueError, match=f"kind is '{kind}'; it must be one of {known}"):
        call(kind, *given)


@given(
    st.lists(
        st.tuples(
            st.integers(0, 2) | st.integers(138_000_000_000_000_000, 145_000_000_000_000_000),
            st.integers(0, 0x3FFF),
            st.integers(0, (1 << 48) - 1),
        )
    )
)
def test_the_key_of_cassandra_is_its_order(rows: list[tuple[int, int, int]]) -> None:

    def order(id: UUID) -> tuple[int, list[int]]:
        return id.time, [byte - 256 if byte > 127 else byte for byte in id.bytes[8:]]

    ids = [UUID(int=versions.gregorian("v1", *row)) for row in rows]
    assert sorted(ids, key=lambda id: times.sort_key("cassandra", id)) == sorted(ids, key=order)


def test_the_key_of_a_v1_is_its_v6() -> None:
    assert times.sort_key("v1", RFC_V1) == RFC_V6.bytes


@pytest.mark.parametrize("kind", TIMED[1:])
def test_the_key_of_the_others_is_their_bytes(kind: str) -> None:
    made = made_at(kind)
    assert times.sort_key(kind, made) == kinds.octets(kind, kinds.number(kind, made))


@pytest.mark.parametrize(
    ("kind", "id", "refusal"),
    [
        ("v1", RFC_V6, "only v1 and v6|is not a v1"),
        ("v6", RFC_V1, "is not a v6"),
        ("v7", RFC_V6, "is not a v7"),
        ("cassandra", RFC_V6, "only v1 and v6|is not a v1"),
        ("snowflake", 1 << 63, "must be 0 to"),
        ("snowflake", -1, "must be 0 to"),
        ("ulid", "8" + "0" * 25, "more than 128 bits"),
        ("v1", str(RFC_V1), "a v1 must be a UUID"),
        ("ulid", RFC_V1, "a ulid must be a str"),
        ("snowflake", "5", "a snowflake must be a int"),
        ("snowflake", True, "a snowflake must be a int"),
    ],
)
def test_an_id_of_another_kind_or_type_has_no_key(kind: str, id: Any, refusal: str) -> None:
    """It would sort at a time that it does not have."""
    with pytest.raises((TypeError, ValueError), match=refusal):
        times.sort_key(kind, id)


@pytest.mark.parametrize("kind", TIMED)
def test_the_time_in_an_id_is_that_for_which_it_was_made(kind: str) -> None:
    found = uuidd_client.time_of(made_at(kind), kind=kind if kind == "snowflake" else None)
    assert found == TIME - timedelta(microseconds=TIME.microsecond % max(1, KINDS[kind].unit // 10))
    assert found.tzinfo is UTC


@pytest.mark.parametrize("kind", [kind for kind in TIMED if "bytes" in KINDS[kind].forms])
def test_an_id_has_its_time_also_as_bytes_and_as_a_number(kind: str) -> None:
    made = made_at(kind)
    expected = uuidd_client.time_of(made, kind=kind)
    [reading] = uuidd_client.inspect(made if kind != "snowflake" else str(made), kind=kind)
    assert uuidd_client.time_of(reading.value, kind=kind) == expected
    assert uuidd_client.time_of(kinds.octets(kind, reading.value), kind=kind) == expected
    assert uuidd_client.time_of(str(made), kind=kind) == expected


def test_the_bytes_of_a_push_id_are_its_text() -> None:
    """As the column type has them in a database."""
    made = times.at_time("push_id", TIME)
    assert uuidd_client.time_of(made.encode(), kind="push_id") == uuidd_client.time_of(made)


def test_a_ulid_in_a_column_of_uuids_has_the_ulids_time() -> None:
    made = UUID(int=kinds.number("ulid", times.at_time("ulid", TIME)))
    assert uuidd_client.time_of(made, kind="ulid") == TIME.replace(microsecond=123_000)


def test_a_snowflake_of_another_epoch_has_the_time_of_that_epoch() -> None:
    made = times.at_time("snowflake", TIME, worker=5, epoch=MS)
    assert uuidd_client.time_of(made, kind="snowflake", epoch=MS).year == TIME.year


V4 = UUID("919108f7-52d1-4320-9bac-f847db4148a8")

TIMELESS: list[tuple[Any, str | None, str]] = [
    (V4, None, "it is a v4, which contains no time"),
    (str(V4), None, "it is a v4, which contains no time"),
    (V4.bytes, "v4", "it is a v4, which contains no time"),
    (UUID(int=0), None, "it is a nil, which contains no time"),
    (RFC_V1, "v7", "is not of kind v7: it is of kind v1"),
    (RFC_V1.bytes, None, "bytes, may be an id of several kinds: pass the kind"),
    (RFC_V1.bytes[:8], "v1", "is not of kind v1"),
    (b"", "snowflake", "a snowflake has 8 bytes, not 0"),
    (RFC_V1.bytes, "ksuid", "a ksuid has 20 bytes, not 16"),
    (b"zz", "push_id", "is not a Push ID: it has 2 characters, not 20"),
    (856165981072306191, None, "may be an id of several kinds: pass the kind"),
    ("856165981072306191", None, "which may be a snowflake of 2017-"),
    (-5, "snowflake", "must be 0 to"),
    (1 << 200, "v7", "must be 0 to"),
    (times.at_time("v7", (1 << 48) - 1), None, "a datetime ends with 9999"),
    ("hello", None, "is not an id"),
    (1.5, None, "it must be a str, a UUID, an int or bytes"),
    (True, "snowflake", "it must be a str, a UUID, an int or bytes"),
]
"""Ids, their kinds, and why there is no time in them."""


@pytest.mark.parametrize(("id", "kind", "why"), TIMELESS)
def test_an_id_without_a_time_that_can_be_told_is_refused(
    id: Any, kind: str | None, why: str
) -> None:
    with pytest.raises((TypeError, ValueError), match=re.escape(why)):
        uuidd_client.time_of(id, kind=kind)


@pytest.mark.parametrize("id", ["856165981072306191", "0" * 22, 856165981072306191])
def test_the_kind_that_a_refusal_advises_has_a_time(id: str | int) -> None:
    with pytest.raises(ValueError, match="pass the kind, such as kind=") as refused:
        uuidd_client.time_of(id)
    advised = str(refused.value).split("'")[-2]
    assert uuidd_client.time_of(id, kind=advised).year in (2010, 2017)


def test_a_uuid_and_a_number_are_read_as_their_texts_are() -> None:
    """A program need not write the id that it has."""
    assert uuidd_client.inspect(RFC_V1) == uuidd_client.inspect(str(RFC_V1))
    number = 856165981072306191
    assert uuidd_client.inspect(number) == uuidd_client.inspect(str(number))


def test_the_digits_of_a_number_are_no_text() -> None:
    """As a text they would be a Push ID, which no program has as an int."""
    assert uuidd_client.inspect("12345678901234567890")[0].kind == "push_id"
    with pytest.raises(ValueError, match="12345678901234567890 is not an id"):
        uuidd_client.inspect(12345678901234567890)


ODD: list[Any] = [[], {}, 10**5000, -(10**5000), [10**5000], "x" * 5000, float("nan"), b"v7"]

TAKING: dict[str, Callable[[Any], object]] = {
    "kind of at_time": lambda odd: times.at_time(odd, MS),
    "kind of bounds": lambda odd: times.bounds(odd, MS),
    "kind of sort_key": lambda odd: times.sort_key(odd, 1),
    "kind of Backfill": lambda odd: times.Backfill(odd),
    "kind of inspect": lambda odd: uuidd_client.inspect("1", kind=odd),
    "id of inspect": lambda odd: uuidd_client.inspect(odd),
    "id of time_of": lambda odd: uuidd_client.time_of(odd),
    "bits of time_of": lambda odd: uuidd_client.time_of(odd, kind="snowflake"),
    "kind of time_of": lambda odd: uuidd_client.time_of("1", kind=odd),
    "epoch of time_of": lambda odd: uuidd_client.time_of("1", epoch=odd),
    "epoch of inspect": lambda odd: uuidd_client.inspect("1", epoch=odd),
    "time of at_time": lambda odd: times.at_time("v7", odd),
    "time of bounds": lambda odd: times.bounds("v7", MS, odd),
    "unit of bounds": lambda odd: times.bounds("v7", MS, unit=odd),
    "unit of Backfill": lambda odd: times.Backfill("v7", unit=odd),
    "epoch of bounds": lambda odd: times.bounds("snowflake", MS, epoch=odd),
    "id of sort_key": lambda odd: times.sort_key("snowflake", odd),
    "node of at_time": lambda odd: times.at_time("flake", MS, node=odd),
    "worker of at_time": lambda odd: times.at_time("snowflake", MS, worker=odd),
    "clock_seq of at_time": lambda odd: times.at_time("v7", MS, clock_seq=odd),
    "sequence of at_time": lambda odd: times.at_time("flake", MS, sequence=odd),
}


@pytest.mark.parametrize("taking", TAKING)
def test_whatever_is_given_is_refused_in_a_short_line(taking: str) -> None:
    """Also what has no hash, what is long, and an int that Python does not write."""
    for odd in ODD:
        with pytest.raises((TypeError, ValueError)) as caught:
            TAKING[taking](odd)
        said = str(caught.value)
        assert re.search(r"\b(is|are|no|more)\b", said), said
        assert len(said) < 300
        assert "unhashable" not in said
        assert "digits)" not in said


MICROSECONDS = st.integers(0, 4000)


def backfill(kind: str, **given: Any) -> Backfill[Any]:
    if KINDS[kind].has("worker"):
        given = {"worker": 5, **given}
    return Backfill(kind, _random=zeros, **given)


@pytest.mark.parametrize("kind", TIMED)
def test_the_first_id_of_a_time_is_at_exactly_that_time(kind: str) -> None:
    """All its microseconds are kept; a Snowflake takes the slot that is at it."""
    tick = kinds.tick(kind, backfill(kind).take(TIME))
    assert tick == (TICK - REST + SLOT_REST if kind == "snowflake" else TICK)


@pytest.mark.parametrize(
    ("kind", "unit", "time", "places", "other"),
    [
        ("v1", None, TICK, 1, "clock_seq"),
        ("v1", None, TIME, 10, "clock_seq"),
        ("v6", "tick", TIME, 1, "clock_seq"),
        ("v6", "us", TICK, 10, "clock_seq"),
        ("v1", "ms", TICK, 10_000, "clock_seq"),
        ("v7", "ms", MS, 10_000, "Backfill"),
        ("flake", None, MS, 10_000, "node"),
        ("snowflake", None, TIME, 4096, "worker"),
    ],
)
def test_a_unit_has_all_its_places_and_then_an_error(
    kind: str, unit: str | None, time: Any, places: int, other: str
) -> None:
    ids = backfill(kind, unit=unit)
    made = {ids.take(time) for _ in range(places)}
    assert len(made) == places
    span = places if kind != "snowflake" else TICKS_PER_MS
    assert {kinds.tick(kind, value) // span for value in made} == {TICK // span}
    message = rf"all {places} places of the \S+ 2022-02-22T.* use a coarser unit or another {other}"
    with pytest.raises(ValueError, match=message):
        ids.take(time)


def test_the_error_of_a_full_second_names_no_coarser_unit() -> None:
    """There is none. This second holds one millisecond."""
    ids = backfill("snowflake", unit="s", epoch=999)
    for _ in range(4096):
        ids.take(999)
    with pytest.raises(ValueError, match=r"the s 1970-01-01T00:00:00Z are taken: use another"):
        ids.take(999)


def test_a_unit_that_the_field_cuts_has_fewer_places() -> None:
    """A Snowflake's first second begins at its epoch, and no id comes before that."""
    ids = backfill("snowflake", unit="s", worker=0)
    last = snowflake.TWITTER_EPOCH // 1000 * 1000 + 999
    values = [ids.take(last) for _ in range(4097)]
    assert values[4095] == (last - snowflake.TWITTER_EPOCH) << 22 | 4095
    assert values[4096] == 0


@pytest.mark.parametrize(
    ("kind", "time", "refusal"),
    [("v7", -1, ValueError), ("v7", 1.5, TypeError), ("v1", TICK - 1, ValueError)],
)
def test_a_refused_call_changes_nothing(kind: str, time: Any, refusal: type[Exception]) -> None:
    ids, twin = (Backfill(kind, _random=Draws()) for _ in range(2))
    for each in (ids, twin):
        if kind == "v1":
            each.take(time)
    for _ in range(2):
        with pytest.raises(refusal, match=r"the time of a v7 is|must be an aware|all 1 places"):
            ids.take(time)
    assert ids.take(TIME) == twin.take(TIME)


def test_a_failed_draw_uses_no_place() -> None:
    def failing_once(bits: int) -> int:
        if not drawn:
            drawn.append(bits)
            raise OSError(bits)
        return 0

    drawn: list[int] = []
    ids = Backfill("ulid", _random=failing_once)
    with pytest.raises(OSError, match="66"):
        ids.take(TIME)
    assert kinds.tick("ulid", ids.take(TIME)) == TICK


@pytest.mark.parametrize("kind", TIMED)
@given(offsets=st.lists(MICROSECONDS, max_size=60))
def test_no_id_comes_twice_and_each_keeps_its_unit(kind: str, offsets: list[int]) -> None:
    size = max(KINDS[kind].unit, TICKS_PER_MS)
    ids = backfill(kind, unit="s" if size > TICKS_PER_MS else "ms")
    begin = TIME.replace(microsecond=0)
    made = [(offset, ids.take(begin + timedelta(microseconds=offset))) for offset in offsets]
    assert len({value for _, value in made}) == len(made)
    first = TICK - TICK % 10_000_000
    for offset, value in made:
        assert kinds.tick(kind, value) // size == (first + offset * 10) // size


@given(
    takes=st.lists(
        st.tuples(st.integers(0, 30), st.sampled_from(["tick", "datetime"])), max_size=50
    )
)
def test_it_finds_what_a_search_from_the_time_finds(takes: list[tuple[int, str]]) -> None:
    ids = backfill("v1")
    taken: set[int] = set()
    for offset, what in takes:
        tick = TICK + offset if what == "tick" else TICK + offset // 10 * 10
        size = 1 if what == "tick" else 10
        time = tick if what == "tick" else TIME + timedelta(microseconds=offset // 10)
        begin = tick - tick % size
        order = [*range(tick, begin + size), *range(begin, tick)]
        free = next((place for place in order if place not in taken), None)
        if free is None:
            with pytest.raises(ValueError, match="are taken"):
                ids.take(time)
            continue
        assert kinds.tick("v1", ids.take(time)) == free
        taken.add(free)


class Counting(dict[int, int]):
    """Pointers that count how often they are read."""

    reads = 0

    def __getitem__(self, place: int) -> int:
        self.reads += 1
        return super().__getitem__(place)


def test_many_repeats_of_one_time_follow_few_pointers() -> None:
    """The last costs about as much as the first, because pointers are set to the end."""
    used = Used()
    used.later = pointers = Counting()
    for place in range(10_000):
        assert used.free(0) == place
        used.add(place)
    assert len(pointers) == 10_000
    assert pointers.reads < 5 * 10_000


@pytest.mark.parametrize("kind", GREGORIAN)
def test_node_and_clock_seq_are_drawn_once(kind: str) -> None:
    draws = Draws()
    spaces = []
    for ids in (Backfill(kind, _random=draws), Backfill(kind, _random=draws)):
        [space] = {kinds.gregorian(ids.take(tick).int)[1:] for tick in range(5)}
        assert space[1] & MULTICAST
        spaces.append(space)
    assert spaces[0] != spaces[1]


@pytest.mark.parametrize(
    ("kind", "given", "message"),
    [
        ("v7", {"unit": "us"}, "unit is 'us', which is finer than the time of a v7; it must be ms"),
        ("snowflake", {"unit": "tick"}, "finer than the time of a snowflake; it must be ms or s"),
        ("ksuid", {"unit": "ms"}, "finer than the time of a ksuid; it must be s"),
        ("v1", {"unit": "day"}, "unit is 'day'; it must be one of tick, us, ms, s"),
        ("snowflake", {"worker": None}, "worker is missing"),
        ("v7", {"node": 1}, "node is 1; a v7 has no node"),
        ("v1", {"worker": 1}, "worker is 1; a v1 has no worker, only clock_seq, node"),
    ],
)
def test_a_unit_or_field_that_does_not_fit_is_refused_at_once(
    kind: str, given: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        backfill(kind, **given)


def test_a_sequence_is_refused() -> None:
    """All ids of one time would be the same."""
    given: Any = {"sequence": 1}
    with pytest.raises(TypeError, match=r"^sequence is not a field that can be passed here; "):
        Backfill("flake", **given)


def test_a_backfill_gives_the_kinds_own_type_with_the_given_fields() -> None:
    for kind in TIMED:
        assert {type(backfill(kind).take(TIME))} == {KINDS[kind].type}
    made = [Backfill("v1", unit="ms", node=7, clock_seq=9).take(TIME) for _ in range(2)]
    assert {(id.node, id.clock_seq) for id in made} == {(7, 9)}


def test_an_id_is_drawn_by_one_thread_at_a_time() -> None:
    """One that comes while another still draws its random bits waits, and gets the next place."""

    def random(_: int) -> int:
        if other.ident is None:
            other.start()
            other.join(0.02)
        return 0

    ids = Backfill("v7", _random=random)
    made: list[Any] = []
    other = threading.Thread(target=lambda: made.append(ids.take(TIME)))
    made.append(ids.take(TIME))
    other.join()
    assert {kinds.tick("v7", id) for id in made} == {TICK, TICK + 1}


def test_a_take_in_the_midst_of_a_take_is_refused() -> None:
    """A signal handler's would wait for ever for what it has broken into."""

    def random(_: int) -> int:
        with pytest.raises(RuntimeError, match="interrupted a take"):
            ids.take(TIME)
        return 0

    ids = Backfill("v7", _random=random)
    assert [kinds.tick("v7", ids.take(TIME)) for _ in range(2)] == [TICK, TICK + 1]


@pytest.mark.process
@pytest.mark.parametrize("fork", [os.fork, raw_fork])
def test_another_process_may_not_use_a_backfill(
    fork: Callable[[], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A child would give its parent's ids again, also if its pid is the same in a namespace."""
    ids = Backfill("v7")
    pid = os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: pid)

    def refusal() -> bytes:
        with pytest.raises(RuntimeError) as refused:
            ids.take(TIME)
        return str(refused.value).encode()

    assert re.search(f"made before a fork, .* process {pid}", of_child(refusal, fork).decode())
    assert kinds.tick("v7", ids.take(TIME)) == TICK
