"""What of the clock is not noticed."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

MUTATIONS = [
    Mutation(
        "step-back-unnoticed",
        "after a step back all wait until UTC has caught up",
        "Utc.take",
        "self._open is None or now < self._open.top - TOLERANCE",
        "self._open is None",
        ("test_utc",),
    ),
    Mutation(
        "step-back-by-a-tick-noticed",
        "a drift of the clock costs generations",
        "Utc.take",
        "self._open.top - TOLERANCE",
        "self._open.top - 1",
        ("test_utc",),
    ),
    Mutation(
        "tolerance-too-large",
        "after a step back of a second all wait for a second",
        "volatile",
        "TOLERANCE = 100_000",
        "TOLERANCE = 20_000_000",
        ("test_utc",),
    ),
    Mutation(
        "step-back-unnoticed-while-volatile",
        "after a step back all wait until UTC has caught up",
        "Volatile.take",
        "now < self._open.top - TOLERANCE",
        "now < 0",
        ("test_volatile",),
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
        ("test_generation", "test_utc"),
    ),
    Mutation(
        "step-not-told",
        "the log and status say nothing of a step",
        "Clock._look_again",
        "abs(jump) >= STEP + drift",
        "abs(jump) >= 3600 * (STEP + drift)",
        ("test_clock",),
    ),
    Mutation(
        "steady-at-full-speed",
        "after a step back steady never comes back to UTC",
        "Slew.read",
        "(elapsed - self._since) // 2",
        "elapsed - self._since",
        ("test_slew",),
    ),
    Mutation(
        "steady-stands-still",
        "after a step back no steady id is given",
        "Slew.read",
        "(elapsed - self._since) // 2",
        "(elapsed - self._since) * 0",
        ("test_slew",),
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
        ("test_slew",),
    ),
    Mutation(
        "max-lead-not-enforced",
        "steady ids lie in the far future",
        "Steady.take",
        "lead > self.max_lead",
        "lead > 1 << 60",
        ("test_steady",),
    ),
    Mutation(
        "rollback-refuse-not-heeded",
        "steady runs ahead though told not to",
        "Steady.take",
        'self.rollback == "refuse" and lead > TOLERANCE',
        'self.rollback == "refuse" and lead > 1 << 60',
        ("test_steady",),
    ),
    Mutation(
        "rollback-wait-not-heeded",
        "steady runs ahead though told not to",
        "Steady.read",
        'steady if self.rollback == "slew" else now',
        "steady",
        ("test_steady",),
    ),
    Mutation(
        "glitch-with-nothing-given-is-slewed",
        "a clock that was ahead for a moment stops v7, though none was given out then",
        "Steady.read",
        """
        self._slew.begin(now, elapsed=elapsed)
        return now
        """,
        "",
        ("test_steady",),
    ),
]
