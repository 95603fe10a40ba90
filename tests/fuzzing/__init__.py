"""Fuzz all that reads what others send or leave behind: ``python -m tests.fuzzing``.

1. A reader takes any bytes, hands them to the code, and returns the outcome: ``ok``, or the name of
   an expected error. Any other exception, an assertion, a hang, or memory without bound is a
   failure. A daemon's life is judged by what each of its callers gets.
2. hypothesis changes the bytes of a corpus of messages, and the values in them. It repeats the
   inputs of a seed, prints the smallest input that fails, and tries that first in the next run.
"""

from __future__ import annotations

from hypothesis import HealthCheck, Phase, settings

FEW = settings(
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    # To explain a failure takes long, and to shrink several.
    report_multiple_bugs=False,
    phases=[phase for phase in settings().phases if phase is not Phase.explain],
)

MANY = settings(FEW, max_examples=3 * FEW.max_examples)
