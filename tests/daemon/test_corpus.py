"""Inputs that programs may send or leave behind, and their outcomes; see ``tests.fuzzing``."""

from __future__ import annotations

import logging

import pytest

from tests.fuzzing.running import failure_of, fuzz
from tests.fuzzing.targets import CORPUS, TARGETS, shares
from tests.fuzzing.watching import in_room

INPUTS = 6_000


@pytest.mark.parametrize("name", CORPUS)
def test_what_is_kept_comes_to_what_it_should(name: str) -> None:
    for data, outcome in CORPUS[name]:
        with in_room():
            assert failure_of(TARGETS[name], data) == "", data
        if outcome != "any":
            named = "MalformedError" if outcome == "no" else outcome
            assert [*TARGETS[name].run(data)] == [named], data


@pytest.mark.parametrize(("name", "inputs"), shares(list(TARGETS), INPUTS).items())
def test_mutations_come_to_named_errors_only(
    name: str, inputs: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL, logger="uuidd")
    report = fuzz(TARGETS[name], inputs, seed=1, patience=2.0)
    assert report.failures == []
    assert report.inputs >= inputs
    assert len(report.outcomes) > 1
