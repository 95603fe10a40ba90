from __future__ import annotations

import os
import re
import threading
import warnings
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, get_args
from uuid import UUID

import pytest

import uuidd_client
from tests import kinds
from tests.client.raw import raw_fork
from tests.documents import text
from tests.kinds import GREGORIAN, KINDS, STEADY, TIMED
from uuidd.core.ids import snowflake, versions
from uuidd_client import times

TIME = datetime(2022, 2, 22, 19, 22, 22, 123456, tzinfo=UTC)
RFC_TIME = datetime(2022, 2, 22, 19, 22, 22, tzinfo=UTC)
MS = 1_645_557_742_123
TICK = 138648505420000000 + 1_234_560

# Published: RFC 9562, A.1 and A.6.
RFC_V1 = UUID("c232ab00-9414-11ec-b3c8-9f6bdeced846")
RFC_V6 = UUID("1ec9414c-232a-6b00-b3c8-9f6bdeced846")


def made_at(kind: str) -> Any:
    """Return an id of TIME, of the type that a program has it in."""
    worker = {"worker": 5} if KINDS[kind].has("worker") else {}
    return times.at_time(kind, TIME, **worker)


def test_a_take_in_the_midst_of_a_take_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A signal handler's would wait for ever for what it has broken into."""
    ids = times.Backfill("v7")
    before = ids.take(TIME)
    take = ids._ids.take

    def interrupted(time: int) -> int:
        with pytest.raises(RuntimeError, match="interrupted a take"):
            ids.take(TIME)
        return take(time)

    monkeypatch.setattr(ids._ids, "take", interrupted)
    assert ids.take(TIME) > before


@pytest.mark.parametrize(
    "kind", [*get_args(times.BoundedUuids), *get_args(times.Texts), *get_args(times.Ints)]
)
def test_an_integer_has_the_unit_that_the_document_says(kind: str) -> None:
    """Ticks for the kinds that it names, seconds for KSUIDs, milliseconds for all others."""
    guide = " ".join(text("client/README.md").split())
    told = re.findall(r"ticks of 100 ns since 1582-10-15 for (.*?), Unix seconds for KSUIDs", guide)
    in_ticks = re.findall(r"\w+", " ".join(told))
    number = TICK if kind in in_ticks else MS // 1000 if kind == "ksuid" else MS
    assert times.bounds(kind, number) == times.bounds(kind, TIME)


def test_a_uuid_is_formed_as_a_uuid() -> None:
    """RFC 9562's v1 and v6, by their fields; a v7 is of its version and holds the tick."""
    assert times.at_time("v1", RFC_TIME, clock_seq=13256, node=0x9F6BDECED846) == RFC_V1
    assert times.at_time("v6", RFC_TIME, clock_seq=13256, node="9f:6b:de:ce:d8:46") == RFC_V6
    made = times.at_time("v7", TIME)
    assert (made.version, versions.v7_tick(made.int)) == (7, TICK)


def test_a_text_is_formed_as_a_text() -> None:
    """Each in its own alphabet, with the tick of the time."""
    for kind in (kind for kind in STEADY if KINDS[kind].type is str):
        assert kinds.tick(kind, times.at_time(kind, TIME)) == TICK
    made = times.at_time("flake", TIME, node=7, sequence=9)
    assert list(kinds.fields("flake", made).values()) == [MS, 7, 9]


def test_a_snowflake_is_formed_as_an_int() -> None:
    """Of its worker, from its epoch."""
    assert (
        times.at_time("snowflake", MS, worker=9, sequence=3, epoch=MS - 1) == 1 << 22 | 9 << 12 | 3
    )


def test_what_is_not_given_is_random() -> None:
    """Two ids of one time are two."""
    for kind in (*GREGORIAN, *STEADY):
        assert times.at_time(kind, TIME) != times.at_time(kind, TIME)


def test_what_the_core_refuses_is_refused() -> None:
    """In its own words."""
    with pytest.raises(ValueError, match="worker is missing"):
        times.at_time("snowflake", TIME)
    with pytest.raises(ValueError, match="kind is 'v4'; it must be one of v1"):
        times.at_time("v4", TIME)
    with pytest.raises(ValueError, match="kind is 'v4'; it must be one of v1"):
        times.Backfill("v4")
    with pytest.raises(ValueError, match="kind is 'v4'; it must be one of v6"):
        times.bounds("v4", TIME)
    with pytest.raises(ValueError, match="kind is 'v4'; it must be one of v1"):
        times.sort_key("v4", 0)


def test_a_backfill_gives_the_kinds_own_type() -> None:
    """And no id twice, for one time."""
    assert {type(times.Backfill("v6").take(TIME))} == {UUID}
    assert {type(times.Backfill("ulid").take(TIME))} == {str}
    assert {type(times.Backfill("snowflake", worker=1).take(TIME))} == {int}
    ids = times.Backfill("v1", unit="ms", node=7, clock_seq=9)
    made = [ids.take(TIME) for _ in range(100)]
    assert len(set(made)) == 100
    assert {(id.node, id.clock_seq) for id in made} == {(7, 9)}


def test_threads_may_share_a_backfill() -> None:
    """What they take is all different."""
    ids = times.Backfill("snowflake", worker=1)
    made: list[int] = []
    threads = [
        threading.Thread(target=lambda: made.extend([ids.take(MS) for _ in range(500)]))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(made)) == len(made) == 2000


def test_an_id_is_drawn_by_one_thread_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that comes while another still draws its random bits waits, and gets the next place."""

    def random_bits(_: int) -> int:
        if other.ident is None:
            other.start()
            other.join(0.02)
        return 0

    monkeypatch.setattr(times, "random_bits", random_bits)
    ids = times.Backfill("v7")
    made: list[UUID] = []
    other = threading.Thread(target=lambda: made.append(ids.take(TIME)))
    made.append(ids.take(TIME))
    other.join()
    assert {versions.v7_tick(id.int) for id in made} == {TICK, TICK + 1}


@pytest.mark.process
@pytest.mark.parametrize("fork", [os.fork, raw_fork])
def test_another_process_may_not_use_a_backfill(
    fork: Callable[[], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A child would give its parent's ids again, also if its pid is the same in a namespace."""
    ids = times.Backfill("v7")
    pid = os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: pid)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = fork()
    if not child:
        try:
            with pytest.raises(RuntimeError, match=f"made before a fork, .* process {pid}"):
                ids.take(TIME)
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    assert versions.v7_tick(ids.take(TIME).int) == TICK


def test_bounds_are_of_the_kinds_own_type() -> None:
    """The published ones, and texts that are read back."""
    assert times.bounds("v7", 1_645_557_742_000) == (
        UUID("017f22e2-79b0-7000-8000-000000000000"),
        UUID("017f22e2-79b0-7fff-bfff-ffffffffffff"),
    )
    assert times.bounds("cassandra", 0)[0] == UUID("00000000-0000-1000-8080-808080808080")
    low, high = times.bounds("ulid", MS)
    assert (kinds.number("ulid", low), kinds.number("ulid", high)) == (MS << 80, (MS + 1 << 80) - 1)
    assert times.bounds("snowflake", 0, 999, unit="s", epoch=0) == (0, (1000 << 22) - 1)
    assert times.bounds("snowflake", snowflake.TWITTER_EPOCH)[0] == 0


@pytest.mark.parametrize("kind", [kind for kind in TIMED if kind not in ("v1", "flake")])
def test_an_id_is_within_the_bounds_of_its_time(kind: str) -> None:
    """Compared as a database would: UUIDs, texts and ints alike sort by time."""
    low, high = times.bounds(kind, TIME)
    assert low <= made_at(kind) <= high


def test_a_sort_key_takes_the_kinds_own_type() -> None:
    """And no other: a text may be any kind's."""
    assert times.sort_key("v1", RFC_V1) == RFC_V6.bytes
    assert times.sort_key("cassandra", RFC_V1)[8:] == bytes(b ^ 0x80 for b in RFC_V1.bytes[8:])
    assert times.sort_key("ulid", "7" + "Z" * 25) == b"\xff" * 16
    assert times.sort_key("snowflake", 5) == bytes(7) + b"\x05"
    wrong: list[tuple[str, Any]] = [("v1", str(RFC_V1)), ("ulid", RFC_V1), ("snowflake", "5")]
    for kind, id in wrong:
        with pytest.raises(TypeError, match=f"a {kind} must be a "):
            times.sort_key(kind, id)


@pytest.mark.parametrize("kind", TIMED)
def test_the_time_in_an_id_is_that_for_which_it_was_made(kind: str) -> None:
    """In UTC; the kind of an int has to be told."""
    found = uuidd_client.time_of(made_at(kind), kind=kind if kind == "snowflake" else None)
    assert found == TIME - timedelta(microseconds=TIME.microsecond % max(1, KINDS[kind].unit // 10))
    assert found.tzinfo is UTC


@pytest.mark.parametrize("kind", [kind for kind in TIMED if "bytes" in KINDS[kind].forms])
def test_an_id_has_its_time_also_as_bytes_and_as_a_number(kind: str) -> None:
    """In the forms in which ``make`` makes them and databases store them."""
    made = made_at(kind)
    expected = uuidd_client.time_of(made, kind=kind)
    [reading] = uuidd_client.inspect(made if kind != "snowflake" else str(made), kind=kind)
    assert uuidd_client.time_of(reading.value, kind=kind) == expected
    assert uuidd_client.time_of(kinds.octets(kind, reading.value), kind=kind) == expected
    assert uuidd_client.time_of(str(made), kind=kind) == expected


def test_a_ulid_that_is_a_uuid_has_the_ulids_time() -> None:
    """As a column of that type has it."""
    made = UUID(int=kinds.number("ulid", times.at_time("ulid", TIME)))
    assert uuidd_client.time_of(made, kind="ulid") == TIME.replace(microsecond=123_000)
    assert uuidd_client.inspect(made, kind="ulid")[0].kind == "ulid"


def test_a_snowflake_of_another_epoch_has_the_time_of_that_epoch() -> None:
    """Which the daemon's option --epoch says."""
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
    (856165981072306191, None, "may be an id of several kinds: pass the kind"),
    ("856165981072306191", None, "which may be a snowflake of 2017-"),
    (-5, "snowflake", "must be 0 to"),
    (1 << 200, "v7", "must be 0 to"),
    (times.at_time("v7", (1 << 48) - 1), None, "a datetime ends with 9999"),
    ("hello", None, "is not an id"),
    (1.5, None, "it must be a str, a UUID or an int"),
    (True, "snowflake", "it must be a str, a UUID or an int"),
]
"""Ids, their kinds, and why there is no time in them."""


@pytest.mark.parametrize(("id", "kind", "why"), TIMELESS)
def test_an_id_without_a_time_that_can_be_told_is_refused(
    id: Any, kind: str | None, why: str
) -> None:
    """The error says what it is instead, or what has to be told."""
    with pytest.raises((TypeError, ValueError), match=re.escape(why)):
        uuidd_client.time_of(id, kind=kind)


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
