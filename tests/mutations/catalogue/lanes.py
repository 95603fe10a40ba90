"""Which lane serves, and what it gives."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

LANE = "uuidd/core/timeline/lane.py"
GENERATION = "uuidd/core/timeline/generation.py"
UTC = "uuidd/core/timeline/utc.py"
LANE_TESTS = ("tests/core/test_lane.py",)
TESTS = ("tests/core/test_generation.py",)

_REFUSE = "        if first > now:\n            raise NoneFree(first - now)\n"
_MOVE = "        self.next = end\n"

MUTATIONS = [
    Mutation(
        "short-from-whole-lane",
        "small callers take the room of the large",
        GENERATION,
        "if whole and count > 1 else 0",
        "if whole and count > 1 else 1",
        TESTS,
    ),
    Mutation(
        "whole-from-lane-0",
        "large callers take the room of the small",
        GENERATION,
        "for index in range(1, LANES):",
        "for index in range(LANES):",
        TESTS,
    ),
    Mutation(
        "two-lanes-one-clock-seq",
        "two lanes give the same ids",
        GENERATION,
        "self.number << LANE_BITS | index, self.node",
        "self.number << LANE_BITS | index & ~1, self.node",
        TESTS,
    ),
    Mutation(
        "generations-share-clock-seqs",
        "two generations give the same ids",
        GENERATION,
        "return Block(first, given, self.number << LANE_BITS | index,",
        "return Block(first, given, self.number << LANE_BITS - 1 | index,",
        TESTS,
    ),
    Mutation(
        "lane-not-moved",
        "the same ticks are given twice",
        LANE,
        "        self.next = end\n",
        "",
        LANE_TESTS,
    ),
    Mutation(
        "lane-moved-too-little",
        "the last tick of a grant is given twice",
        LANE,
        "        self.next = end\n",
        "        self.next = now\n",
        LANE_TESTS,
    ),
    Mutation(
        "refusal-moves-lane",
        "a refused request turns the lane back",
        LANE,
        _REFUSE + _MOVE,
        _MOVE + _REFUSE,
        LANE_TESTS,
    ),
    Mutation(
        "grant-past-now",
        "an id is of the future",
        LANE,
        "end = now + 1",
        "end = now + 2",
        LANE_TESTS,
    ),
    Mutation(
        "grant-before-next",
        "ticks that were given are given again",
        LANE,
        "        if first < self.next:\n            first = self.next\n",
        "",
        LANE_TESTS,
    ),
    Mutation(
        "whole-grant-cut-short",
        "libuuid's callers use ticks that they were not given",
        GENERATION,
        "if self.lanes[index].next <= latest_begin:",
        "if self.lanes[index].next <= now:",
        TESTS,
    ),
    Mutation(
        "whole-steady-grant-cut-short",
        "fewer ids are made than were asked for",
        "uuidd/core/timeline/steady.py",
        "if whole and self.next > steady - count + 1:",
        "if whole and self.next > steady:",
        ("tests/core/test_steady.py",),
    ),
    Mutation(
        "order-forgotten-over-nodes",
        "ids fall where a volatile node begins or ends",
        UTC,
        "            self._short_next = block.first + block.count\n",
        "            pass\n",
        ("tests/core/test_utc.py",),
    ),
]
