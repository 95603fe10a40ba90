"""Steps of the clock under a running daemon: clock sequences, counters and log lines."""

from __future__ import annotations

import os
import subprocess
import sys
import time

from tests.rig import PATIENCE, Daemon
from tests.system.callers import Callers
from tests.system.fake_time import HOUR, FakeTime
from uuidd.core.timeline.generation import LANE_BITS


def generations(callers: Callers) -> set[int]:
    """Let all callers draw; return the generations of what they have been given so far."""
    callers.draw(5)
    callers.hang_up()
    callers.assert_nothing_twice()
    return {clock_seq >> LANE_BITS for _, clock_seq in callers.utc.taken}


def test_a_clean_restart_goes_on_under_the_same_clock_sequence(
    daemon: Daemon, fake_time: FakeTime
) -> None:
    """When the clock went on meanwhile there is no need for another."""
    callers = Callers(daemon, ahead=lambda: HOUR)
    before = generations(callers)
    daemon.stop()
    fake_time.set(HOUR)
    daemon.start()
    assert generations(callers) == before


def test_status_and_log_tell_of_steps(daemon: Daemon, fake_time: FakeTime) -> None:
    """Steps are counted both ways, and each is a line with its size."""
    with daemon.connect() as connection:
        for offset in (0.0, HOUR, -HOUR):
            fake_time.set(offset)
            connection.call("take", "utc", 1)
        utc = connection.call("status")["utc"]
    assert (utc["steps_forward"], utc["steps_back"], utc["openings"]) == (1, 1, 2)
    daemon.stop()
    steps = [line for line in daemon.lines if "WARNING: UTC was set " in line]
    assert [line.split("UTC was set ")[1] for line in steps] == [
        "forward by 3600.000 s",
        "back by 7200.000 s",
    ]
    assert any("s behind the last id: clock_seq=" in line for line in daemon.lines)


def test_a_step_of_five_milliseconds_is_waited_out(daemon: Daemon, fake_time: FakeTime) -> None:
    """A small step back costs a short wait, and no clock sequence."""
    callers = Callers(daemon)
    before = generations(callers)
    fake_time.set(-0.005)
    assert generations(callers) == before


def test_a_step_of_fifty_milliseconds_opens_the_next_generation(
    daemon: Daemon, fake_time: FakeTime
) -> None:
    """A step back past the tolerance moves the clock sequence."""
    callers = Callers(daemon)
    (before,) = generations(callers)
    fake_time.set(-0.05)
    assert len(generations(callers) - {before}) == 1


def test_the_fake_clock_leaves_boottime_alone(fake_time: FakeTime) -> None:
    """These tests rest on it: CLOCK_BOOTTIME goes on while UTC is set."""
    fake_time.set(-HOUR)
    said = subprocess.run(
        [sys.executable, "-c", "import time; print(time.clock_gettime(time.CLOCK_BOOTTIME))"],
        env={**os.environ, **fake_time.environment},
        capture_output=True,
        check=True,
        timeout=PATIENCE,
    ).stdout
    assert abs(float(said) - time.clock_gettime(time.CLOCK_BOOTTIME)) < 10
