from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import kinds
from tests.core.draws import ones, zeros
from tests.kinds import KINDS, LANED, TIMED, UNLEASED
from uuidd.core.ids import at_time, snowflake, uuids, versions
from uuidd.core.ids.at_time import AT_TIME_KINDS, field_of, id_at_time
from uuidd.core.ids.nodes import MULTICAST
from uuidd.core.ids.places import Origin
from uuidd.core.ids.ticks import UNIX_EPOCH

# Published: RFC 9562, A.1, A.5 and A.6.
RFC_TICK = 138648505420000000
RFC_TIME = datetime(2022, 2, 22, 19, 22, 22, tzinfo=UTC)
RFC_MS = 1_645_557_742_000
RFC_V1 = "c232ab00-9414-11ec-b3c8-9f6bdeced846"
RFC_V6 = "1ec9414c-232a-6b00-b3c8-9f6bdeced846"

TIME = datetime(2022, 2, 22, 19, 22, 22, 123456, tzinfo=UTC)
TICK = RFC_TICK + 1_234_560
MS, REST = RFC_MS + 123, 4560

REQUIRED: dict[str, dict[str, Any]] = {"snowflake": {"worker": 5}}


@pytest.mark.parametrize(("kind", "expected"), [("v1", RFC_V1), ("v6", RFC_V6)])
@pytest.mark.parametrize("node", [0x9F6BDECED846, "9f:6b:de:ce:d8:46", "9F-6B-DE-CE-D8-46"])
@pytest.mark.parametrize("time", [RFC_TIME, RFC_TICK])
def test_the_rfcs_own_ids_are_made(kind: str, expected: str, node: int | str, time: Any) -> None:
    """Its time, clock_seq and node, in each way to write them, make its v1 and its v6."""
    made = id_at_time(kind, time, clock_seq=13256, node=node, random=zeros)
    assert uuids.to_text(made) == expected


@pytest.mark.parametrize("kind", ["v1", "v6"])
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
    kind: str, given: dict[str, int], random: Callable[[int], int], expected: tuple[int, ...]
) -> None:
    """A drawn node has the multicast bit, which no network card's address has."""
    value = id_at_time(kind, TICK, **given, random=random)
    assert versions.gregorian_fields(value) == expected


@pytest.mark.parametrize("kind", LANED)
def test_a_datetimes_microseconds_are_kept(kind: str) -> None:
    """They are in the tick that ours carry, with random bits after it."""
    for random, bits in ((zeros, 0), (ones, -1)):
        made = kinds.made(kind, TICK, Origin(0, lane=None), bits)
        assert id_at_time(kind, TIME, random=random) == made


def test_a_snowflake_takes_its_sequence_from_the_time() -> None:
    """It is the slot of the tick, unless the caller passes one."""
    found = snowflake.fields(id_at_time("snowflake", TIME, worker=1023, random=zeros))
    assert found == (MS, MS - snowflake.TWITTER_EPOCH, 1023, snowflake.slot_at(REST))
    given = snowflake.fields(id_at_time("snowflake", TIME, worker=0, sequence=4095, random=zeros))
    assert (given.worker, given.sequence) == (0, 4095)


def test_a_snowflakes_datacenter_and_worker_are_halves_of_one_number() -> None:
    """Five bits each, the datacenter first."""
    made = id_at_time("snowflake", TIME, datacenter=31, worker=2, random=zeros)
    found = snowflake.fields(made)
    assert (found.datacenter_id, found.worker_id, found.worker) == (31, 2, 31 * 32 + 2)


def test_a_snowflake_counts_from_its_epoch() -> None:
    """An int stays Unix milliseconds; the id counts from the epoch."""
    made = id_at_time("snowflake", RFC_MS, worker=0, epoch=RFC_MS, random=zeros)
    assert made == 0


def flake(id: int) -> tuple[int, ...]:
    """Return the fields of a Flake."""
    return tuple(kinds.fields("flake", id).values())


def test_a_flake_takes_its_sequence_from_the_time() -> None:
    """It is the tick in the millisecond, unless the caller passes one. A missing node is drawn."""
    assert flake(id_at_time("flake", TIME, node=7, random=zeros)) == (MS, 7, REST)
    assert flake(id_at_time("flake", MS, node=7, sequence=9, random=zeros)) == (MS, 7, 9)
    assert flake(id_at_time("flake", TIME, node=7, sequence=0, random=zeros)) == (MS, 7, 0)
    assert flake(id_at_time("flake", MS, random=zeros))[1] == MULTICAST


@pytest.mark.parametrize("kind", TIMED)
def test_a_field_that_the_kind_does_not_have_is_refused(kind: str) -> None:
    """The error names it, and those that the kind has; all others are accepted."""
    found = KINDS[kind]
    fields = {name for name in ("clock_seq", "node", "worker") if found.has(name)}
    if found.has("rest") and not kinds.tail(kind):
        fields.add("sequence")
    if found.has("worker"):
        fields |= {"datacenter", "epoch"}
    for name in ("clock_seq", "node", "worker", "datacenter", "sequence", "epoch"):
        given: dict[str, Any] = {**REQUIRED.get(kind, {}), name: 0}
        if name in fields:
            at_time.template(kind, at_time.IdFields(**given), zeros)
            continue
        with pytest.raises(ValueError, match=name) as refused:
            at_time.template(kind, at_time.IdFields(**given), zeros)
        assert name == "epoch" or all(field in str(refused.value) for field in fields - {"epoch"})


@pytest.mark.parametrize(
    ("kind", "given", "message"),
    [
        ("v1", {"clock_seq": 1 << 14}, "clock_seq is 16384; it must be 0 to 16383"),
        ("v6", {"node": 1 << 48}, "node is 281474976710656; it must be"),
        ("v1", {"node": "44:88:99"}, "node is '44:88:99'; it must be six octets"),
        ("snowflake", {}, "worker is missing; a snowflake needs a worker"),
        ("snowflake", {"datacenter": 1}, "worker is missing"),
        ("snowflake", {"worker": 1024}, "worker is 1024; it must be 0 to 1023"),
        ("snowflake", {"worker": -1}, "worker is -1; it must be 0 to 1023"),
        ("snowflake", {"worker": 32, "datacenter": 0}, "worker is 32; it must be 0 to 31"),
        ("snowflake", {"worker": 0, "datacenter": 32}, "datacenter is 32; it must be 0 to 31"),
        ("snowflake", {"worker": 0, "sequence": 4096}, "sequence is 4096; it must be 0 to 4095"),
        ("flake", {"sequence": 1 << 16}, "sequence is 65536; it must be 0 to 65535"),
    ],
)
def test_a_value_that_does_not_fit_is_refused(
    kind: str, given: dict[str, Any], message: str
) -> None:
    """The error names field, value and range, before an id is made."""
    with pytest.raises(ValueError, match=message):
        at_time.template(kind, at_time.IdFields(**given), zeros)


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        ("v7", {"epoch": float(snowflake.TWITTER_EPOCH)}),
        ("v1", {"clock_seq": True}),
        ("v1", {"node": 1.0}),
        ("snowflake", {"worker": "1"}),
        ("snowflake", {"worker": 1, "epoch": 1.0}),
        ("flake", {"sequence": 1.0}),
    ],
)
def test_a_value_of_the_wrong_type_is_refused(kind: str, given: dict[str, Any]) -> None:
    """A bool is not an int here, nor is a float or a text."""
    with pytest.raises(TypeError, match=f"{list(given)[-1]} is .*; it must be an int"):
        id_at_time(kind, RFC_TIME, **given, random=zeros)


@pytest.mark.parametrize("kind", ["v4", "v8", "cassandra", "V1", ""])
def test_an_unknown_kind_is_refused(kind: str) -> None:
    """The error lists the known ones."""
    with pytest.raises(ValueError, match=f"kind is '{kind}'; it must be one of v1, v6, v7, ulid"):
        id_at_time(kind, RFC_TIME, random=zeros)
    with pytest.raises(ValueError, match="must be one of"):
        field_of(kind)


@pytest.mark.parametrize("kind", AT_TIME_KINDS)
def test_a_time_out_of_range_is_refused(kind: str) -> None:
    """It never wraps."""
    for time in (field_of(kind).end, -1, datetime(1582, 10, 14, tzinfo=UTC)):
        with pytest.raises(ValueError, match=f"the time of a {kind} is"):
            id_at_time(kind, time, **REQUIRED.get(kind, {}), random=zeros)


@given(kind=st.sampled_from(AT_TIME_KINDS), earlier=st.integers(0), later=st.integers(1))
def test_of_two_times_the_later_has_the_higher_id(kind: str, earlier: int, later: int) -> None:
    """With any random bits; only v1 does not sort so."""
    if kind == "v1":
        kind = "v6"
    field = field_of(kind)
    first = earlier % (1 << 39)
    second = first + 1 + later % (1 << 30)
    settled = at_time.template(kind, at_time.IdFields(**REQUIRED.get(kind, {})), zeros)
    above = at_time.template(kind, at_time.IdFields(**REQUIRED.get(kind, {})), ones)
    # A Snowflake's slots are wider than a tick, and a Flake's node comes before its tick.
    unit = field.unit if kind in UNLEASED else 1
    assert above.at(field.epoch + first * unit) < settled.at(field.epoch + second * unit)


def test_the_epoch_of_a_kind_is_where_its_time_begins() -> None:
    """Only a Snowflake's can be set."""
    assert field_of("snowflake", 0).epoch == UNIX_EPOCH
    assert field_of("v1").epoch == 0
    with pytest.raises(ValueError, match="epoch is 0; only a snowflake has one, a v7 has not"):
        field_of("v7", 0)
