"""Which lane serves, and what it gives."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

MUTATIONS = [
    Mutation(
        "short-from-whole-lane",
        "small callers take the room of the large",
        "Generation.take",
        "... if whole and count > 1 else 0",
        "... if whole and count > 1 else 1",
        ("test_generation",),
    ),
    Mutation(
        "whole-from-lane-0",
        "large callers take the room of the small",
        "Generation._with_room",
        "range(1, LANES)",
        "range(LANES)",
        ("test_generation",),
    ),
    Mutation(
        "two-lanes-one-clock-seq",
        "two lanes give the same ids",
        "Generation.take",
        "self.number << LANE_BITS | index",
        "self.number << LANE_BITS | index & ~1",
        ("test_generation",),
    ),
    Mutation(
        "generations-share-clock-seqs",
        "two generations give the same ids",
        "Generation.take",
        "self.number << LANE_BITS | index",
        "self.number << LANE_BITS - 1 | index",
        ("test_generation",),
    ),
    Mutation(
        "lane-not-moved",
        "the same ticks are given twice",
        "Lane.take",
        "self.next = end",
        "",
        ("test_lane",),
    ),
    Mutation(
        "lane-moved-too-little",
        "the last tick of a grant is given twice",
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
        ("test_lane",),
    ),
    Mutation(
        "refusal-moves-lane",
        "a refused request turns the lane back",
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
        ("test_lane",),
    ),
    Mutation(
        "grant-past-now",
        "an id is of the future",
        "Lane.take",
        "end = now + 1",
        "end = now + 2",
        ("test_lane",),
    ),
    Mutation(
        "grant-before-next",
        "ticks that were given are given again",
        "Lane.take",
        """
        if first < self.next:
            first = self.next
        """,
        "",
        ("test_lane",),
    ),
    Mutation(
        "whole-grant-cut-short",
        "libuuid's callers use ticks that they were not given",
        "Generation._with_room",
        "latest_begin = now - count + 1",
        "latest_begin = now",
        ("test_generation",),
    ),
    Mutation(
        "whole-steady-grant-cut-short",
        "fewer ids are made than were asked for",
        "Steady.take",
        "self.next > steady - count + 1",
        "self.next > steady",
        ("test_steady",),
    ),
    Mutation(
        "order-forgotten-over-nodes",
        "ids fall where a volatile node begins or ends",
        "Utc.take",
        "self._short_next = block.first + block.count",
        "",
        ("test_utc",),
    ),
]
