from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from functools import partial
from itertools import pairwise

import pytest

from tests.client.breaking import come_between
from tests.client.fakes import START
from tests.client.raw import raw_fork
from uuidd.core.ids.nodes import MULTICAST
from uuidd.core.ids.ticks import TICKS_PER_SECOND
from uuidd.core.timeline import Block, SteadyBlock
from uuidd.core.timeline.volatile import TOLERANCE
from uuidd_client.fallback import STILL_SECONDS, Fallback
from uuidd_client.per_process import PerProcess

SECOND = TICKS_PER_SECOND


def steady(here: Fallback, count: int, *, past: int = 0, now: int = START, at: int = 0) -> range:
    """Return the ticks of a steady block."""
    found = here.take_steady(count, past=past, now=now, elapsed=at)
    assert isinstance(found, SteadyBlock)
    return range(found.first, found.first + found.count)


def test_a_block_is_of_the_latest_ticks() -> None:
    """Up to now, and none past it."""
    assert steady(Fallback(), 10) == range(START - 9, START + 1)


def test_steady_ticks_rise_when_utc_steps_back() -> None:
    """They go on at half speed, so they neither repeat nor stand still."""
    here = Fallback()
    before = steady(here, 10)
    after = steady(here, 10, now=START - 3500 * SECOND, at=SECOND)
    assert after == range(START + SECOND // 2 - 9, START + SECOND // 2 + 1)
    assert before[-1] < after[0]


def test_steady_ticks_lie_past_what_the_daemon_gave() -> None:
    """Also when that was ahead of UTC."""
    ahead = START + 15 * SECOND
    assert steady(Fallback(), 5, past=ahead)[0] == ahead


def test_no_steady_tick_comes_twice() -> None:
    """However UTC and the time elapsed go, blocks lie after one another."""
    here = Fallback()
    clocks = [(0, 0), (5, 5), (5, 10), (-900, 20), (30, 30), (31, 1000), (600, 1001)]
    blocks = [steady(here, 4, now=START + now, at=at) for now, at in clocks]
    assert all(one[-1] < other[0] for one, other in pairwise(blocks))


def test_when_nothing_is_free_it_says_how_long_to_wait() -> None:
    """A tick that was given is not given again while the clock stands still."""
    here = Fallback()
    steady(here, 5)
    assert here.take_steady(5, past=0, now=START, elapsed=0) == 1


def test_nodes_are_random_and_marked_so() -> None:
    """Of utc as of steady: no card's address has the multicast bit."""
    for here in (Fallback(), Fallback()):
        block = here.take(1, now=START)
        other = here.take_steady(1, past=0, now=START, elapsed=0)
        assert isinstance(block, Block)
        assert isinstance(other, SteadyBlock)
        assert block.node & other.node & MULTICAST


def test_two_processes_without_a_daemon_have_two_nodes() -> None:
    """Each timeline draws its own, so that ids of two processes differ at the same tick."""
    utc, steady = set(), set()
    for here in (Fallback(), Fallback()):
        block = here.take(1, now=START)
        other = here.take_steady(1, past=0, now=START, elapsed=0)
        assert isinstance(block, Block)
        assert isinstance(other, SteadyBlock)
        utc.add(block.node)
        steady.add(other.node)
    assert len(utc) == len(steady) == 2


def test_it_has_no_worker_number() -> None:
    """A Snowflake is not made without the daemon."""
    block = Fallback().take_steady(1, past=0, now=START, elapsed=0)
    assert isinstance(block, SteadyBlock)
    assert block.worker is None


@pytest.mark.parametrize("back", [1, TOLERANCE - 1])
def test_utc_waits_for_a_small_step_back(back: int) -> None:
    """Within the tolerance the same node goes on, later."""
    here = Fallback()
    here.take(1, now=START)
    assert here.take(1, now=START - back) == back + 1


def test_nobody_waits_longer_for_a_clock_that_stands_still() -> None:
    """Once a caller has waited for longer than a step that is waited out, the node is another."""
    here = Fallback()
    first = here.take(1, now=START)
    assert here.take(1, now=START, waited=STILL_SECONDS / 2) == 1
    second = here.take(1, now=START, waited=STILL_SECONDS)
    assert isinstance(first, Block)
    assert isinstance(second, Block)
    assert (second.first, second.count) == (first.first, first.count)
    assert second.node != first.node


def test_a_clock_that_has_reached_the_next_tick_needs_no_other_node() -> None:
    """However long the caller has waited for that."""
    here = Fallback()
    first = here.take(1, now=START)
    second = here.take(1, now=START + 1, waited=STILL_SECONDS)
    assert isinstance(first, Block)
    assert isinstance(second, Block)
    assert (second.first, second.node) == (START + 1, first.node)


def test_a_clock_known_to_stand_still_is_not_waited_for_again() -> None:
    """As long as it shows the same time; when it goes on it is waited for as ever."""
    here = Fallback()
    here.take(1, now=START)
    here.take(1, now=START, waited=STILL_SECONDS)
    assert isinstance(here.take(1, now=START), Block)
    assert isinstance(here.take(1, now=START + 5), Block)
    assert here.take(1, now=START + 5) == 1


def test_more_than_an_hour_ahead_order_begins_anew() -> None:
    """One id of a clock that a test has set to 2040 does not leave all later ones there."""
    here = Fallback()
    year = 365 * 86400 * SECOND
    before = here.take_steady(10, past=0, now=START + 14 * year, elapsed=0)
    after = here.take_steady(10, past=START + 14 * year, now=START, elapsed=SECOND)
    assert isinstance(before, SteadyBlock)
    assert isinstance(after, SteadyBlock)
    assert range(after.first, after.first + 10) == range(START - 9, START + 1)
    assert after.node != before.node


def test_what_was_used_up_to_an_hour_ahead_is_stayed_past() -> None:
    """Order goes on, as after any step back."""
    here = Fallback()
    assert steady(here, 5, past=START + 3600 * SECOND)[0] == START + 3600 * SECOND


def test_steady_ticks_of_a_clock_that_stands_still_lead_it_by_an_hour_at_most() -> None:
    """They go on at half speed, and after two hours begin anew."""
    here = Fallback()
    ticks = [steady(here, 3, at=hour * 3600 * SECOND)[-1] for hour in range(6)]
    leads = [(tick - START) / SECOND / 3600 for tick in ticks]
    assert leads == [0, 0.5, 1, 0, 0.5, 1]


def _append(to: list[range], take: Callable[[], range]) -> None:
    to.append(take())


@pytest.mark.parametrize("timeline", ["utc", "steady"])
def test_a_signal_handler_may_come_in_between_anywhere(timeline: str) -> None:
    """What it gets is nobody else's, and all that is given after it is later."""
    for at in itertools.count(1):
        here = Fallback()
        clock = itertools.count(START, 5)

        def take(here: Fallback = here, clock: Callable[[], int] = clock.__next__) -> range:
            while True:
                now = clock()
                if timeline == "utc":
                    found: Block | SteadyBlock | int = here.take(10, now=now)
                else:
                    found = here.take_steady(10, past=0, now=now, elapsed=0)
                if not isinstance(found, int):
                    return range(found.first, found.first + found.count)

        inner: list[range] = []
        outer = come_between(take, at, partial(_append, inner, take))
        after = take()
        if not inner:
            break
        assert not set(outer) & set(inner[0])
        assert after[0] > max(outer[-1], inner[0][-1])
    assert at > 10


def test_a_process_has_one_and_a_child_has_another() -> None:
    """Also if the system forked it, unseen by Python."""
    here = PerProcess(Fallback).get
    assert here() is here()
    read, write = os.pipe()
    mine = here()
    if not (pid := raw_fork()):
        try:
            os.write(write, b"%d%d" % (here() is mine, here() is here()))
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitpid(pid, 0)[1] == 0
    assert os.read(read, 9) == b"01"
    os.close(read)
    os.close(write)
    assert here() is mine
