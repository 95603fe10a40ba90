"""Horizon: ids given out past what the disk knows."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

MUTATIONS = [
    Mutation(
        "horizon-off-by-one",
        "the tick of the mark itself is given out, and again after a crash",
        "Utc.take",
        "now >= self._horizon.limit",
        "now > self._horizon.limit",
        ("test_utc.test_a_refused_request_moves_no_lane",),
    ),
    Mutation(
        "horizon-not-honoured",
        "ids go on past what was saved",
        "Utc.take",
        "now >= self._horizon.limit",
        "False",
        (
            "test_a_new_generation_gives_nothing_before_its_own_save",
            "test_utc.test_a_refused_request_moves_no_lane",
        ),
    ),
    Mutation(
        "horizon-without-reach",
        "a save lets nothing be given out",
        "Utc.begin_save",
        "top if self._closed else max(top, now + lead)",
        "top",
        ("test_whole_blocks_are_exact_and_aside", "test_a_save_holds_a_horizon_past_now"),
    ),
    Mutation(
        "horizon-before-save",
        "ids are given out past a mark that is not on the disk yet",
        "Utc.begin_save",
        "self._horizon_of(number).begin_save(mark)",
        "self._horizon_of(number).end_save(mark, completed=True)",
        (
            "test_a_completed_save_moves_the_horizon",
            "test_a_new_generation_gives_nothing_before_its_own_save",
        ),
    ),
    Mutation(
        "horizon-above-save-under-way",
        "ids are given past a lower mark that is being written",
        "Horizon.begin_save",
        "self.limit = min(self.saved, lowest)",
        "self.limit = self.saved",
        (
            "test_a_failed_save_counts_until_one_completes",
            "test_a_lower_mark_counts_as_soon_as_its_save_begins",
        ),
    ),
    Mutation(
        "steady-horizon-off-by-one",
        "the tick of the mark itself is given out, and again after a crash",
        "Steady.take",
        "steady >= self._horizon.limit",
        "steady > self._horizon.limit",
        (
            "test_the_horizon_is_the_mark_of_the_completed_save",
            "test_the_horizon_follows_the_saves",
        ),
    ),
    Mutation(
        "steady-horizon-not-honoured",
        "steady ids go on past what was saved",
        "Steady.take",
        "steady >= self._horizon.limit",
        "not self._horizon.limit",
        (
            "test_the_horizon_is_the_mark_of_the_completed_save",
            "test_the_horizon_follows_the_saves",
        ),
    ),
    Mutation(
        "steady-horizon-without-reach",
        "a save lets no steady id be given out",
        "Steady.begin_save",
        "self.read(now=now, elapsed=elapsed) + lead",
        "self.read(now=now, elapsed=elapsed)",
        (
            "test_without_a_mark_nothing_before_the_start_is_given",
            "test_the_first_tick_is_the_mark",
        ),
    ),
    Mutation(
        "steady-horizon-before-save",
        "steady ids are given out past a mark that is not on the disk yet",
        "Steady.begin_save",
        "self._horizon.begin_save(mark)",
        "self._horizon.end_save(mark, completed=True)",
        (
            "test_only_a_completed_save_raises_the_limit",
            "test_the_horizon_follows_the_saves",
        ),
    ),
    Mutation(
        "bare-reach-left-out",
        "a daemon that crashes again and again runs steady ever further ahead",
        "Timelines.begin_save",
        "bare_lead if self.far(at) else lead",
        "lead",
        (
            "test_a_steady_that_is_a_second_ahead_is_far",
            "test_without_a_bare_reach_a_far_one_waits_for_nothing_worse",
        ),
    ),
]
