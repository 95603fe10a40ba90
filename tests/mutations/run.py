"""Break the code in ways of the catalogue, and tell which test sees each."""

from __future__ import annotations

import contextlib
import random
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import TypeVar

from tests.mutations.catalogue import MUTATIONS
from tests.mutations.mutation import Break, FaultyError, Mutation, breaks
from tests.mutations.trial import CANNOT_COMPILE, FAILED, PASSED, TOP, Trial, copied, run_broken
from tests.mutations.trial import run as run_tests

JOBS = 2

_Given = TypeVar("_Given")
_Found = TypeVar("_Found")


def sample(count: int, seed: str) -> list[Mutation]:
    """Return *count* mutations of the catalogue, or all: the same ones for the same *seed*."""
    return random.Random(seed).sample(MUTATIONS, min(count, len(MUTATIONS)))


def check(mutations: Sequence[Mutation] = MUTATIONS) -> bool:
    """Print what in the catalogue does not suit the code, without running it; True if nothing."""
    return _breaks(mutations) is not None


def run(mutations: Sequence[Mutation] = MUTATIONS, *, jobs: int = JOBS) -> bool:
    """Try each mutation, *jobs* at a time, and print which test failed; True if all were caught."""
    wanted = _breaks(mutations)
    if wanted is None:
        return False
    with contextlib.ExitStack() as stack:
        first = stack.enter_context(copied())
        if wrong := _baseline(first, wanted, jobs):
            _say(wrong)
            return False
        # With what the tests just compiled.
        trees: SimpleQueue[Path] = SimpleQueue()
        for tree in (first, *(stack.enter_context(copied(first)) for _ in range(jobs - 1))):
            trees.put(tree)
        survivors = []
        for broken, trial in _side_by_side(lambda one: (one, _tried(one, trees)), wanted, jobs):
            _say(f"{trial.seconds:5.1f} s  {broken.mutation.name}: {_verdict(trial)}")
            if not trial.caught:
                survivors.append(broken.mutation)
                sys.stderr.write(f"{trial.output}\n")
    _say(f"\n{len(wanted) - len(survivors)} of {len(wanted)} caught")
    for mutation in survivors:
        _say(f"NOT CAUGHT: {mutation.name}, in {mutation.function}: {mutation.why}")
    return not survivors


def _breaks(mutations: Sequence[Mutation]) -> list[Break] | None:
    try:
        return breaks(mutations, TOP)
    except FaultyError as error:
        _say(f"{error}\n\n{len(error.faults)} faults in {len(mutations)} mutations")
        return None


def _baseline(tree: Path, wanted: Sequence[Break], jobs: int) -> str:
    """Run all tests that are needed on the whole copy; return what fails there."""
    by_file: dict[str, set[str]] = {}
    for broken in wanted:
        for test in broken.tests:
            by_file.setdefault(test.partition("::")[0], set()).add(test)
    # Of a file that is needed whole no single test is named beside it.
    tests = [{file} if file in found else found for file, found in sorted(by_file.items())]
    parts = [[test for found in tests[job::jobs] for test in sorted(found)] for job in range(jobs)]
    trials = _side_by_side(
        lambda part: run_tests(tree, part, compiling=True), filter(None, parts), jobs
    )
    return "\n".join(
        f"the whole code fails {trial.failed or 'its tests'}:\n{trial.output}"
        for trial in trials
        if trial.status != PASSED
    )


def _tried(broken: Break, trees: SimpleQueue[Path]) -> Trial:
    tree = trees.get()
    try:
        return run_broken(tree, broken)
    finally:
        trees.put(tree)


def _verdict(trial: Trial) -> str:
    if trial.status is None:
        return "(it hung)"
    if trial.crashed:
        return "(it crashed)"
    if trial.status == PASSED:
        return "NO TEST: IT SURVIVES"
    if trial.status == FAILED and trial.failed:
        # Parameters of a test may have spaces and be long.
        return trial.failed.partition("[")[0]
    if trial.status == CANNOT_COMPILE:
        return f"NOT TESTED: it cannot be compiled: {trial.output}"
    return f"NOT TESTED: pytest exited with {trial.status}"


def _side_by_side(
    work: Callable[[_Given], _Found], items: Iterable[_Given], jobs: int
) -> Iterator[_Found]:
    """Yield what comes of each item, in order; after an error no other item is begun."""
    pool = ThreadPoolExecutor(jobs)
    try:
        yield from pool.map(work, items)
    finally:
        pool.shutdown(cancel_futures=True)


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
