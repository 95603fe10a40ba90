"""How far ids are given beyond what the disk knows."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

UTC = "uuidd/core/timeline/utc.py"
STEADY = "uuidd/core/timeline/steady.py"
UTC_TESTS = ("tests/core/test_utc.py", "tests/core/test_timeline_machine.py")
STEADY_TESTS = ("tests/core/test_steady.py", "tests/core/test_steady_machine.py")

MUTATIONS = [
    Mutation(
        "horizon-off-by-one",
        "the tick of the mark itself is given, and again after a crash",
        UTC,
        "now >= self._limit",
        "now > self._limit",
        UTC_TESTS,
    ),
    Mutation(
        "horizon-not-honoured",
        "ids go on past what was saved",
        UTC,
        "if serving is None or now >= self._limit:",
        "if serving is None:",
        UTC_TESTS,
    ),
    Mutation(
        "horizon-without-lead",
        "a save makes no room",
        UTC,
        "top if self._closed else max(top, now + lead)",
        "top",
        UTC_TESTS,
    ),
    Mutation(
        "horizon-before-save",
        "a save that has only begun makes room already",
        UTC,
        "self._unsettled = marks if self._unsettled is None else _lower(self._unsettled, marks)",
        "self._saved = marks",
        UTC_TESTS,
    ),
    Mutation(
        "horizon-above-save-under-way",
        "ids are given past a lower mark that is being written",
        UTC,
        "limit = min(limit, self._unsettled.get(self._number, 0))",
        "pass",
        UTC_TESTS,
    ),
    Mutation(
        "steady-horizon-off-by-one",
        "the tick of the mark itself is given, and again after a crash",
        STEADY,
        "if steady >= self._limit and",
        "if steady > self._limit and",
        STEADY_TESTS,
    ),
    Mutation(
        "steady-horizon-not-honoured",
        "steady ids go on past what was saved",
        STEADY,
        "if steady >= self._limit and",
        "if not self._limit and",
        STEADY_TESTS,
    ),
    Mutation(
        "steady-horizon-without-lead",
        "a save makes no room",
        STEADY,
        "ahead = self.read(now=now, elapsed=elapsed) + lead",
        "ahead = self.read(now=now, elapsed=elapsed)",
        STEADY_TESTS,
    ),
    Mutation(
        "steady-horizon-before-save",
        "a save that has only begun makes room already",
        STEADY,
        "self._limit = min(self._saved, self._unsettled)",
        "self._limit = mark",
        STEADY_TESTS,
    ),
    Mutation(
        "bare-lead-left-out",
        "daemons that crash in a row run steady ever further ahead",
        "uuidd/core/timeline/timelines.py",
        "lead=bare_lead if self.far(at) else lead",
        "lead=lead",
        ("tests/core/test_timelines.py",),
    ),
]
