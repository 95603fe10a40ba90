"""Kills in a row under a steady timeline in use: it rises, and runs no further ahead (P1, P4)."""

from __future__ import annotations

import threading
import time

import pytest

from tests.rig import Daemon
from tests.system.callers import Callers
from tests.system.fake_time import HOUR, FakeTime

APART = 0.5
"""Seconds from a start to the kill: about as long as a service manager lets a crash loop be."""


def crash_loop(daemon: Daemon, callers: Callers, kills: int, *, apart: float) -> None:
    """Kill and start the daemon again and again, each time *apart* after it has started."""
    for _ in range(kills):
        begun = time.monotonic()
        callers.more(1)
        # How long a daemon lives is what is tested: its lead grows with its uptime.
        threading.Event().wait(max(0.0, begun + apart - time.monotonic()))
        with callers.down():
            daemon.kill()
            daemon.start()
    callers.more(1)


def assert_rising(callers: Callers) -> None:
    """Fail unless each caller's steady ticks rose, none came twice, and none was refused."""
    callers.hang_up()
    callers.assert_nothing_twice()
    assert not callers.refused


def lead(daemon: Daemon) -> float:
    """Return by how many seconds the steady timeline leads UTC."""
    found: float = daemon.call("status")["steady"]["lead"]
    return found


@pytest.mark.parametrize(
    ("apart", "kills", "most"),
    [
        (APART, 6, 5),
        # Killed as soon as it has given something.
        (0.0, 5, 1.5),
        pytest.param(APART, 40, 5, marks=pytest.mark.thorough),
        pytest.param(0.0, 20, 1.5, marks=pytest.mark.thorough),
    ],
)
def test_a_crash_loop_does_not_run_steady_ahead(apart: float, kills: int, most: float) -> None:
    """However soon the kills come, the lead stays small, and every block rose."""
    with Daemon() as daemon:
        callers = Callers(daemon)
        with callers.drawing():
            crash_loop(daemon, callers, kills, apart=apart)
        assert lead(daemon) < most
        assert_rising(callers)


@pytest.mark.parametrize("kills", [2, pytest.param(5, marks=pytest.mark.thorough)])
def test_a_crash_loop_through_a_step_back_repeats_nothing(
    kills: int, daemon: Daemon, fake_time: FakeTime
) -> None:
    """UTC goes back an hour between kills: the steady timeline goes on, and upward."""
    daemon.kill()
    daemon.arguments = ["--max-lead=7200"]
    daemon.start()
    callers = Callers(daemon)
    with callers.drawing():
        crash_loop(daemon, callers, kills, apart=APART)
        before = lead(daemon)
        fake_time.set(-HOUR)
        callers.more(1)
        crash_loop(daemon, callers, kills, apart=APART)
    after = lead(daemon)
    assert_rising(callers)
    # The kills after the step have brought it no further ahead than it was.
    assert before < 5
    assert HOUR - 60 < after < HOUR + before + 1
    assert [line for line in daemon.lines if "steady kinds are" in line]
