"""Generations: which one is opened, when, and from which tick on."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

MUTATIONS = [
    Mutation(
        "generation-not-opened",
        "after a step back the same generation goes on",
        "Utc.switch",
        'self._open_next(now, "UTC stepped back", back, avoid)',
        "self._open_number(self._number)",
        ("test_a_clock_set_back_opens_the_next_generation",),
    ),
    Mutation(
        "generation-opened-while-mark-past-now",
        "a generation is opened that can give nothing",
        "Utc._open_next",
        "self._mark(number) <= now",
        "self._mark(number) >= 0",
        (
            "test_a_mark_counts_when_the_node_changes_to_a_fixed_one",
            "test_a_generation_is_opened_again_from_its_mark_on",
        ),
    ),
    Mutation(
        "generation-wraps-onto-used",
        "a generation opened again gives its ticks again",
        "Utc._open_number",
        "Generation(number, node=self.node.value, begin=self._mark(number))",
        "Generation(number, node=self.node.value, begin=0)",
        (
            "test_after_a_clean_stop_the_same_generation_goes_on",
            "test_a_lost_state_brings_no_old_ticks_back_under_a_fixed_node",
        ),
    ),
    Mutation(
        "mark-of-left-generation-forgotten",
        "a generation opened again gives its ticks again",
        "Utc.switch",
        "self._marks[self._number] = self._open.top",
        "",
        ("test_the_generation_left_behind_keeps_its_highest_next_as_mark",),
    ),
    Mutation(
        "marks-of-others-not-saved",
        "after a restart generations are used again",
        "Utc.begin_save",
        "marks = dict(self._marks)",
        "marks: dict[int, int] = {}",
        ("test_a_changed_node_opens_the_next_generation_and_keeps_the_marks",),
    ),
    Mutation(
        "marks-of-others-not-loaded",
        "after a restart generations are used again",
        "Utc.__init__",
        "dict(loaded.marks)",
        "{loaded.generation: loaded.marks[loaded.generation]}",
        (
            "test_a_generation_is_opened_again_from_its_mark_on",
            "test_a_changed_node_opens_the_next_generation_and_keeps_the_marks",
        ),
    ),
    Mutation(
        "new-generation-before-its-save",
        "a new generation gives out ticks that no saved state covers",
        "Utc._horizon_of",
        "self._horizons.setdefault(number, Horizon())",
        """
        self._horizons.setdefault(
            number, Horizon(max((each.limit for each in self._horizons.values()), default=0))
        )
        """,
        (
            "test_a_new_generation_gives_nothing_before_its_own_save",
            "test_a_clock_set_back_opens_the_next_generation",
        ),
    ),
    Mutation(
        "floor-left-out",
        "under a fixed node a lost state brings old ticks back",
        "Utc._mark",
        "max(mark, self._floor) if self.node.fixed else mark",
        "mark",
        (
            "test_a_lost_state_brings_no_old_ticks_back_under_a_fixed_node",
            "test_a_floor_past_a_mark_is_where_lanes_begin",
        ),
    ),
    Mutation(
        "changed-node-unnoticed",
        "under another node lanes go on as if it were the same",
        "Utc.__init__",
        """
        if loaded is None:
            ...
        elif changed:
            ...
        elif past > 0:
            ...
        else:
            ...
        """,
        """
        if loaded is None:
            ...
        elif False:
            ...
        elif past > 0:
            ...
        else:
            ...
        """,
        (
            "test_a_changed_node_opens_the_next_generation_and_keeps_the_marks",
            "test_a_host_known_by_another_machine_id_draws_a_new_node",
        ),
    ),
    Mutation(
        "libuuid-not-avoided",
        "libuuid's own ids and ours meet under one MAC",
        "Utc._open_next",
        "self.node.fixed and avoid is not None",
        "False",
        ("test_a_fixed_node_keeps_away_from_another_programs_clock_sequence",),
    ),
    Mutation(
        "generation-not-random",
        "two hosts that lost their state begin with the same generation",
        "Utc.__init__",
        "random(GENERATIONS.bit_length() - 1) % ring",
        "0",
        (
            "test_without_a_state_the_generation_is_random",
            "test_after_the_first_save_ticks_are_given",
        ),
    ),
    Mutation(
        "volatile-node-is-the-stored-one",
        "ids that no saved state covers have the stored node",
        "Volatile._draw",
        "random_node(self._random)",
        "random_node(lambda bits: 0)",
        (
            "test_node_and_generation_are_random",
            "test_volatile.test_whole_blocks_have_lanes_of_their_own",
        ),
    ),
]
