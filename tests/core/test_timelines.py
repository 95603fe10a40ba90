"""Both timelines together: blocks by name, and one state for the marks of both."""

from __future__ import annotations

import pytest

from tests.core.draws import Draws
from uuidd.core.ids.places import Origin
from uuidd.core.ids.ticks import TICKS_PER_SECOND
from uuidd.core.timeline import Block, NoneFree, SteadyBlock
from uuidd.core.timeline.fence import Fence
from uuidd.core.timeline.outcomes import Closed, NeedsSave, NeedsSwitch
from uuidd.core.timeline.state import State
from uuidd.core.timeline.steady import Steady
from uuidd.core.timeline.timelines import FAR, Reading, Timelines
from uuidd.core.timeline.utc import Utc

NOW = 1_000_000_000_000
AT = Reading(NOW, 0)
REACH = 1000
BARE = 7
EPOCH = 1_600_000_000_000


def begun(loaded: State | None = None, *, now: int = NOW, worker: int | None = 5) -> Timelines:
    """Return the timelines of a host that loaded this state, nothing saved yet."""
    utc = Utc(loaded, machine="host", now=now, random=Draws())
    steady = Steady(None if loaded is None else loaded.steady, now=now, elapsed=0)
    return Timelines(utc, steady, fence=Fence(worker), epoch=EPOCH)


def save(timelines: Timelines, at: Reading = AT) -> State:
    """Let a save begin and complete; give its state."""
    state = timelines.begin_save(at=at, reach=REACH, bare_reach=BARE)
    timelines.end_save(state, completed=True)
    return state


def saved(loaded: State | None = None, *, now: int = NOW, worker: int | None = 5) -> Timelines:
    """Return the same once their first save completed."""
    timelines = begun(loaded, now=now, worker=worker)
    save(timelines, Reading(now, 0))
    return timelines


def take(
    timelines: Timelines, name: str, count: int, *, at: Reading, whole: bool = False
) -> Block | SteadyBlock:
    """Take a block of the timeline of that name."""
    if name == "utc":
        return timelines.utc.take(count, now=at.now, whole=whole)
    return timelines.take_steady(count, at=at, whole=whole)


def ahead(lead: int) -> Timelines:
    """Return timelines that loaded a steady mark so far past UTC."""
    return begun(State(Utc(None, machine="", now=0, random=Draws()).node, "", 0, {}, 0, NOW + lead))


def test_a_block_of_utc_has_a_clock_sequence() -> None:
    """The name ``utc`` gives ticks of UTC under the open generation's clock sequence and node."""
    timelines = saved()
    opened = timelines.utc.generation
    assert opened is not None
    assert take(timelines, "utc", 3, at=Reading(NOW + 9, 9)) == Block(
        NOW + 7, 3, opened.clock_seq, timelines.utc.node.value
    )


@pytest.mark.parametrize("worker", [0, 5, 1023, None])
def test_a_block_of_steady_has_what_its_kinds_need(worker: int | None) -> None:
    """The name ``steady`` gives ticks with the node for Flakes, worker and epoch for Snowflakes."""
    timelines = saved(worker=worker)
    block = take(timelines, "steady", 3, at=Reading(NOW + 9, 9))
    assert block == SteadyBlock(NOW + 7, 3, timelines.utc.node.value, worker, EPOCH)


def test_a_block_tells_what_ids_are_made_with() -> None:
    """Each origin has the node; of steady also worker and epoch."""
    timelines = saved()
    node = timelines.utc.node.value
    assert SteadyBlock(1, 1, node, 5, EPOCH).origin == Origin(node, worker=5, epoch=EPOCH)
    assert Block(1, 1, 77, node).origin == Origin(node, clock_seq=77)


def test_whole_is_whole_on_either() -> None:
    """All or nothing, and a refusal leaves the other timeline alone."""
    timelines = saved()
    take(timelines, "steady", 1, at=AT)
    with pytest.raises(NoneFree):
        take(timelines, "steady", 5, at=Reading(NOW + 3, 3), whole=True)
    block = take(timelines, "utc", 5, at=Reading(NOW + 3, 3), whole=True)
    assert (block.first, block.count) == (NOW - 1, 5)
    block = take(timelines, "steady", 3, at=Reading(NOW + 3, 3), whole=True)
    assert (block.first, block.count) == (NOW + 1, 3)


def test_a_step_back_goes_on_in_steady_and_opens_a_generation_in_utc() -> None:
    """UTC is followed back by the one, and not by the other."""
    timelines = saved()
    for name in ("utc", "steady"):
        take(timelines, name, 1, at=AT)
    at = Reading(NOW - TICKS_PER_SECOND, 10)
    with pytest.raises(NeedsSwitch):
        take(timelines, "utc", 1, at=at)
    timelines.utc.switch(now=at.now)
    save(timelines, at)
    assert take(timelines, "utc", 1, at=at).first == at.now
    assert take(timelines, "steady", 1, at=at).first == NOW + 5


def test_one_state_has_the_marks_of_both() -> None:
    """Each reaches as far ahead, utc's past UTC, steady's past S."""
    timelines = saved()
    opened = timelines.utc.generation
    assert opened is not None
    take(timelines, "steady", 1, at=AT)
    state = timelines.begin_save(at=Reading(NOW - 100, 10), reach=REACH, bare_reach=BARE)
    assert state.marks == {opened.number: NOW - 100 + REACH}
    assert state.steady == NOW + 5 + REACH


@pytest.mark.parametrize(("lead", "far"), [(0, False), (FAR - 1, False), (FAR, True)])
def test_a_steady_that_is_a_second_ahead_is_far(lead: int, far: bool) -> None:
    """It gets the bare reach, so that crashes run it no further ahead, and utc the whole one."""
    timelines = ahead(lead)
    assert timelines.far(AT) is far
    state = timelines.begin_save(at=AT, reach=REACH, bare_reach=BARE)
    assert state.steady == NOW + lead + (BARE if far else REACH)
    assert list(state.marks.values()) == [NOW + REACH]


def test_without_a_bare_reach_a_far_one_waits_for_nothing_worse() -> None:
    """A bare reach of zero saves the mark again: nothing is lost, and nothing given."""
    timelines = ahead(FAR)
    state = timelines.begin_save(at=AT, reach=REACH, bare_reach=0)
    timelines.end_save(state, completed=True)
    assert state.steady == NOW + FAR
    with pytest.raises(NeedsSave):
        take(timelines, "steady", 1, at=AT)
    assert take(timelines, "utc", 1, at=AT).first == NOW


def test_either_is_a_use() -> None:
    """A block of one of the two is enough to make the next save due."""
    for name in ("utc", "steady"):
        timelines = saved()
        used = [timelines.used]
        take(timelines, name, 1, at=AT)
        used.append(timelines.used)
        save(timelines)
        used.append(timelines.used)
        assert used == [False, True, False]


def test_a_clean_stop_saves_the_exact_marks_of_both() -> None:
    """Closed, both give nothing more, and the next start goes on at the next tick of each."""
    timelines = saved()
    opened = timelines.utc.generation
    assert opened is not None
    for name, count in (("utc", 1), ("steady", 2)):
        take(timelines, name, count, at=Reading(NOW + count, count))
    timelines.close()
    at = Reading(NOW + 9, 9)
    for name in ("utc", "steady"):
        with pytest.raises(Closed):
            take(timelines, name, 1, at=at)
    state = save(timelines, at)
    assert (state.marks, state.steady) == ({opened.number: NOW + 2}, NOW + 3)
    again = saved(state, now=NOW + 9)
    assert take(again, "utc", 8, at=at, whole=True).first == NOW + 2
    assert take(again, "steady", 99, at=at).first == NOW + 3


def test_a_crash_costs_steady_its_lead() -> None:
    """The next start begins at the horizon, past UTC, and leads it from then."""
    timelines = saved()
    take(timelines, "steady", 1, at=AT)
    state = save(timelines)
    again = saved(state, now=NOW + 1)
    assert take(again, "steady", 99, at=Reading(NOW + 1, 0)).first == NOW + REACH
    assert again.steady.lead(now=NOW + 1, elapsed=0) == REACH - 1
