from __future__ import annotations

import pytest

from uuidd.core.timeline import GENERATIONS, LANES, Block, Generation, NoneFree
from uuidd.core.timeline.generation import BLOCK_LANES

NODE = 0x9F6BDECED846


def opened(begin: int = 0) -> Generation:
    """Generation 5 of NODE."""
    return Generation(5, node=NODE, begin=begin)


def nexts(generation: Generation) -> list[int]:
    """The first free tick of each lane."""
    return [lane.next for lane in generation.lanes]


def test_generations_and_lanes_fill_the_clock_sequence() -> None:
    """6 bits of generation and 8 of lane are the 14 of a clock sequence."""
    assert GENERATIONS * LANES == 1 << 14
    assert opened().clock_seq == 5 * LANES


@pytest.mark.parametrize(
    ("count", "whole", "lane"), [(10, False, 0), (10, True, 1), (1, False, 0), (1, True, 0)]
)
def test_whole_blocks_have_lanes_of_their_own(count: int, whole: bool, lane: int) -> None:
    """Short blocks, and single ticks, come from lane 0, and all others leave it alone."""
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
    """Each whole lane can give out the same ticks, each under its own clock sequence."""
    generation = opened()
    blocks = [generation.take(1001, now=1000, whole=True) for _ in range(15)]
    assert {block.clock_seq for block in blocks} == {5 * LANES + lane for lane in range(1, 16)}
    assert {(block.first, block.count) for block in blocks} == {(0, 1001)}


def test_a_whole_block_is_never_cut_short() -> None:
    """A lane with exactly enough room serves; with less, the wait is until there is enough."""
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
    """After NoneFree every lane, and the top, are where they were."""
    generation = opened(begin=1001)
    with pytest.raises(NoneFree):
        generation.take(10, now=1000, whole=whole)
    assert nexts(generation) == [1001] * BLOCK_LANES
    assert generation.top == 1001


def test_top_is_the_highest_next_of_any_lane() -> None:
    """A whole lane ahead of lane 0 counts, and a later, lower block does not bring top down."""
    generation = opened(begin=10)
    generation.take(10, now=1000, whole=True)
    assert generation.top == 1001
    generation.take(10, now=900, whole=False)
    assert generation.top == 1001


def test_only_short_blocks_may_have_to_begin_later() -> None:
    """*not_before* is for lane 0; the whole lanes keep their room."""
    assert opened().take(10, now=1000, whole=False, not_before=996).first == 996
    assert opened().take(10, now=1000, whole=True, not_before=1001).first == 991
    with pytest.raises(NoneFree):
        opened().take(1, now=1000, whole=True, not_before=1001)


def test_lanes_since_counts_what_was_given_out_at_or_past_a_tick() -> None:
    """A lane counts if it gave out a tick at or past that one; where it began is no tick of it."""
    generation = opened(begin=900)
    generation.take(10, now=1000, whole=False)
    generation.take(10, now=1005, whole=True)
    assert [generation.lanes_since(tick) for tick in (1006, 1005, 1000, 10)] == [0, 1, 2, 2]
