from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

import pytest
import trio
from trio.testing import MockClock

from tests.daemon.fakes import HOUR, Inside
from uuidd.core.ids.ticks import TICKS_PER_SECOND
from uuidd.core.timeline.state import State
from uuidd.core.wire.methods import RefusedError

pytestmark = pytest.mark.usefixtures("autojump_clock")


@pytest.fixture
async def inside(autojump_clock: MockClock) -> AsyncIterator[Inside]:
    """A daemon's inside, just started, whose saver runs."""
    inside = Inside()
    async with inside.saving():
        yield inside


@pytest.fixture
async def failing(inside: Inside) -> Inside:
    """A daemon's inside whose saves fail, the first one after a request."""
    inside.disk.broken = True
    inside.take()
    return inside


def horizon(state: State) -> int:
    """The mark of the generation that was open at a save."""
    return state.marks[state.generation]


def reach(inside: Inside, index: int) -> float:
    """How many seconds past its begin the save with this index put the horizon."""
    elapsed = inside.disk.begun[index] - trio.current_time()
    begun = inside.wall.now() + round(elapsed * TICKS_PER_SECOND)
    return (horizon(inside.disk.kept[index]) - begun) / TICKS_PER_SECOND


async def test_who_needs_what_is_true_now_waits_for_a_save_that_begins_later(
    inside: Inside,
) -> None:
    """The save under way may have begun without it."""
    gate = inside.disk.gate = trio.Event()
    async with trio.open_nursery() as nursery:
        inside.saver.want()
        await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(inside.saver.settled_anew)
        await trio.testing.wait_all_tasks_blocked()
        gate.set()
    assert len(inside.disk.kept) == 2


async def test_one_save_lets_all_go_on_who_wait_for_it(inside: Inside) -> None:
    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(inside.saver.settled_by, HOUR)
    assert trio.current_time() == 0
    assert len(inside.disk.kept) == 1


async def test_a_daemon_in_use_saves_every_ten_seconds(inside: Inside) -> None:
    await inside.use(60)
    inside.disk.begun.clear()
    await inside.use(120)
    assert len(inside.disk.pauses) >= 10
    assert inside.disk.pauses == pytest.approx([10] * len(inside.disk.pauses), abs=0.06)


async def test_the_reach_of_saves_grows_with_the_uptime(inside: Inside) -> None:
    await inside.use(60)
    reaches = [reach(inside, index) for index in range(len(inside.disk.kept))]
    halves = [min(20.0, max(0.1, begun / 2)) for begun in inside.disk.begun]
    assert reaches == pytest.approx(halves, abs=1e-6)
    assert (round(reaches[0], 6), round(reaches[-1], 6)) == (0.1, 20)
    # While steady is with UTC.
    assert all(state.steady == horizon(state) for state in inside.disk.kept)


async def test_a_steady_timeline_far_ahead_gets_no_more_than_half_the_uptime(
    inside: Inside,
) -> None:
    inside.take_steady()
    begin = inside.steady.next - 1
    inside.wall.step(-HOUR)
    for _ in range(3000):
        await trio.sleep(0.02)
        inside.take_steady()
    assert inside.disk.begun[0] == pytest.approx(0.05)
    for at, state in zip(inside.disk.begun, inside.disk.kept, strict=True):
        # S goes on at half speed.
        bare = (state.steady - begin) / TICKS_PER_SECOND - at / 2
        assert bare == pytest.approx(min(20.0, at / 2), abs=1e-6)
    # Each save comes a quarter of the uptime after the one before, and at last after 10 s.
    assert len(inside.disk.kept) < 40


async def test_a_slow_save_delays_nobody_before_the_horizon(inside: Inside) -> None:
    await inside.use(100)
    inside.disk.gate = trio.Event()
    while not inside.disk.at_once:
        await inside.use(0.1)
    for _ in range(90):
        inside.take()
        await trio.sleep(0.1)
    assert inside.disk.at_once == 1


async def test_an_idle_daemon_is_not_woken(inside: Inside) -> None:
    steps = Steps()
    await trio.sleep(60)
    trio.lowlevel.add_instrument(steps)
    await trio.sleep(HOUR)
    trio.lowlevel.remove_instrument(steps)
    assert steps.of("Saver.run") == 0
    assert inside.disk.begun == []


async def test_a_failing_save_is_tried_again_with_growing_pauses(failing: Inside) -> None:
    await trio.sleep(30)
    pauses = failing.disk.pauses
    assert pauses[:8] == pytest.approx([0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5, 5])


async def test_those_who_wait_do_not_hurry_a_failing_save(failing: Inside) -> None:
    await trio.sleep(0.16)
    failing.disk.begun.clear()

    async def ask() -> None:
        with contextlib.suppress(RefusedError):
            await failing.take_waiting(1, whole=False)

    async with trio.open_nursery() as nursery:
        for _ in range(50):
            nursery.start_soon(ask)
    await trio.sleep(10)
    assert failing.disk.pauses[:4] == pytest.approx([0.4, 0.8, 1.6, 3.2])


async def test_the_pauses_begin_anew_after_a_success(failing: Inside) -> None:
    await trio.sleep(20)
    failing.disk.broken = False
    await failing.use(60)
    failing.disk.broken = True
    failing.disk.begun.clear()
    while len(failing.disk.begun) < 2:
        failing.take()
        await trio.sleep(0.05)
    assert failing.disk.pauses[0] == pytest.approx(0.1)


@pytest.mark.parametrize("idle", [0, HOUR])
async def test_finish_saves_the_exact_marks(inside: Inside, idle: float) -> None:
    await inside.use(100)
    block, steady = inside.take(500), inside.take_steady(10)
    await trio.sleep(idle)
    assert await inside.saver.finish(10)
    assert inside.disk.kept[-1].steady == steady.first + steady.count
    assert horizon(inside.disk.kept[-1]) == block.first + block.count == inside.open.top


async def test_finish_lets_the_save_under_way_end_first(inside: Inside) -> None:
    inside.disk.gate = trio.Event()
    block = inside.take()
    await trio.sleep(1)
    assert inside.disk.at_once == 1
    outcome: list[bool] = []

    async def finish() -> None:
        outcome.append(await inside.saver.finish(10))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(finish)
        await trio.sleep(3)
        assert outcome == []
        assert inside.disk.kept == []
        inside.disk.gate.set()
    assert outcome == [True]
    assert inside.disk.most_at_once == 1
    assert horizon(inside.disk.kept[0]) > block.first + 1
    assert horizon(inside.disk.kept[-1]) == block.first + 1


async def test_finish_gives_up_on_a_hung_save(inside: Inside) -> None:
    inside.disk.gate = trio.Event()
    inside.take()
    await trio.sleep(1)
    begun = trio.current_time()
    with trio.fail_after(60):
        assert not await inside.saver.finish(10)
    assert trio.current_time() - begun == pytest.approx(10)


@pytest.mark.parametrize("broken", [True, False])
async def test_finish_tries_once_in_the_pause_after_a_failed_save(
    inside: Inside, broken: bool
) -> None:
    inside.disk.broken = True
    block = inside.take()
    await trio.sleep(20)
    inside.disk.broken = broken
    begun = trio.current_time()
    assert await inside.saver.finish(10) is not broken
    assert trio.current_time() == begun
    if not broken:
        assert horizon(inside.disk.kept[-1]) == block.first + 1


async def test_a_trouble_is_logged_once_when_it_begins_and_once_when_it_ends(
    failing: Inside, log: pytest.LogCaptureFixture
) -> None:
    await trio.sleep(30)
    failing.disk.broken = False
    failed = len(failing.disk.begun)
    await trio.sleep(30)
    assert log.messages == [
        "the state cannot be saved; uuidd keeps trying: No space left on device",
        f"the state is saved again, after {failed} failed saves",
    ]
    assert [record.levelname for record in log.records] == ["ERROR", "WARNING"]


async def test_the_saver_counts_saves_and_failures(failing: Inside) -> None:
    await trio.sleep(2)
    failed = len(failing.disk.begun)
    assert (failing.saver.failed_saves, failing.saver.failed_since_last) == (failed, failed)
    assert failing.saver.trouble == "No space left on device"
    failing.disk.broken = False
    await trio.sleep(HOUR)
    assert (failing.saver.failed_saves, failing.saver.failed_since_last) == (failed, 0)
    assert failing.saver.trouble == ""
    assert failing.saver.saves == 1 + len(failing.disk.kept)


async def test_before_the_first_save_there_is_no_age_of_the_last(inside: Inside) -> None:
    """A daemon that finds its disk full starts without a save."""
    assert inside.saver.status()["last_age"] == 0.0
    inside.saver.saves = 0
    assert inside.saver.status()["last_age"] is None


async def test_how_long_a_save_is_under_way_is_known(inside: Inside) -> None:
    """In whole milliseconds in the status."""
    assert inside.saver.under_way_seconds == 0
    inside.disk.gate = trio.Event()
    inside.take()
    await trio.sleep(5.0004)
    seconds = inside.saver.under_way_seconds
    assert seconds == pytest.approx(5.0004 - inside.disk.begun[0])
    assert inside.saver.status()["under_way_seconds"] == round(seconds, 3)
    inside.disk.gate.set()
    await trio.testing.wait_all_tasks_blocked()
    assert inside.saver.under_way_seconds == 0
    assert inside.saver.last_seconds == pytest.approx(seconds)


class Steps(trio.abc.Instrument):
    """Counts how often each task is run, by its name."""

    def __init__(self) -> None:
        self._names: list[str] = []

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        """Note that *task* runs."""
        self._names.append(task.name)

    def of(self, name: str) -> int:
        """How often tasks whose name ends so were run."""
        return sum(each.endswith(name) for each in self._names)
