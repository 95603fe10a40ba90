"""Which generation is opened, when, and from where on."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

MUTATIONS = [
    Mutation(
        "generation-not-opened",
        "after a step back the same generation goes on",
        "Utc._turn",
        "self._open_next(now, reason, back)",
        "self._open_number(self._number)",
        ("test_utc", "test_timeline_machine"),
    ),
    Mutation(
        "generation-opened-while-mark-past-now",
        "a generation is opened that can give nothing",
        "Utc._open_next",
        "self._mark(number) <= now",
        "self._mark(number) >= 0",
        ("test_utc", "test_timeline_machine"),
    ),
    Mutation(
        "generation-wraps-onto-used",
        "a generation opened again gives its ticks again",
        "Utc._open_number",
        "Generation(number, node=self.node.value, begin=self._mark(number))",
        "Generation(number, node=self.node.value, begin=0)",
        ("test_utc", "test_timeline_machine"),
    ),
    Mutation(
        "mark-of-left-generation-forgotten",
        "a generation opened again gives its ticks again",
        "Utc._turn",
        "self._marks[self._number] = self._open.top",
        "",
        ("test_utc", "test_timeline_machine"),
    ),
    Mutation(
        "marks-of-others-not-saved",
        "after a restart generations are used again",
        "Utc.begin_save",
        "marks = dict(self._marks)",
        "marks: dict[int, int] = {}",
        ("test_utc", "test_timeline_machine"),
    ),
    Mutation(
        "marks-of-others-not-loaded",
        "after a restart generations are used again",
        "Utc.__init__",
        "dict(loaded.marks)",
        "{loaded.generation: loaded.marks[loaded.generation]}",
        ("test_utc", "test_timeline_machine"),
    ),
    Mutation(
        "new-generation-before-its-save",
        "a new generation gives ticks that no state tells of",
        "Utc._horizon_of",
        "self._horizons.setdefault(number, Horizon())",
        """
        self._horizons.setdefault(
            number, Horizon(max((each.limit for each in self._horizons.values()), default=0))
        )
        """,
        ("test_utc", "test_timeline_machine"),
    ),
    Mutation(
        "floor-left-out",
        "under a fixed node a lost state brings old ticks back",
        "Utc._mark",
        "max(mark, self._floor) if self.node.fixed else mark",
        "mark",
        ("test_utc", "test_timeline_machine"),
    ),
    Mutation(
        "changed-node-unnoticed",
        "under another node lanes go on as if it were the same",
        "Utc.__init__",
        """
        if changed:
            ...
        elif ...:
            ...
        else:
            ...
        """,
        """
        if False:
            ...
        elif ...:
            ...
        else:
            ...
        """,
        ("test_utc", "test_timeline_machine"),
    ),
    Mutation(
        "libuuid-not-avoided",
        "libuuid's own ids and ours meet under one MAC",
        "Utc._open_next",
        "self._avoid() if self.node.fixed else None",
        "None",
        ("test_utc", "test_timeline_machine"),
    ),
    Mutation(
        "generation-not-random",
        "two hosts that lost their state begin alike",
        "Utc.__init__",
        "random(GENERATIONS.bit_length() - 1) % ring",
        "0",
        ("test_utc", "test_timeline_machine"),
    ),
    Mutation(
        "volatile-node-is-the-stored-one",
        "ids that no state tells of have the stored node",
        "Volatile._draw",
        "random_node(self._random)",
        "random_node(lambda bits: 0)",
        ("test_volatile",),
    ),
]
