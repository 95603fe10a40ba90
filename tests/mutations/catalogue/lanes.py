"""Lanes: which one serves, and what it gives out."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

MUTATIONS = [
    Mutation(
        "short-from-whole-lane",
        "small requests take the room of large ones",
        "Generation.take",
        "... if whole and count > 1 else 0",
        "... if whole and count > 1 else 1",
        (
            "test_only_short_blocks_may_have_to_begin_later",
            "test_generation.test_whole_blocks_have_lanes_of_their_own",
        ),
    ),
    Mutation(
        "whole-from-lane-0",
        "large requests take the room of small ones",
        "Generation._with_room",
        "range(1, LANES)",
        "range(LANES)",
        (
            "test_only_short_blocks_may_have_to_begin_later",
            "test_a_whole_block_waits_for_the_lane_that_is_free_first",
        ),
    ),
    Mutation(
        "two-lanes-one-clock-seq",
        "two lanes give the same ids",
        "Generation.take",
        "self.number << LANE_BITS | index",
        "self.number << LANE_BITS | index & ~1",
        (
            "test_generation.test_whole_blocks_have_lanes_of_their_own",
            "test_15_whole_blocks_are_served_side_by_side",
        ),
    ),
    Mutation(
        "generations-share-clock-seqs",
        "two generations give the same ids",
        "Generation.take",
        "self.number << LANE_BITS | index",
        "self.number << LANE_BITS - 1 | index",
        (
            "test_generation.test_whole_blocks_have_lanes_of_their_own",
            "test_15_whole_blocks_are_served_side_by_side",
        ),
    ),
    Mutation(
        "lane-not-moved",
        "the same ticks are given out twice",
        "Lane.take",
        "self.next = end",
        "",
        (
            "test_the_next_ticks_begin_where_the_last_ones_ended",
            "test_no_tick_leaves_a_lane_twice",
        ),
    ),
    Mutation(
        "lane-moved-too-little",
        "the last tick of a block is given out twice",
        "Lane.take",
        """
        first = end - count
        if first < self.next:
            first = self.next
        if first < not_before:
            first = not_before
        if first > now:
            raise NoneFree(first - now)
        self.next = end
        """,
        """
        first = end - count
        if first < self.next:
            first = self.next
        if first < not_before:
            first = not_before
        if first > now:
            raise NoneFree(first - now)
        self.next = now
        """,
        (
            "test_the_next_ticks_begin_where_the_last_ones_ended",
            "test_no_tick_leaves_a_lane_twice",
        ),
    ),
    Mutation(
        "refusal-moves-lane",
        "a refused request uses up ticks",
        "Lane.take",
        """
        if first > now:
            raise NoneFree(first - now)
        self.next = end
        """,
        """
        self.next = end
        if first > now:
            raise NoneFree(first - now)
        """,
        (
            "test_a_refusal_says_how_long_to_wait_and_moves_nothing",
            "test_generation.test_a_refusal_moves_no_lane",
        ),
    ),
    Mutation(
        "block-past-now",
        "an id lies in the future",
        "Lane.take",
        "end = now + 1",
        "end = now + 2",
        ("test_a_lane_gives_out_the_latest_free_ticks", "test_no_tick_leaves_a_lane_twice"),
    ),
    Mutation(
        "block-before-next",
        "ticks that were given out are given out again",
        "Lane.take",
        """
        if first < self.next:
            first = self.next
        """,
        "",
        (
            "test_a_lane_gives_out_the_latest_free_ticks",
            "test_no_tick_leaves_a_lane_twice",
        ),
    ),
    Mutation(
        "whole-block-cut-short",
        "libuuid's callers use ticks that they were not given",
        "Generation._with_room",
        "latest_begin = now - count + 1",
        "latest_begin = now",
        (
            "test_a_whole_block_is_never_cut_short",
            "test_a_whole_block_waits_for_the_lane_that_is_free_first",
        ),
    ),
    Mutation(
        "whole-steady-block-cut-short",
        "fewer ids are made than were asked for",
        "Steady.take",
        "self.next > steady - count + 1",
        "self.next > steady",
        ("test_a_whole_block_is_all_or_nothing",),
    ),
    Mutation(
        "order-forgotten-over-nodes",
        "ids fall where a volatile node begins or ends",
        "Utc.take",
        "self._short_next = block.first + block.count",
        "",
        (
            "test_a_completed_save_ends_the_volatile_node",
            "test_short_blocks_rise_when_the_volatile_node_ends_at_the_same_tick",
        ),
    ),
]
