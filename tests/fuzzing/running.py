"""Runs a target with many inputs, and tells what came of them."""

from __future__ import annotations

import traceback
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from random import Random
from time import monotonic

from tests.fuzzing.shrinking import PATIENCE, smallest
from tests.fuzzing.target import Broken, Target
from tests.fuzzing.watching import Hang, Heavy, highest, in_room, in_time, weigh

GROWTH = 64
"""MiB by which the process may grow after the first tenth of the inputs."""


@dataclass(frozen=True, slots=True)
class Failure:
    """An input that fails, the smallest that was found, and how it fails."""

    what: str
    data: bytes


@dataclass(slots=True)
class Report:
    """What came of a run."""

    name: str
    inputs: int = 0
    seconds: float = 0.0
    grown: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    failures: list[Failure] = field(default_factory=list)


def fuzz(target: Target, inputs: int, seed: int, *, patience: float = PATIENCE) -> Report:
    """Run *target* with the first *inputs* of *seed*, and return what came of them.

    Each way to fail is told once, with its smallest input, and counted.
    """
    report = Report(target.name)
    known: set[str] = set()
    made = target.inputs(Random(f"{target.name} {seed}"))
    begun, warm = monotonic(), 0
    with in_room():
        while report.inputs < inputs:
            some = list(islice(made, min(target.together, max(inputs - report.inputs, 1))))
            _run(target, some, report, known, patience)
            if not warm and report.inputs >= inputs // 10:
                warm = highest()
    report.seconds = monotonic() - begun
    report.grown = highest() - warm
    if report.grown > GROWTH:
        report.failures.append(Failure(f"it grew by {report.grown} MiB", b""))
    return report


def failure_of(target: Target, data: bytes) -> str:
    """Return how an input fails: the exception and where it was raised; "" if it does not."""
    try:
        with in_time(target.seconds):
            target.run(data)
            if target.weighed:
                # Once more, because what was cached the first time is not the input's.
                weigh(partial(target.run, data))
    except Exception as error:
        return _told(error)
    return ""


def _run(
    target: Target, some: list[bytes], report: Report, known: set[str], patience: float
) -> None:
    run, outcomes = target.run, report.outcomes
    data, left = b"", iter(some)
    for _ in range(len(some) + 1):
        # Once more after each failure, with what is left.
        try:
            with in_time(target.seconds):
                for data in left:
                    for outcome in run(data):
                        outcomes[outcome] += 1
                        report.inputs += 1
                if target.weighed:
                    weigh(partial(run, data))
                return
        except Exception as error:
            told = _told(error)
            outcomes[f"FAILED {told}"] += 1
            report.inputs += 1
            if told not in known:
                known.add(told)
                less = smallest(data, partial(_fails, target, told), patience, target.fewer)
                report.failures.append(Failure(told, less))


def _fails(target: Target, told: str, data: bytes) -> bool:
    return failure_of(target, data) == told


def _told(error: BaseException) -> str:
    """Return the exception and the line of ours that raised it, alike for inputs that fail alike.

    What it says is told too where that does not vary with the input.
    """
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    told = type(error).__name__
    for frame in traceback.extract_tb(error.__traceback__):
        for folder in ("/uuidd/", "/uuidd_client/"):
            if folder in frame.filename:
                told = f"{type(error).__name__} at {frame.filename.rpartition(folder)[2]}"
    return f"{told}: {error}" if isinstance(error, Broken | Heavy | Hang) else told
