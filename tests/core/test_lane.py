from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uuidd.core.timeline import Lane, NoneFree


def test_a_lane_gives_the_latest_ticks() -> None:
    """With more free than asked, the grant ends at now."""
    assert Lane(0).take(10, now=1000) == (991, 10)


def test_a_lane_gives_the_present_tick_for_one() -> None:
    """A single tick is now itself."""
    assert Lane(0).take(1, now=1000) == (1000, 1)


def test_a_grant_is_shorter_when_fewer_are_free() -> None:
    """Asked for more than is free, a lane gives what is free and nothing past now."""
    assert Lane(995).take(10, now=1000) == (995, 6)


def test_a_grant_may_be_exactly_what_is_free() -> None:
    """A lane gives its last free tick too."""
    assert Lane(991).take(10, now=1000) == (991, 10)


def test_a_lane_that_begins_at_now_gives_one_tick() -> None:
    """Now itself is free as long as it was not given out."""
    assert Lane(1000).take(10, now=1000) == (1000, 1)


def test_the_next_grant_begins_where_the_last_one_ended() -> None:
    """The tick after the last one given is free, and no earlier one is."""
    lane = Lane(0)
    lane.take(10, now=1000)
    assert lane.next == 1001
    assert lane.take(10, now=1003) == (1001, 3)


def test_what_a_lane_skipped_stays_skipped() -> None:
    """A lane only moves up: the ticks before the latest ones are never given out later."""
    lane = Lane(0)
    lane.take(1, now=1000)
    assert lane.take(100, now=1001) == (1001, 1)


def test_a_grant_may_have_to_begin_later() -> None:
    """Of the free ticks none before *not_before* is given."""
    assert Lane(0).take(10, now=1000, not_before=997) == (997, 4)


def test_not_before_brings_no_tick_back() -> None:
    """A lane that is past *not_before* goes on where it is."""
    assert Lane(998).take(10, now=1000, not_before=5) == (998, 3)


def test_nothing_is_free_before_not_before() -> None:
    """A *not_before* past now is waited for, and the lane stands where it stood."""
    lane = Lane(0)
    with pytest.raises(NoneFree) as caught:
        lane.take(10, now=1000, not_before=1001)
    assert caught.value.wait == 1
    assert lane.next == 0


def test_nothing_is_free_while_the_clock_stands() -> None:
    """A lane that gave out now gives nothing until the clock moves: one tick of wait."""
    lane = Lane(0)
    lane.take(1, now=1000)
    with pytest.raises(NoneFree, match="1 ticks") as caught:
        lane.take(1, now=1000)
    assert caught.value.wait == 1


def test_nothing_is_free_after_a_step_back() -> None:
    """The wait is until the clock is where the lane got to."""
    lane = Lane(0)
    lane.take(1, now=1000)
    with pytest.raises(NoneFree) as caught:
        lane.take(5, now=990)
    assert caught.value.wait == 11


def test_a_refusal_moves_nothing() -> None:
    """After NoneFree a lane stands where it stood."""
    lane = Lane(1001)
    with pytest.raises(NoneFree):
        lane.take(5, now=990)
    assert lane.next == 1001


def test_after_the_wait_there_is_a_tick() -> None:
    """The wait of a refusal is long enough, and not a tick longer than needed."""
    lane = Lane(1001)
    with pytest.raises(NoneFree) as caught:
        lane.take(5, now=990)
    assert lane.take(5, now=990 + caught.value.wait) == (1001, 1)


@given(
    st.integers(0, 300),
    st.lists(st.tuples(st.integers(1, 40), st.integers(0, 400)), max_size=40),
)
def test_no_tick_leaves_a_lane_twice(begin: int, requests: list[tuple[int, int]]) -> None:
    """Whatever is asked and however the clock moves, grants rise and end by now."""
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
