from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, cast
from uuid import UUID, SafeUUID

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.client.breaking import come_between
from tests.client.fakes import NODE, START, UNAVAILABLE, Blocks, Time, Unwatched, block
from tests.core.draws import Draws
from uuidd.core.ids import versions
from uuidd.core.timeline import Block, NoneFree
from uuidd.core.timeline.volatile import Volatile
from uuidd_client import Client, DaemonUnavailable, channel
from uuidd_client.fork_guard import ForkGuard
from uuidd_client.places import FETCHES, Places
from uuidd_client.source import Source
from uuidd_client.supply import LONG_RUNS, Run, Supply

if TYPE_CHECKING:
    from uuidd_client.client import Form, Kind

pytestmark = pytest.mark.usefixtures("implementation")

FORMS: list[Form] = ["uuid", "text", "bytes"]
KINDS: list[Kind] = ["v1", "v6"]
MAKERS = {"v1": versions.v1, "v6": versions.v6}


def supply_of(source: Blocks, kind: str = "v1", max_age: float = 0.1) -> Supply:
    """Return a supply from *source*."""
    return Supply(Places(kind, cast(Source, source), ForkGuard(), max_age))


def value(id: Any) -> int:
    """Return the 128 bits of an id in any form; that of an int is itself."""
    if isinstance(id, bytes):
        return int.from_bytes(id, "big")
    return UUID(id).int if isinstance(id, str) else getattr(id, "int", id)


def offset(id: Any) -> int:
    """Return the tick of an id in any form, counted from START."""
    return versions.gregorian_fields(value(id)).tick - START


def offsets(ids: list[Any]) -> list[int]:
    """Return the ticks of ids, counted from START."""
    return [offset(id) for id in ids]


def _draw(run: Run) -> Callable[[], Any]:
    take, *_ = run
    return take


def _deadline(run: Run) -> float:
    deadline = run[2]
    return deadline[0]


def drawn(supply: Supply, form: str, count: int) -> list[int]:
    """Return the ticks of the first *count* ids of a new run."""
    run, first = supply.run(form)
    return offsets([first, *(_draw(run)() for _ in range(count - 1))])


# --- forms and fields


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "first",
    [START, START | 0xFFF, (START | 0xFFFF_FFFF) - 5000, (1 << 60) - 10_000],
)
def test_made_ids_are_those_of_their_ticks(kind: str, form: str, first: int) -> None:
    """Over ends of runs and a wrap of time_low, each id is bit for bit that of its tick."""
    supply = supply_of(Blocks(Block(first, 10_000, 9, NODE)), kind)
    made = supply.make(10_000, form)
    assert [value(id) for id in made] == [
        MAKERS[kind](tick, 9, NODE) for tick in range(first, first + 10_000)
    ]


def _until_empty(run: Run) -> Iterator[Any]:
    while True:
        try:
            yield _draw(run)()
        except IndexError:
            return


@pytest.mark.parametrize(("safe", "mark"), [(True, SafeUUID.safe), (False, SafeUUID.unknown)])
def test_ids_are_marked_by_where_their_block_came_from(safe: bool, mark: SafeUUID) -> None:
    """The daemon's are safe, and no others."""
    supply = supply_of(Blocks(block(0, 10), safe=safe))
    assert [id.is_safe for id in supply.make(3, "uuid")] == [mark] * 3
    run, first = supply.run("uuid")
    assert [first.is_safe, _draw(run)().is_safe] == [mark] * 2


def test_a_call_that_spans_blocks_marks_each_id_by_its_own() -> None:
    """When the daemon goes in the middle of a call, only what it gave is safe."""
    source = Blocks(block(0, 2), block(10, 2))
    supply = supply_of(source)
    source.before = lambda: setattr(source, "safe", len(source.asked) == 0)
    made = supply.make(4, "uuid")
    assert [id.is_safe for id in made] == [SafeUUID.safe] * 2 + [SafeUUID.unknown] * 2


# --- how much is asked for, and how long it lasts


def test_the_first_id_asks_for_64_ticks() -> None:
    """A program that makes one id takes no more from the host than that."""
    source = Blocks(block(0, 64))
    supply_of(source).run("uuid")
    assert source.asked == [64]


def test_many_ids_are_asked_for_at_once() -> None:
    """A call for many asks for all that are missing, however short the blocks that come."""
    source = Blocks(block(0, 700), block(700, 200), block(900, 100))
    supply_of(source).make(1000, "text")
    assert source.asked[0] == 1000
    assert source.asked[1] >= 300


def test_what_was_taken_back_is_no_demand(time: Time) -> None:
    """Demand is measured by the ids that were used, not by those that a run had ready."""
    source = Blocks(block(0, 1000), block(2_000_000, 1000), clock=time)
    supply = supply_of(source)
    for form in ("text", "bytes", "uuid") * 20:
        supply.run(form)
    time.move(0.2)
    supply.run("text")
    assert source.asked == [64, 90]


def test_a_block_is_used_until_it_is_too_old(time: Time) -> None:
    """The age of a block is that of its first tick: it was that old when it was asked for."""
    source = Blocks(block(0, 300_000), block(2_000_000, 1), clock=time)
    supply = supply_of(source)
    supply.make(1, "text")
    time.move(0.0699)
    assert offsets(supply.make(1, "text")) == [1]
    time.move(0.0002)
    assert offsets(supply.make(1, "text")) == [2_000_000]


def test_a_blocks_age_counts_from_the_request(time: Time) -> None:
    """Its ticks were chosen at any time between request and answer."""
    source = Blocks(block(0, 10), block(2_000_000, 1), clock=time)
    source.before = lambda: time.move(0.06)
    supply = supply_of(source)
    supply.make(1, "text")
    time.move(0.0399)
    assert offsets(supply.make(1, "text")) == [1]
    time.move(0.0002)
    assert offsets(supply.make(1, "text")) == [2_000_000]


def test_a_run_tells_until_when_it_may_be_drawn_from(time: Time) -> None:
    """Who draws reads the deadline without the supply."""
    run, _ = supply_of(Blocks(block(0, 100_000), clock=time)).run("text")
    assert _deadline(run) == pytest.approx(time.utc_seconds() + 0.09, abs=1e-6)


def test_the_deadline_of_a_block_given_up_has_passed(time: Time) -> None:
    """A thread that still draws from it drops what it draws."""
    supply = supply_of(Blocks(block(0, 100), block(2_000_000, 100), clock=time))
    run, _ = supply.run("text")
    time.move(0.2)
    supply.run("text")
    assert _deadline(run) == 0.0


def test_without_any_age_each_id_is_a_block_of_its_own() -> None:
    """With max_age=0 nothing is kept for later."""
    source = Blocks(*(block(number, 1) for number in range(5)))
    supply = supply_of(source, max_age=0)
    supply.run("text")
    supply.make(3, "text")
    supply.run("uuid")
    assert source.asked == [1] * 5


# --- order


def test_a_change_of_form_wastes_no_tick() -> None:
    """What is left of a run is taken back, so ids go on with the next tick in any form."""
    supply = supply_of(Blocks(block(0, 1000)))
    found = []
    for form in FORMS * 5:
        found += drawn(supply, form, 3)
        found += offsets(supply.make(2, form))
    assert found == list(range(75))


def test_nobody_can_draw_from_a_run_that_was_taken_back() -> None:
    """The old run is empty, whoever still holds it."""
    supply = supply_of(Blocks(block(0, 1000)))
    run, _ = supply.run("text")
    supply.make(1, "text")
    with pytest.raises(IndexError):
        _draw(run)()


def test_what_is_drawn_from_a_run_while_it_is_taken_back_is_not_made_again() -> None:
    """Nor is anything before it."""
    for at in itertools.count(1):
        supply = supply_of(Blocks(block(0, 1000)))
        draw = _draw(supply.run("bytes")[0])
        drawn: list[Any] = []

        def meanwhile(drawn: list[Any] = drawn, draw: Callable[[], Any] = draw) -> None:
            drawn.append(None)
            with contextlib.suppress(IndexError):
                drawn[:] = [draw()]

        made = come_between(lambda supply=supply: supply.make(1, "text"), at, meanwhile)  # type: ignore[misc]
        if not drawn:
            break
        assert drawn == [None] or offset(drawn[0]) < offset(made[0]), at
    assert at > 5


def test_the_time_that_a_block_took_to_come_is_no_lack_of_demand(time: Time) -> None:
    """What was used up at once is wanted fast, however long a busy host took to answer."""
    source = Blocks(block(0, 1), block(10_000, 1000), clock=time)
    source.before = lambda: time.move(0.05)
    supply = supply_of(source)
    supply.make(1, "text")
    supply.make(10, "text")
    assert source.asked[0] == 64
    assert source.asked[1] >= 100


def test_runs_grow_while_the_form_stays() -> None:
    """A new form begins with a short run, for what is left of it has to be taken back."""
    supply = supply_of(Blocks(block(0, 100_000)))
    lengths = []
    for form in ["text"] * 12 + ["uuid"]:
        run, _ = supply.run(form)
        lengths.append(1 + sum(1 for _ in _until_empty(run)))
    assert lengths[:4] == [16, 32, 64, 128]
    assert max(lengths) == LONG_RUNS["text"]
    assert lengths[-1] == 16


def test_an_overlapping_block_is_trimmed() -> None:
    """Of a block that reaches back before the last id only what is later is used."""
    supply = supply_of(Blocks(block(100, 10), block(95, 30, node=NODE + 1)))
    supply.make(10, "text")
    assert offsets(supply.make(5, "text")) == [110, 111, 112, 113, 114]


def test_a_block_of_old_ticks_is_followed_by_another_request() -> None:
    """While UTC has not gone back there are later ticks, and they are asked for."""
    source = Blocks(block(100, 10), block(50, 10), block(95, 15), block(200, 1))
    supply = supply_of(source)
    supply.make(10, "text")
    assert offsets(supply.make(1, "text")) == [200]


def test_requests_for_later_ticks_are_bounded() -> None:
    """Who goes on to give old ticks is believed after a few requests, not asked for ever."""
    source = Blocks(block(100, 10), *(block(10 * number, 1) for number in range(9)))
    supply = supply_of(source)
    supply.make(10, "text")
    supply.make(1, "text")
    assert len(source.asked) == 1 + FETCHES


def test_a_step_back_of_utc_is_followed_at_once(time: Time) -> None:
    """When UTC itself went back, order is not to be had, and no request is wasted."""
    source = Blocks(block(100, 10), block(-900, 10), clock=time)
    supply = supply_of(source)
    supply.make(10, "text")
    time.utc = START - 890
    assert offsets(supply.make(2, "text")) == [-900, -899]
    assert len(source.asked) == 2


def test_ids_rise_into_the_fallback_and_back() -> None:
    """The last tick used counts, whichever node it was used under."""
    source = Blocks(block(0, 10), block(5, 10, node=NODE + 1), block(12, 10))
    supply = supply_of(source)
    assert offsets(supply.make(20, "text"))[9:16] == [9, 10, 11, 12, 13, 14, 15]


# --- failures


def test_a_failed_call_loses_its_own_ids_only() -> None:
    """What it had made is lost; the next ids are later, and none is missing or comes twice."""
    supply = supply_of(Blocks(block(0, 10), UNAVAILABLE, block(10, 10)))
    assert offsets(supply.make(3, "text")) == [0, 1, 2]
    with pytest.raises(DaemonUnavailable):
        supply.make(20, "text")
    assert offsets(supply.make(10, "text")) == list(range(10, 20))


def test_a_failed_draw_loses_nothing(time: Time) -> None:
    """After a refusal ids go on after the last one used, trimmed as ever."""
    supply = supply_of(Blocks(block(0, 10), UNAVAILABLE, block(0, 30), clock=time))
    assert drawn(supply, "text", 10) == list(range(10))
    time.move(1)
    with pytest.raises(DaemonUnavailable):
        supply.run("text")
    assert drawn(supply, "text", 3) == [10, 11, 12]


def test_a_failed_request_leaves_no_block_that_is_too_old(time: Time) -> None:
    """What was left of a block that was given up is not used when there is no other."""
    supply = supply_of(Blocks(block(0, 10), UNAVAILABLE, UNAVAILABLE, clock=time))
    run, _ = supply.run("text")
    time.move(1)
    for _ in range(2):
        with pytest.raises(DaemonUnavailable):
            supply.run("text")
    assert _deadline(run) <= time.utc_seconds()


def test_ids_rise_though_a_second_request_failed() -> None:
    """A block found to be of old ticks is not used because the request after it failed."""
    supply = supply_of(Blocks(block(100, 10), block(50, 10), UNAVAILABLE, block(200, 10)))
    supply.make(10, "text")
    with pytest.raises(DaemonUnavailable):
        supply.make(1, "text")
    assert offsets(supply.make(1, "text")) == [200]


def test_a_block_stays_too_old_while_another_kind_goes_on(time: Time) -> None:
    """However many blocks other kinds have had, an id lags by max_age at most."""
    idle = supply_of(Blocks(block(0, 100), clock=time))
    busy = supply_of(Blocks(*(block(n, 1) for n in range(600)), clock=time), "v6")
    run, _ = idle.run("uuid")
    for _ in range(600):
        time.move(1)
        busy.make(1, "text")
        assert _deadline(run) < time.utc_seconds()


# --- all together


class Changing(Unwatched):
    """A source that changes between the daemon's node and another, or fails, as it is told.

    Its blocks are as long as a given list says, and their ticks those that a lane has.
    """

    def __init__(self, time: Time, sizes: list[int], turns: list[int]) -> None:
        self.clock = self._time = time
        self._sizes = sizes
        self._turns = turns
        self._takes = 0
        draws = Draws()
        self._timelines = [Volatile(draws), Volatile(draws)]

    def take(self, count: int) -> tuple[Block, bool]:
        """Return a block, or raise DaemonUnavailable."""
        self._takes += 1
        turn = self._turns[self._takes % len(self._turns)]
        if turn == 2:
            raise UNAVAILABLE
        self._time.move(1e-7)
        size = min(count, self._sizes[self._takes % len(self._sizes)])
        while True:
            try:
                return self._timelines[turn].take(size, now=self._time.utc), not turn
            except NoneFree as none:
                self._time.move(none.wait / 1e7)


Step = tuple[str, Any, Any, int]

STEPS = st.lists(
    st.tuples(
        st.sampled_from(["draw", "draw", "make", "wait"]),
        st.sampled_from(KINDS),
        st.sampled_from(FORMS),
        st.integers(1, 40),
    ),
    max_size=60,
)
SIZES = st.lists(st.integers(1, 100), min_size=1, max_size=20)


def play(time: Time, steps: list[Step], sizes: list[int], turns: list[int]) -> dict[str, list[int]]:
    """Return the ids of each kind that these steps draw, in order."""
    found: dict[str, list[int]] = {kind: [] for kind in KINDS}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(channel, "Source", lambda *_, **__: Changing(time, sizes, turns))
        client = Client("/nowhere", _clock=time)
        iters: dict[tuple[str, str], Iterator[Any]] = {
            (kind, form): client.iter(kind, form) for kind in KINDS for form in FORMS
        }
        for step, kind, form, count in steps:
            try:
                if step == "wait":
                    time.move(count / 400)
                elif step == "draw":
                    for _ in range(count):
                        found[kind].append(value(next(iters[kind, form])))
                elif form == "bytes":
                    packed = client.make(kind, count, form="bytes")
                    found[kind] += [value(packed[at : at + 16]) for at in range(0, len(packed), 16)]
                else:
                    found[kind] += map(value, client.make(kind, count, form))
            except DaemonUnavailable:
                pass
    return found


@given(STEPS, SIZES, st.lists(st.integers(0, 2), min_size=1, max_size=20))
# A daemon that comes and goes is not a broken one, whose every answer has another node.
@example([("make", "v1", "text", 40)], [1], [0, 1])
def test_no_id_comes_twice_and_all_rise(
    steps: list[Step], sizes: list[int], turns: list[int]
) -> None:
    """Drawn in any order and form, through fallbacks and failures, the ids of a kind rise."""
    found = play(Time(), steps, sizes, turns)
    for ids in found.values():
        ticks = [versions.gregorian_fields(id).tick for id in ids]
        assert ticks == sorted(set(ticks))
