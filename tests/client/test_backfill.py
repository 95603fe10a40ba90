from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import kinds
from tests.client.raw import of_child, raw_fork
from tests.core.draws import Draws, zeros
from tests.kinds import GREGORIAN, KINDS, TIMED
from uuidd.core.ids import snowflake, versions
from uuidd.core.ids.nodes import MULTICAST
from uuidd.core.ids.ticks import TICKS_PER_MS, milliseconds
from uuidd_client.times import Backfill
from uuidd_client.used import Used

TIME = datetime(2022, 2, 22, 19, 22, 22, 123456, tzinfo=UTC)
TICK = 138648505420000000 + 1_234_560
MS, REST = milliseconds(TICK)

MICROSECONDS = st.integers(0, 4000)


def backfill(kind: str, **given: Any) -> Backfill[Any]:
    if KINDS[kind].has("worker"):
        given = {"worker": 5, **given}
    return Backfill(kind, _random=zeros, **given)


@pytest.mark.parametrize("kind", TIMED)
def test_the_first_id_of_a_time_is_at_exactly_that_time(kind: str) -> None:
    """All its microseconds are kept; a Snowflake takes the slot that is at it."""
    tick = kinds.tick(kind, backfill(kind).take(TIME))
    if kind == "snowflake":
        assert snowflake.slot_at(milliseconds(tick)[1]) == snowflake.slot_at(REST)
    else:
        assert tick == TICK


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
        [space] = {versions.gregorian_fields(ids.take(tick).int)[1:] for tick in range(5)}
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
    with pytest.raises(TypeError, match="'sequence'"):
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
