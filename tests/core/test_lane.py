from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uuidd.core.timeline import Lane, NoneFree


@pytest.mark.parametrize(
    ("begin", "count", "not_before", "block"),
    [
        pytest.param(0, 10, 0, (991, 10), id="the latest of many"),
        pytest.param(0, 1, 0, (1000, 1), id="now itself"),
        pytest.param(995, 10, 0, (995, 6), id="fewer than asked for"),
        pytest.param(991, 10, 0, (991, 10), id="exactly what is free"),
        pytest.param(1000, 10, 0, (1000, 1), id="one left"),
        pytest.param(0, 10, 997, (997, 4), id="not before a tick"),
        pytest.param(998, 10, 5, (998, 3), id="not before a tick that is gone"),
    ],
)
def test_a_lane_gives_out_the_latest_free_ticks(
    begin: int, count: int, not_before: int, block: tuple[int, int]
) -> None:
    """They end at now, and begin neither before what is free nor before *not_before*."""
    assert Lane(begin).take(count, now=1000, not_before=not_before) == block


def test_the_next_ticks_begin_where_the_last_ones_ended() -> None:
    """The tick after the last one is free, and those before it that were passed over are not."""
    lane = Lane(0)
    lane.take(10, now=1000)
    assert lane.next == 1001
    assert lane.take(100, now=1003) == (1001, 3)


@pytest.mark.parametrize(
    ("now", "not_before", "wait"), [(1000, 0, 1), (990, 0, 11), (1001, 1005, 4)]
)
def test_a_refusal_says_how_long_to_wait_and_moves_nothing(
    now: int, not_before: int, wait: int
) -> None:
    """After that wait there is a tick, and not one sooner."""
    lane = Lane(1001)
    with pytest.raises(NoneFree, match=f"{wait} ticks") as caught:
        lane.take(5, now=now, not_before=not_before)
    assert (caught.value.wait, lane.next) == (wait, 1001)
    assert lane.take(5, now=now + wait, not_before=not_before)[1] == 1


@given(
    st.integers(0, 300),
    st.lists(st.tuples(st.integers(1, 40), st.integers(0, 400)), max_size=40),
)
def test_no_tick_leaves_a_lane_twice(begin: int, requests: list[tuple[int, int]]) -> None:
    """Whatever is asked and however the clock moves, ticks rise and end by now."""
    lane = Lane(begin)
    free = begin
    for count, now in requests:
        try:
            first, given_count = lane.take(count, now=now)
        except NoneFree:
            assert now < free
            continue
        assert free <= first
        assert 1 <= given_count <= count
        assert first + given_count - 1 <= now
        assert first == free or given_count == count
        free = first + given_count
