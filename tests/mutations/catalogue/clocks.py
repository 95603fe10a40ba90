"""Clock: steps and rates that go unnoticed."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

MUTATIONS = [
    Mutation(
        "step-back-unnoticed",
        "after a step back all requests wait until UTC has caught up",
        "Utc.take",
        "now < self._open.top - TOLERANCE",
        "False",
        (
            "test_a_clock_set_back_opens_the_next_generation",
            "test_a_step_back_is_measured_from_the_highest_lane",
        ),
    ),
    Mutation(
        "step-back-by-a-tick-noticed",
        "a drift of the clock costs generations",
        "Utc.take",
        "self._open.top - TOLERANCE",
        "self._open.top - 1",
        ("test_a_step_back_within_the_tolerance_is_waited_out",),
    ),
    Mutation(
        "tolerance-too-large",
        "after a step back of a second all requests wait for a second",
        "volatile",
        "TOLERANCE = 100_000",
        "TOLERANCE = 20_000_000",
        ("test_a_clock_set_back_opens_the_next_generation",),
    ),
    Mutation(
        "step-back-unnoticed-while-volatile",
        "after a step back all requests wait until UTC has caught up",
        "Volatile.take",
        "now < self._open.top - TOLERANCE",
        "now < 0",
        ("test_after_a_step_back_node_and_generation_are_new",),
    ),
    Mutation(
        "top-not-raised",
        "a step back is measured from the wrong lane",
        "Generation.take",
        """
        if self.top < first + given:
            self.top = first + given
        """,
        "",
        ("test_top_is_the_highest_next_of_any_lane",),
    ),
    Mutation(
        "step-not-told",
        "the log and status say nothing of a step",
        "Clock._read_again",
        "abs(jump) >= STEP + drift",
        "abs(jump) >= 3600 * (STEP + drift)",
        ("test_a_step_forward_is_told_and_counted", "test_a_step_back_is_told_and_counted"),
    ),
    Mutation(
        "steady-at-full-speed",
        "after a step back steady never comes back to UTC",
        "Slew.read",
        "(elapsed - self._since) // 2",
        "elapsed - self._since",
        (
            "test_utc_catches_up_after_twice_the_step",
            "test_it_goes_on_at_half_speed_after_a_step_back",
        ),
    ),
    Mutation(
        "steady-stands-still",
        "after a step back no steady id is given",
        "Slew.read",
        "(elapsed - self._since) // 2",
        "(elapsed - self._since) * 0",
        (
            "test_it_goes_on_at_half_speed_after_a_step_back",
            "test_a_second_step_back_changes_nothing",
        ),
    ),
    Mutation(
        "steady-goes-back",
        "after a step back steady follows UTC",
        "Slew.read",
        """
        if now <= steady:
            return steady
        """,
        "",
        (
            "test_it_goes_on_at_half_speed_after_a_step_back",
            "test_a_second_step_back_changes_nothing",
        ),
    ),
    Mutation(
        "max-lead-not-enforced",
        "steady ids lie in the far future",
        "Steady.take",
        "lead > self.max_lead",
        "lead > 1 << 60",
        (
            "test_a_lead_past_the_most_is_refused_and_told",
            "test_what_was_given_counts_as_lead_where_utc_alone_is_read",
        ),
    ),
    Mutation(
        "rollback-refuse-not-heeded",
        "steady runs ahead of UTC under --rollback refuse",
        "Steady.take",
        'self.rollback == "refuse" and lead > TOLERANCE',
        'self.rollback == "refuse" and lead > 1 << 60',
        ("test_refusing_says_the_lead_and_that_none_is_allowed",),
    ),
    Mutation(
        "rollback-wait-not-heeded",
        "steady runs ahead of UTC under --rollback wait",
        "Steady.read",
        'steady if self.rollback == "slew" else now',
        "steady",
        ("test_waiting_gives_nothing_until_utc_is_back",),
    ),
    Mutation(
        "glitch-with-nothing-given-is-slewed",
        "a clock that was ahead for a moment stops v7, though nothing was given out then",
        "Steady.read",
        """
        self._slew.begin(now, elapsed=elapsed)
        return now
        """,
        "",
        ("test_a_clock_that_was_ahead_while_nothing_was_given_holds_nothing_up",),
    ),
]
