"""What of the clock is not noticed."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

UTC = "uuidd/core/timeline/utc.py"
STEADY = "uuidd/core/timeline/steady.py"
SLEW = "uuidd/core/timeline/slew.py"
VOLATILE = "uuidd/core/timeline/volatile.py"

MUTATIONS = [
    Mutation(
        "step-back-unnoticed",
        "after a step back all wait until UTC has caught up",
        UTC,
        "if self._open is None or now < self._open.top - TOLERANCE:",
        "if self._open is None:",
        ("tests/core/test_utc.py",),
    ),
    Mutation(
        "step-back-by-a-tick-noticed",
        "a drift of the clock costs generations",
        UTC,
        "now < self._open.top - TOLERANCE:",
        "now < self._open.top - 1:",
        ("tests/core/test_utc.py",),
    ),
    Mutation(
        "tolerance-too-large",
        "after a step back of a second all wait for a second",
        VOLATILE,
        "TOLERANCE = 100_000\n",
        "TOLERANCE = 20_000_000\n",
        ("tests/core/test_utc.py",),
    ),
    Mutation(
        "step-back-unnoticed-while-volatile",
        "after a step back all wait until UTC has caught up",
        VOLATILE,
        "if now < self._open.top - TOLERANCE:",
        "if now < 0:",
        ("tests/core/test_volatile.py",),
    ),
    Mutation(
        "top-not-raised",
        "a step back is measured from the wrong lane",
        "uuidd/core/timeline/generation.py",
        "        if self.top < first + given:\n            self.top = first + given\n",
        "        if not index:\n            self.top = first + given\n",
        ("tests/core/test_generation.py", "tests/core/test_utc.py"),
    ),
    Mutation(
        "step-not-told",
        "the log and status say nothing of a step",
        "uuidd/clock.py",
        "if abs(jump) >= STEP + drift:",
        "if abs(jump) >= 3600 * (STEP + drift):",
        ("tests/daemon/test_clock.py",),
    ),
    Mutation(
        "steady-at-full-speed",
        "after a step back steady never comes back to UTC",
        SLEW,
        "(elapsed - self._since) // 2",
        "(elapsed - self._since)",
        ("tests/core/test_slew.py",),
    ),
    Mutation(
        "steady-stands-still",
        "after a step back no steady id is given",
        SLEW,
        "(elapsed - self._since) // 2",
        "(elapsed - self._since) * 0",
        ("tests/core/test_slew.py",),
    ),
    Mutation(
        "steady-goes-back",
        "after a step back steady follows UTC",
        SLEW,
        "        if now <= steady:\n            return steady\n",
        "",
        ("tests/core/test_slew.py",),
    ),
    Mutation(
        "max-lead-not-enforced",
        "steady ids lie in the far future",
        STEADY,
        "if lead > self.max_lead:",
        "if lead > now:",
        ("tests/core/test_steady.py",),
    ),
    Mutation(
        "rollback-refuse-not-heeded",
        "steady runs ahead though told not to",
        STEADY,
        'if self.rollback == "refuse" and lead > TOLERANCE:',
        'if self.rollback == "refuse" and lead > now:',
        ("tests/core/test_steady.py",),
    ),
    Mutation(
        "rollback-wait-not-heeded",
        "steady runs ahead though told not to",
        STEADY,
        'return steady if self.rollback == "slew" else now',
        "return steady",
        ("tests/core/test_steady.py",),
    ),
    Mutation(
        "glitch-with-nothing-given-is-slewed",
        "a clock that was ahead for a moment stops v7, though none was given out then",
        STEADY,
        "            self._slew.begin(now, elapsed=elapsed)\n            return now\n",
        "            pass\n",
        ("tests/core/test_steady.py",),
    ),
]
