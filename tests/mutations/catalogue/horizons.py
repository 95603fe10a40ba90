"""How far ids are given beyond what the disk knows."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

MUTATIONS = [
    Mutation(
        "horizon-off-by-one",
        "the tick of the mark itself is given, and again after a crash",
        "Utc.take",
        "now >= self._horizon.limit",
        "now > self._horizon.limit",
        ("test_utc", "test_timeline_machine"),
    ),
    Mutation(
        "horizon-not-honoured",
        "ids go on past what was saved",
        "Utc.take",
        "serving is None or now >= self._horizon.limit",
        "serving is None",
        ("test_utc", "test_timeline_machine"),
    ),
    Mutation(
        "horizon-without-lead",
        "a save makes no room",
        "Utc.begin_save",
        "top if self._closed else max(top, now + lead)",
        "top",
        ("test_utc", "test_timeline_machine"),
    ),
    Mutation(
        "horizon-before-save",
        "a save that has only begun makes room already",
        "Utc.begin_save",
        "self._horizon_of(number).begin_save(mark)",
        "self._horizon_of(number).end_save(mark, completed=True)",
        ("test_utc", "test_timeline_machine"),
    ),
    Mutation(
        "horizon-above-save-under-way",
        "ids are given past a lower mark that is being written",
        "Horizon.begin_save",
        "self.limit = min(self._saved, lowest)",
        "self.limit = self._saved",
        ("test_horizon", "test_utc"),
    ),
    Mutation(
        "steady-horizon-off-by-one",
        "the tick of the mark itself is given, and again after a crash",
        "Steady.take",
        "steady >= self._horizon.limit",
        "steady > self._horizon.limit",
        ("test_steady", "test_steady_machine"),
    ),
    Mutation(
        "steady-horizon-not-honoured",
        "steady ids go on past what was saved",
        "Steady.take",
        "steady >= self._horizon.limit",
        "not self._horizon.limit",
        ("test_steady", "test_steady_machine"),
    ),
    Mutation(
        "steady-horizon-without-lead",
        "a save makes no room",
        "Steady.begin_save",
        "self.read(now=now, elapsed=elapsed) + lead",
        "self.read(now=now, elapsed=elapsed)",
        ("test_steady", "test_steady_machine"),
    ),
    Mutation(
        "steady-horizon-before-save",
        "a save that has only begun makes room already",
        "Steady.begin_save",
        "self._horizon.begin_save(mark)",
        "self._horizon.end_save(mark, completed=True)",
        ("test_steady", "test_steady_machine"),
    ),
    Mutation(
        "bare-lead-left-out",
        "daemons that crash in a row run steady ever further ahead",
        "Timelines.begin_save",
        "bare_lead if self.far(at) else lead",
        "lead",
        ("test_timelines",),
    ),
]
