from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uuidd.core.timeline.generation import BLOCK_LANES, GENERATIONS, LANES, Generation, Lane
from uuidd.core.timeline.outcomes import Block, NoneFree

NODE = 0x9F6BDECED846


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
    lane = Lane(begin)
    assert lane.take(count, now=1000, not_before=not_before) == block
    assert lane.next == 1001


@pytest.mark.parametrize(
    ("now", "not_before", "wait"), [(1000, 0, 1), (990, 0, 11), (1001, 1005, 4)]
)
def test_a_refusal_says_how_long_to_wait_and_moves_nothing(
    now: int, not_before: int, wait: int
) -> None:
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


def opened(begin: int = 0) -> Generation:
    return Generation(5, node=NODE, begin=begin)


def nexts(generation: Generation) -> list[int]:
    """The first free tick of each lane."""
    return [lane.next for lane in generation.lanes]


def test_generations_and_lanes_fill_the_clock_sequence() -> None:
    assert GENERATIONS * LANES == 1 << 14
    assert opened().clock_seq == 5 * LANES


@pytest.mark.parametrize(
    ("count", "whole", "lane"), [(10, False, 0), (10, True, 1), (1, False, 0), (1, True, 0)]
)
def test_whole_blocks_have_lanes_of_their_own(count: int, whole: bool, lane: int) -> None:
    generation = opened()
    block = generation.take(count, now=1000, whole=whole)
    assert block == Block(1001 - count, count, 5 * LANES + lane, NODE)
    assert [number for number, end in enumerate(nexts(generation)) if end] == [lane]


def test_the_lowest_lane_with_room_serves() -> None:
    """Small whole blocks fill the lower lanes, so that the upper ones keep room for large ones."""
    generation = opened()
    generation.take(500, now=1000, whole=True)
    assert generation.take(10, now=1005, whole=True).clock_seq == 5 * LANES + 2
    assert generation.take(5, now=1005, whole=True).clock_seq == 5 * LANES + 1


def test_15_whole_blocks_are_served_side_by_side() -> None:
    generation = opened()
    blocks = [generation.take(1001, now=1000, whole=True) for _ in range(15)]
    assert [block.clock_seq for block in blocks] == [5 * LANES + lane for lane in range(1, 16)]
    assert {(block.first, block.count) for block in blocks} == {(0, 1001)}


def test_a_whole_block_is_never_cut_short() -> None:
    assert opened(begin=991).take(10, now=1000, whole=True).first == 991
    with pytest.raises(NoneFree) as caught:
        opened(begin=991).take(11, now=1000, whole=True)
    assert caught.value.wait == 1


def test_a_whole_block_waits_for_the_lane_that_is_free_first() -> None:
    """The wait is the shortest of the whole lanes', lane 0 not among them."""
    generation = opened(begin=900)
    for count in range(101, 86, -1):
        generation.take(count, now=1000, whole=True)
    generation.lanes[9].next = 960
    with pytest.raises(NoneFree) as caught:
        generation.take(50, now=1000, whole=True)
    assert caught.value.wait == 9


@pytest.mark.parametrize("whole", [False, True])
def test_a_refusal_moves_no_lane(whole: bool) -> None:
    generation = opened(begin=1001)
    with pytest.raises(NoneFree):
        generation.take(10, now=1000, whole=whole)
    assert nexts(generation) == [1001] * BLOCK_LANES
    assert generation.top == 1001


def test_top_is_the_highest_next_of_any_lane() -> None:
    generation = opened(begin=10)
    generation.take(10, now=1000, whole=True)
    assert generation.top == 1001
    generation.take(10, now=900, whole=False)
    assert generation.top == 1001


def test_only_short_blocks_may_have_to_begin_later() -> None:
    assert opened().take(10, now=1000, whole=False, not_before=996).first == 996
    assert opened().take(10, now=1000, whole=True, not_before=1001).first == 991
    with pytest.raises(NoneFree):
        opened().take(1, now=1000, whole=True, not_before=1001)


def test_lanes_since_counts_what_was_given_out_at_or_past_a_tick() -> None:
    """Where a lane began is no tick of it."""
    generation = opened(begin=900)
    generation.take(10, now=1000, whole=False)
    generation.take(10, now=1005, whole=True)
    assert [generation.lanes_since(tick) for tick in (1006, 1005, 1000, 10)] == [0, 1, 2, 2]
