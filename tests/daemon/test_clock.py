from __future__ import annotations

import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from uuidd.clock import SLEW, STEP, Clock
from uuidd.core.ids.ticks import UNIX_EPOCH

SECOND = 1_000_000_000
DAY = 86_400 * SECOND


class Host:
    """A host whose two clocks are moved by hand; *told* keeps the steps that were told.

    *held_up* are nanoseconds that pass right after each coming reading of UTC.
    """

    def __init__(self, utc: int = 1_700_000_000 * SECOND, boottime: int = 1000 * SECOND) -> None:
        self.utc = utc
        self.boottime = boottime
        self.held_up: list[int] = []
        self.told: list[int] = []

    def read_utc(self) -> int:
        """Read UTC, and be held up after that if so arranged."""
        read = self.utc
        if self.held_up:
            self.passes(self.held_up.pop(0))
        return read

    def read_boottime(self) -> int:
        """Read the time since boot."""
        return self.boottime

    def passes(self, nanoseconds: int, *, drift: int = 0) -> None:
        """Let time pass; UTC runs ahead of CLOCK_BOOTTIME by *drift*."""
        self.boottime += nanoseconds
        self.utc += nanoseconds + drift

    def clock(self) -> Clock:
        """Return a clock of this host."""
        return Clock(self.told.append, utc=self.read_utc, boottime=self.read_boottime)

    def tick(self) -> int:
        """Return the tick that UTC is in."""
        return self.utc // 100 + UNIX_EPOCH


@pytest.mark.parametrize(
    ("utc", "tick"),
    [
        pytest.param(0, 0x01B21DD213814000, id="1970"),
        pytest.param(1_645_557_742 * SECOND, 0x1EC9414C232AB00, id="RFC 9562 A.1"),
        pytest.param(99, 0x01B21DD213814000, id="within a tick"),
        pytest.param(100, 0x01B21DD213814001, id="the next tick"),
        pytest.param(-1, 0x01B21DD213813FFF, id="before 1970"),
    ],
)
def test_now_is_the_tick_that_utc_is_in(utc: int, tick: int) -> None:
    assert Host(utc).clock().now() == tick


def test_now_is_the_hosts_time_unless_told_otherwise() -> None:
    clock = Clock()
    before = time.time_ns() // 100
    now = clock.now() - UNIX_EPOCH
    assert before <= now <= time.time_ns() // 100


@given(st.lists(st.tuples(st.integers(0, DAY), st.integers(-DAY, DAY)), max_size=8))
@example([(0, STEP), (0, -STEP), (0, 3600 * SECOND), (0, -365 * DAY)])
# Less than 10 ms is what time daemons do all day, and neither is drift in an idle time a step.
@example([(0, STEP - 1), (0, 1 - STEP), (100 * DAY, 100 * DAY * 999 // 1_000_000)])
@example([(60 * SECOND, -60 * SECOND * 999 // 1_000_000)])
# It never adds up to one, nor does a long life make a clock blind.
@example([(SECOND, 500_000)] * 100)
@example([(100 * DAY, 0), (SECOND, 2 * STEP)])
def test_each_step_is_told_once_by_its_size_and_counted(events: list[tuple[int, int]]) -> None:
    """What drift could be in the time since the last reading is no step."""
    host = Host()
    clock = host.clock()
    expected = []
    for idle, size in events:
        host.passes(idle, drift=size)
        assert clock.now() == clock.now() == host.tick()
        if abs(size) >= STEP + idle // SLEW:
            expected.append(size)
    assert host.told == expected
    back = sum(size < 0 for size in expected)
    assert (clock.steps_back, clock.steps_forward) == (back, len(expected) - back)


@pytest.mark.parametrize("made", [False, True], ids=["later", "when it was made"])
@pytest.mark.parametrize("step", [0, -60 * SECOND])
@pytest.mark.parametrize(
    "held_up",
    [
        pytest.param([SECOND], id="once"),
        pytest.param([20_000_000], id="for a time slice"),
        pytest.param([3600 * SECOND], id="by a suspend"),
        pytest.param([SECOND, 2 * SECOND], id="twice"),
        pytest.param([SECOND, 0, 2 * SECOND], id="and a later one is fine"),
        pytest.param([2 * SECOND, SECOND, 0], id="twice, each time less"),
    ],
)
def test_a_process_held_up_between_its_readings_sees_only_a_step_that_was(
    held_up: list[int], step: int, made: bool
) -> None:
    """A pause right after UTC was read looks like a step back, and is none."""
    host = Host()
    if made:
        host.held_up = list(held_up)
    clock = host.clock()
    host.passes(0, drift=step)
    host.held_up = [] if made else list(held_up)
    # The reading that could be trusted is given, not the one before the pause.
    assert clock.now() == host.tick()
    host.held_up = []
    assert clock.now() == host.tick()
    assert host.told == [step] * bool(step)


def test_who_is_told_of_a_step_may_read_the_clock() -> None:
    host = Host()
    read: list[int] = []
    clock = Clock(
        lambda _: read.append(clock.now()), utc=host.read_utc, boottime=host.read_boottime
    )
    host.passes(0, drift=-SECOND)
    assert [clock.now()] == read
    assert clock.steps_back == 1


@pytest.mark.parametrize("seconds", [0, -60, 60])
def test_a_clock_made_since_an_earlier_reading_finds_a_step_after_it(seconds: int) -> None:
    """The start of a daemon has read the clock, and UTC may be set before the daemon serves."""
    host = Host()
    earlier = host.clock().read()
    host.passes(SECOND, drift=seconds * SECOND)
    clock = Clock(host.told.append, since=earlier, utc=host.read_utc, boottime=host.read_boottime)
    clock.read()
    assert host.told == [seconds * SECOND] * bool(seconds)
