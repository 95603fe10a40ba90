"""Break the code in ways of the catalogue, and tell which test sees each."""

from __future__ import annotations

import contextlib
import random
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from queue import SimpleQueue
from typing import TypeVar

from tests.coverage.measuring import TOP
from tests.mutations.catalogue import MUTATIONS
from tests.mutations.mutation import Break, FaultyError, Mutation, breaks
from tests.mutations.trial import (
    CANNOT_COMPILE,
    FAILED,
    PASSED,
    Trial,
    copied,
    end_all,
    run_broken,
)
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
    survivors = []
    with copied() as whole:
        if wrong := _baseline(whole, wanted, jobs):
            say(wrong)
            return False

        def tried(broken: Break, tree: Path) -> tuple[Break, Trial]:
            return broken, run_broken(tree, broken.path, broken.source, broken.tests)

        for broken, trial in in_copies(tried, wanted, whole, jobs):
            say(f"{trial.seconds:5.1f} s  {broken.mutation.name}: {_verdict(trial)}")
            if not trial.caught:
                survivors.append(broken.mutation)
                sys.stderr.write(f"{trial.output}\n")
    say(f"\n{len(wanted) - len(survivors)} of {len(wanted)} caught")
    for mutation in survivors:
        say(f"NOT CAUGHT: {mutation.name}, in {mutation.function}: {mutation.why}")
    return not survivors


def _breaks(mutations: Sequence[Mutation]) -> list[Break] | None:
    try:
        return breaks(mutations, TOP)
    except FaultyError as error:
        say(f"{error}\n\n{len(error.faults)} faults in {len(mutations)} mutations")
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
        f"the whole code fails {' '.join(trial.failed) or 'its tests'}:\n{trial.output}"
        for trial in trials
        if trial.status != PASSED
    )


def _verdict(trial: Trial) -> str:
    if trial.status is None:
        return "(it hung)"
    if trial.crashed:
        return "(it crashed)"
    if trial.status == PASSED:
        return "NO TEST: IT SURVIVES"
    if trial.status == FAILED and trial.failed:
        # Parameters of a test may have spaces and be long.
        test = trial.failed[0].partition("[")[0]
        return f"{test} (no memory)" if trial.ate_memory else test
    if trial.status == CANNOT_COMPILE:
        return f"NOT TESTED: it cannot be compiled: {trial.output}"
    return f"NOT TESTED: pytest exited with {trial.status}"


def in_copies(
    work: Callable[[_Given, Path], _Found], items: Iterable[_Given], whole: Path, jobs: int
) -> Iterator[_Found]:
    """Yield what comes of each item, as it comes; *work* has a copy of *whole* for itself."""
    with contextlib.ExitStack() as stack:
        # With what the tests have compiled there.
        trees: SimpleQueue[Path] = SimpleQueue()
        for _ in range(jobs):
            trees.put(stack.enter_context(copied(whole)))

        def run(item: _Given) -> _Found:
            tree = trees.get()
            try:
                return work(item, tree)
            finally:
                trees.put(tree)

        yield from _side_by_side(run, items, jobs)


def _side_by_side(
    work: Callable[[_Given], _Found], items: Iterable[_Given], jobs: int
) -> Iterator[_Found]:
    """Yield what comes of each item, as it comes; after an error no other item is begun."""
    pool = ThreadPoolExecutor(jobs)
    try:
        for future in as_completed([pool.submit(work, item) for item in items]):
            yield future.result()
    except BaseException:
        # Such as Ctrl-C. What runs is not waited for.
        pool.shutdown(wait=False, cancel_futures=True)
        end_all()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def end_by_signal() -> None:
    """Let SIGTERM end this process as Ctrl-C does: nothing else begins, and nothing is left."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
