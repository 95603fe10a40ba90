from __future__ import annotations

from itertools import pairwise

import pytest

from tests.client.fakes import START
from uuidd.core.ids.timebased import MULTICAST, TICKS_PER_SECOND
from uuidd.core.timeline import Block, SteadyBlock
from uuidd.core.timeline.volatile import TOLERANCE
from uuidd_client.standin import StandIn

SECOND = TICKS_PER_SECOND


def steady(here: StandIn, count: int, *, past: int = 0, now: int = START, at: int = 0) -> range:
    """Give the ticks of a steady block."""
    found = here.take_steady(count, past=past, now=now, elapsed=at)
    assert isinstance(found, SteadyBlock)
    return range(found.first, found.first + found.count)


def test_a_block_is_of_the_latest_ticks() -> None:
    """Up to now, and none past it."""
    assert steady(StandIn(), 10) == range(START - 9, START + 1)


def test_steady_ticks_rise_when_utc_steps_back() -> None:
    """They go on at half speed, so they neither repeat nor stand still."""
    here = StandIn()
    before = steady(here, 10)
    after = steady(here, 10, now=START - 3600 * SECOND, at=SECOND)
    assert after == range(START + SECOND // 2 - 9, START + SECOND // 2 + 1)
    assert before[-1] < after[0]


def test_steady_ticks_lie_past_what_the_daemon_gave() -> None:
    """Also when that was ahead of UTC."""
    ahead = START + 15 * SECOND
    assert steady(StandIn(), 5, past=ahead)[0] == ahead


def test_no_steady_tick_comes_twice() -> None:
    """However UTC and the time elapsed go, blocks lie after one another."""
    here = StandIn()
    clocks = [(0, 0), (5, 5), (5, 10), (-900, 20), (30, 30), (31, 1000), (600, 1001)]
    blocks = [steady(here, 4, now=START + now, at=at) for now, at in clocks]
    assert all(one[-1] < other[0] for one, other in pairwise(blocks))


def test_when_nothing_is_free_it_says_how_long_to_wait() -> None:
    """A tick that was given is not given again while the clock stands still."""
    here = StandIn()
    steady(here, 5)
    assert here.take_steady(5, past=0, now=START, elapsed=0) == 1


def test_nodes_are_random_and_marked_so() -> None:
    """Of utc as of steady: no card's address has the multicast bit."""
    for here in (StandIn(), StandIn()):
        block = here.take(1, now=START)
        other = here.take_steady(1, past=0, now=START, elapsed=0)
        assert isinstance(block, Block)
        assert isinstance(other, SteadyBlock)
        assert block.node & other.node & MULTICAST


def test_it_has_no_worker_number() -> None:
    """A Snowflake is not made without the daemon."""
    block = StandIn().take_steady(1, past=0, now=START, elapsed=0)
    assert isinstance(block, SteadyBlock)
    assert block.worker is None


@pytest.mark.parametrize("back", [1, TOLERANCE - 1])
def test_utc_waits_for_a_small_step_back(back: int) -> None:
    """Within the tolerance the same node goes on, later."""
    here = StandIn()
    here.take(1, now=START)
    assert here.take(1, now=START - back) == back + 1
