from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uuidd.core.timeline import MAX_BLOCK
from uuidd_client.demand import AT_ONCE, MIN_BLOCK, Demand


def test_no_block_is_smaller_than_64_ticks() -> None:
    """They are 6.4 us of the host's time, and spare a burst of ids the second round trip."""
    assert Demand(0.1).size(1, 0, 1000.0) == MIN_BLOCK == 64


def test_a_block_is_smaller_where_max_age_allows_no_more() -> None:
    """Of 64 ticks the first would be too old before the last is used."""
    assert Demand(0.000_001).size(1, 0, 1000.0) == 5


def test_what_is_needed_at_once_is_asked_for_at_once() -> None:
    """A call that makes many is not served tick by tick, not even the first one."""
    assert Demand(0.1).size(5000, 0, 1000.0) == 5000


def test_blocks_grow_with_the_rate_of_use() -> None:
    """A block is to last about max_age at the rate at which the last one was used."""
    demand = Demand(0.1)
    demand.came(1000.0)
    assert demand.size(1, 100, 1000.01) == pytest.approx(1000, abs=1)


def used(demand: Demand, *uses: tuple[float, int]) -> list[int]:
    """Return what is asked for at each of these times, when so many were used since the one before.

    All that is asked for comes at once.
    """
    asked = []
    for now, count in uses:
        asked.append(demand.size(1, count, now))
        demand.came(now)
    return asked


def test_after_a_rest_the_last_burst_is_asked_for() -> None:
    """Half as much again, and in one block, whatever number of blocks the last one took."""
    asked = used(Demand(0.1), (1000.0, 0), (1000.001, 64), (1000.01, 900), (1001.0, 36))
    assert asked[-1] == 1500


def test_each_burst_counts_from_the_rest_before_it() -> None:
    """After a smaller burst less is asked for."""
    asked = used(
        Demand(0.1), (1000.0, 0), (1000.001, 64), (1001.0, 936), (1002.0, 200), (1003.0, 0)
    )
    assert asked[2:] == [1500, 300, 64]


def test_of_a_burst_longer_than_max_age_its_share_is_asked_for() -> None:
    """What lasts is no burst but use at a rate, and a block is not to outlive max_age."""
    steady = [(1000 + number / 20, 10_000) for number in range(1, 21)]
    asked = used(Demand(0.1), (1000.0, 0), *steady, (1002.0, 0))
    assert asked[-1] == 30_000


def test_a_block_that_did_not_come_begins_no_burst() -> None:
    """What was used is counted once, however often the daemon is asked in vain."""
    demand = Demand(0.1)
    used(demand, (1000.0, 0), (1000.05, 64))
    for number in range(10):
        demand.size(1, 1000, 1000.06 + number / 1000)
    assert used(demand, (1001.0, 1000)) == [1596]


def test_blocks_shrink_when_less_is_used() -> None:
    """After a burst, a slow user is down to the smallest blocks with the second rest."""
    asked = used(Demand(0.1), (1000.0, 0), (1000.01, 10_000), (1001.0, 1), (1002.0, 1))
    assert asked[1] > 10_000
    assert asked[-1] == 64


def test_demand_rises_again_after_a_pause() -> None:
    """What counts is the time since the last block, and not what came before."""
    demand = Demand(0.1)
    demand.came(1000.0)
    demand.size(1, 1, 2000.0)
    demand.came(2000.0)
    assert demand.size(1, 100, 2000.01) == pytest.approx(1000, abs=1)


def test_a_block_for_times_to_come_is_half_of_max_age_long_at_most() -> None:
    """A block is as old as its first tick, so a longer one would be too old before its end."""
    demand = Demand(0.01)
    demand.came(1000.0)
    assert demand.size(1, 100_000, 1000.001) == 50_000


def test_a_block_that_is_wanted_at_once_is_longer() -> None:
    """It is used up before it is too old."""
    assert Demand(0.01).size(1_000_000, 0, 1000.0) == 90_000


def test_a_block_is_no_longer_than_a_daemon_gives() -> None:
    """However long an id may lag, no more is asked for than one request may."""
    assert Demand(60.0).size(5_000_000, 0, 1000.0) == MAX_BLOCK


def test_without_any_age_each_block_is_of_one_tick() -> None:
    """With max_age=0 each id is a round trip, however many are wanted."""
    demand = Demand(0.0)
    demand.came(1000.0)
    assert demand.size(1000, 1000, 1000.001) == 1


def test_waiting_for_a_block_is_no_lack_of_demand() -> None:
    """A block may come late on a busy machine, and be used up at once; the next is no smaller."""
    demand = Demand(0.1)
    demand.size(1, 0, 1000.0)
    demand.came(1000.09)
    assert demand.size(1, 100, 1000.1) == pytest.approx(1000, abs=1)


def test_ids_used_within_a_moment_tell_of_no_more_than_a_round_trip_does() -> None:
    """A few drawn at once are no reason to ask for all that there is."""
    demand = Demand(0.1)
    demand.came(1000.0)
    assert demand.size(1, 10, 1000.0) == 10_000


@given(
    st.floats(0, 1e6),
    st.lists(st.tuples(st.integers(1, 10**9), st.integers(0, 10**7), st.floats(0, 1e6))),
)
def test_sizes_are_within_bounds(max_age: float, requests: list[tuple[int, int, float]]) -> None:
    """Whatever was used, a request is for 1 to a million ticks, and never outlives max_age."""
    demand = Demand(max_age)
    now = 0.0
    for needed, used, pause in requests:
        now += pause
        size = demand.size(needed, used, now)
        demand.came(now)
        assert 1 <= size <= MAX_BLOCK
        assert size == 1 or size <= max_age * 10_000_000 * AT_ONCE
