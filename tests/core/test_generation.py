from __future__ import annotations

import pytest

from uuidd.core.timeline import GENERATIONS, LANES, Block, Generation, NoneFree

NODE = 0x9F6BDECED846


def opened(begin: int = 0) -> Generation:
    """Generation 5 of NODE."""
    return Generation(5, node=NODE, begin=begin)


def nexts(generation: Generation) -> list[int]:
    """Where each lane stands."""
    return [lane.next for lane in generation.lanes]


def test_generations_and_lanes_fill_the_clock_sequence() -> None:
    """10 bits of generation and 4 of lane are the 14 of a clock sequence."""
    assert GENERATIONS * LANES == 1 << 14


def test_short_grants_come_from_lane_0() -> None:
    """A short grant's clock sequence is the generation's lowest."""
    assert opened().take(10, now=1000, whole=False) == Block(991, 10, 5 * 16, NODE)


def test_whole_grants_come_from_lane_1_up() -> None:
    """A whole grant leaves lane 0 alone."""
    generation = opened()
    assert generation.take(10, now=1000, whole=True) == Block(991, 10, 5 * 16 + 1, NODE)
    assert generation.lanes[0].next == 0


def test_a_single_whole_tick_comes_from_lane_0() -> None:
    """One tick is whole by nature, so it takes no whole lane's room."""
    assert opened().take(1, now=1000, whole=True) == Block(1000, 1, 5 * 16, NODE)


def test_the_lowest_lane_with_room_serves() -> None:
    """Small whole grants fill the lower lanes, so that the upper ones keep room for large ones."""
    generation = opened()
    generation.take(500, now=1000, whole=True)
    assert generation.take(10, now=1005, whole=True).clock_seq == 5 * 16 + 2
    assert generation.take(5, now=1005, whole=True).clock_seq == 5 * 16 + 1


def test_15_whole_grants_of_all_time_are_served_side_by_side() -> None:
    """Each whole lane can give the same ticks once, each under its own clock sequence."""
    generation = opened()
    blocks = [generation.take(1001, now=1000, whole=True) for _ in range(15)]
    assert {block.clock_seq for block in blocks} == {5 * 16 + lane for lane in range(1, 16)}
    assert {(block.first, block.count) for block in blocks} == {(0, 1001)}


def test_whole_is_refused_when_no_lane_has_room() -> None:
    """A whole grant is never cut short; the wait is until the first lane has room."""
    generation = opened(begin=991)
    with pytest.raises(NoneFree) as caught:
        generation.take(11, now=1000, whole=True)
    assert caught.value.wait == 1
    assert generation.take(11, now=1001, whole=True).first == 991


def test_whole_takes_a_lane_with_exactly_enough_room() -> None:
    """A lane whose free ticks are as many as asked has room."""
    assert opened(begin=991).take(10, now=1000, whole=True) == Block(991, 10, 5 * 16 + 1, NODE)


def test_whole_waits_for_the_lane_that_is_free_first() -> None:
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
    """After NoneFree every lane, and the top, stand where they stood."""
    generation = opened(begin=1001)
    before = nexts(generation)
    with pytest.raises(NoneFree):
        generation.take(10, now=1000, whole=whole)
    assert nexts(generation) == before
    assert generation.top == 1001


def test_all_lanes_begin_at_begin() -> None:
    """Below *begin* another opening of the same generation may have given out ticks."""
    assert nexts(opened(begin=1000)) == [1000] * LANES
    assert opened(begin=1000).take(50, now=1009, whole=False).first == 1000


def test_top_is_the_highest_next_of_any_lane() -> None:
    """A whole lane ahead of lane 0 counts, and a later, lower grant does not bring top down."""
    generation = opened(begin=10)
    assert generation.top == 10
    generation.take(10, now=1000, whole=True)
    assert generation.top == 1001
    generation.take(10, now=900, whole=False)
    assert generation.top == 1001


def test_short_grants_may_have_to_begin_later() -> None:
    """Of lane 0 no tick before *not_before* is given."""
    assert opened().take(10, now=1000, whole=False, not_before=996).first == 996


def test_whole_grants_need_not_begin_later() -> None:
    """The whole lanes keep their room: *not_before* is for short grants."""
    assert opened().take(10, now=1000, whole=True, not_before=1001).first == 991


def test_a_single_whole_tick_keeps_the_order_of_short_grants() -> None:
    """It comes from lane 0, so it may have to begin later too."""
    with pytest.raises(NoneFree):
        opened().take(1, now=1000, whole=True, not_before=1001)


def test_its_clock_sequence_is_lane_0s() -> None:
    """The other lanes' follow it."""
    assert opened().clock_seq == opened().take(1, now=1, whole=False).clock_seq == 5 * 16


def test_lanes_since_counts_what_was_given_at_or_past_a_tick() -> None:
    """A lane counts when a tick that it gave out is at or past the one asked about."""
    generation = opened()
    generation.take(10, now=1000, whole=False)
    generation.take(10, now=1005, whole=True)
    assert generation.lanes_since(1006) == 0
    assert generation.lanes_since(1005) == 1
    assert generation.lanes_since(1000) == 2


def test_lanes_since_does_not_count_lanes_that_gave_nothing() -> None:
    """Where the lanes began is nothing that they gave out."""
    assert opened(begin=1000).lanes_since(10) == 0
