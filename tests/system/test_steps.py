"""Steps of the clock of every size, both ways, under callers of all sorts (P1, P2 and P4)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.rig import SOON, Daemon, until
from tests.system.callers import Callers
from tests.system.drawer import Drawer
from tests.system.fake_time import HOUR, FakeTime
from tests.system.far import far_reaching
from tests.system.holders import all_safe, assert_sound, await_leases, holders, leases

DAY = 24 * HOUR
YEAR = 365 * DAY

SIZES = {
    "1 ms": 0.001,
    "5 ms": 0.005,
    "10 ms": 0.01,
    "11 ms": 0.011,
    "100 ms": 0.1,
    "1 s": 1.0,
    "10 s": 10.0,
    "1 min": 60.0,
    "1 h": HOUR,
    "1 day": DAY,
    "30 days": 30 * DAY,
    "1 year": YEAR,
    "10 years": 10 * YEAR,
}


class Steps:
    """Steps of *fake_time*, and callers at *daemon* that know how far ahead it may be."""

    def __init__(self, daemon: Daemon, fake_time: FakeTime) -> None:
        self._fake_time = fake_time
        self._offset = self._ahead = 0.0
        self.callers = Callers(daemon, ahead=lambda: self._ahead)

    def by(self, seconds: float) -> None:
        """Let UTC be so far ahead of ours."""
        # Until it is set, a request may meet either.
        self._ahead = max(self._offset, seconds)
        self._fake_time.set(seconds)
        self._offset = self._ahead = seconds

    def to(self, moment: float) -> None:
        """Let UTC be at *moment*, to the millisecond."""
        self.by(round(moment - time.time(), 3))


@pytest.fixture
def steps(daemon: Daemon, fake_time: FakeTime) -> Iterator[Steps]:
    """A clock to step, and callers of a daemon without a bound to its lead.

    Nothing is refused, nothing lies in the future, and steady ids rise.
    """
    daemon.kill()
    daemon.arguments = ["--max-lead=1000000000"]
    daemon.start()
    steps = Steps(daemon, fake_time)
    yield steps
    steps.callers.hang_up()
    steps.callers.assert_sound()
    assert not steps.callers.refused


def test_under_load_no_step_repeats_anything(steps: Steps) -> None:
    """While all callers draw at once UTC goes forth and back by each size; no call takes long."""
    callers = steps.callers
    with callers.drawing():
        for size in SIZES.values():
            moment = time.time()
            for offset in (size, 0, -size, 0):
                steps.by(offset)
                callers.more()
            for offset in (size, 0, -size, 0):
                steps.to(moment + offset)
                callers.more()
    assert callers.slowest < SOON


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[] if name in ("11 ms", "1 h") else pytest.mark.thorough)
        for name in SIZES
    ],
)
def test_between_end_and_start_no_step_repeats_anything(
    name: str, steps: Steps, daemon: Daemon
) -> None:
    """UTC steps by each size, both ways, after a kill and after a stop: the stored marks hold.

    They hold at the very moment of the last block too, and right after a step forward.
    """
    callers = steps.callers
    size = SIZES[name]
    moment = time.time()
    for end in (daemon.kill, daemon.stop):
        for offset in (size, 0, -size, 0):
            steps.to(moment)
            callers.take_wide()
            callers.hang_up()
            end()
            # The moment that was just drawn from comes again, once the daemon is up.
            steps.to(moment + offset - 0.5)
            daemon.start()
            steps.to(moment + offset)
            callers.take_wide()
            callers.draw()


@pytest.mark.parametrize("offset", [-0.001, -0.02, -HOUR, HOUR])
def test_steps_of_utc_with_leases_out(
    offset: float, daemon: Daemon, fake_time: FakeTime, tmp_path: Path
) -> None:
    """There and back: after a step back clients draw from blocks until UTC is where it was."""
    with holders(daemon, tmp_path, 3, environment=fake_time.environment) as drawing:
        for step in (offset, 0):
            fake_time.set(step)
            for holder in drawing:
                holder.more()
        if offset < -0.01:
            told = "uuidd: INFO: 3 leases ended, because UTC was set back"
            until(lambda: told in daemon.lines)
        if offset == HOUR:
            assert leases(daemon)["held_for"] > HOUR - 60
            fake_time.set(HOUR + 60)
        await_leases(daemon, 3)
        for holder in drawing:
            holder.more()
    drawn = [holder.drawn() for holder in drawing]
    assert_sound(drawn, utc_set_back=True)
    assert all(map(all_safe, drawn))


@pytest.fixture
def reaching(fake_time: FakeTime) -> Iterator[Daemon]:
    with far_reaching(20, environment=fake_time.environment) as daemon:
        yield daemon


def test_after_a_step_back_ids_are_later_than_those_of_a_process_that_has_ended(
    reaching: Daemon, fake_time: FakeTime
) -> None:
    """No lease is held any more when UTC is set back."""
    with Drawer(reaching, fake_time.environment) as second:
        with Drawer(reaching, fake_time.environment) as first:
            last = first.draw_from_a_lease(reaching)
        await_leases(reaching, 0)
        fake_time.set(-2.5)
        assert second.says() > last


def while_it_draws(drawer: Drawer, daemon: Daemon, set_back: Callable[[float], None]) -> str:
    last = drawer.draw_from_a_lease(daemon)
    set_back(-4)
    return last


def while_no_daemon_runs(drawer: Drawer, daemon: Daemon, set_back: Callable[[float], None]) -> str:
    drawer.draw_from_a_lease(daemon)
    assert daemon.stop() == 0
    stopped = time.monotonic()
    # So UTC is not even where it was at the stop: only both clocks show that it was set.
    until(lambda: time.monotonic() - stopped > 1)
    last = drawer.says()
    set_back(-1)
    daemon.start()
    return last


@pytest.mark.parametrize("stepped", [while_it_draws, while_no_daemon_runs])
def test_after_a_step_back_a_client_that_had_a_lease_is_refused_nothing(
    stepped: Callable[..., str], reaching: Daemon, fake_time: FakeTime
) -> None:
    with Drawer(reaching, fake_time.environment) as drawer:
        last = stepped(drawer, reaching, fake_time.set)
        assert drawer.says("close") == "closed"
        found = [drawer.says() for _ in range(20)]
    assert "refused" not in "".join(found)
    assert sorted(found) == found
    assert found[0] > last
