"""Which generation is opened, when, and from where on."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

UTC = "uuidd/core/timeline/utc.py"
TESTS = ("tests/core/test_utc.py", "tests/core/test_timeline_machine.py")

MUTATIONS = [
    Mutation(
        "generation-not-opened",
        "after a step back the same generation goes on",
        UTC,
        "        self._open_next(now, reason, back)\n",
        "        self._open_number(self._number)\n",
        TESTS,
    ),
    Mutation(
        "generation-opened-while-mark-past-now",
        "a generation is opened that can give nothing",
        UTC,
        "            if self._mark(number) <= now:\n",
        "            if self._mark(number) >= 0:\n",
        TESTS,
    ),
    Mutation(
        "generation-wraps-onto-used",
        "a generation opened again gives its ticks again",
        UTC,
        "begin=self._mark(number))",
        "begin=0)",
        TESTS,
    ),
    Mutation(
        "mark-of-left-generation-forgotten",
        "a generation opened again gives its ticks again",
        UTC,
        "            self._marks[self._number] = self._open.top\n",
        "",
        TESTS,
    ),
    Mutation(
        "marks-of-others-not-saved",
        "after a restart generations are used again",
        UTC,
        "        marks = dict(self._marks)\n",
        "        marks: dict[int, int] = {}\n",
        TESTS,
    ),
    Mutation(
        "marks-of-others-not-loaded",
        "after a restart generations are used again",
        UTC,
        "        self._marks = dict(loaded.marks)\n",
        "        self._marks = {loaded.generation: loaded.marks[loaded.generation]}\n",
        TESTS,
    ),
    Mutation(
        "new-generation-before-its-save",
        "a new generation gives ticks that no state tells of",
        UTC,
        "limit = self._saved.get(self._number, 0)",
        "limit = self._saved.get(self._number, max(self._saved.values(), default=0))",
        TESTS,
    ),
    Mutation(
        "floor-left-out",
        "under a fixed node a lost state brings old ticks back",
        UTC,
        "return max(mark, self._floor) if self.node.fixed else mark",
        "return mark",
        TESTS,
    ),
    Mutation(
        "changed-node-unnoticed",
        "under another node lanes go on as if it were the same",
        UTC,
        "        if changed:\n            self._open_next",
        "        if not changed and past > now:\n            self._open_next",
        TESTS,
    ),
    Mutation(
        "libuuid-not-avoided",
        "libuuid's own ids and ours meet under one MAC",
        UTC,
        "used = self._avoid() if self.node.fixed else None",
        "used = None",
        TESTS,
    ),
    Mutation(
        "generation-not-random",
        "two hosts that lost their state begin alike",
        UTC,
        "self._number = random(GENERATIONS.bit_length() - 1) % ring",
        "self._number = 0",
        TESTS,
    ),
    Mutation(
        "volatile-node-is-the-stored-one",
        "ids that no state tells of have the stored node",
        "uuidd/core/timeline/volatile.py",
        "node=random_node(self._random).value",
        "node=random_node(lambda bits: 0).value",
        ("tests/core/test_volatile.py",),
    ),
]
