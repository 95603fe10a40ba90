"""A trial: tests run on a copy of the project, whole or broken, and what came of them."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import TypeVar

import uuidd
from extension.build_hook import CannotCompile, compiled, place, put_in_place
from tests.coverage.measuring import TOP
from tests.forks import Forks, Process

PARTS = ("uuidd", "client", "tests", "systemd", "pyproject.toml")

SECONDS = 50.0
"""A run that takes longer hangs, and that counts as seen."""

HANGS = 3
"""After so many tests have hung or crashed, no other is tried."""

GRACE_SECONDS = 10
"""So long a run that hangs may clean up."""

RUNS = "tests.mutations.running"
"""The module that runs pytest in a fork."""

NO_TESTS = 5
"""What pytest exits with if it finds no test."""

IMPORT = "(the import)"
"""What fails, if the broken code cannot be imported or compiled."""

_Given = TypeVar("_Given")
_Found = TypeVar("_Found")


@dataclass(frozen=True, slots=True)
class Trial:
    """Of each test that did not pass how it failed: "fail", "memory", "time" or "crash".

    *output* is what pytest wrote, or the compiler.
    """

    failed: Mapping[str, str]
    output: str

    @property
    def caught(self) -> bool:
        """Whether a test failed, and not only the import."""
        return bool(self.failed) and IMPORT not in self.failed


class Copy:
    """A copy of the checkout in *tree*, with a process that runs its tests."""

    def __init__(self, tree: Path) -> None:
        self.tree = tree
        self._sound: dict[tuple[str, bool], bool] = {}
        self._broken = 0
        self._variables = environment(tree, str(tree.parent))
        self._forks = Forks(RUNS, self._variables, folder=tree, leaves=tree.parent)

    def close(self) -> None:
        """End all that runs."""
        self._forks.end()

    def run(
        self,
        tests: Sequence[str],
        *,
        seconds: float = SECONDS,
        limits: Mapping[str, float] | None = None,
        quick: Collection[str] = (),
        until_one_fails: bool = True,
    ) -> Trial:
        """Run tests, all within *seconds*, and each within its limit if it has one.

        Of those that are *quick*, only what is of the quick tier runs.
        """
        failed: dict[str, str] = {}
        for left in reversed(range(HANGS)):
            begun, trial = self._run(tests, seconds, limits or {}, quick, until_one_fails)
            failed |= trial.failed
            broken_off = {"time", "crash"}.intersection(trial.failed.values())
            tests = [test for test in tests if test not in begun]
            if not (broken_off and left and begun and tests) or until_one_fails:
                return Trial(failed, trial.output)
        raise AssertionError

    def _run(
        self,
        tests: Sequence[str],
        seconds: float,
        limits: Mapping[str, float],
        quick: Collection[str],
        until_one_fails: bool,
    ) -> tuple[Collection[str], Trial]:
        """Return also which tests have begun."""
        options = ["-x"] if until_one_fails else []
        with tempfile.TemporaryDirectory(
            dir=self.tree.parent, ignore_cleanup_errors=True
        ) as temporary:
            told, output = Path(temporary, "told"), Path(temporary, "output")
            request = {"words": [*options, *tests], "limits": limits, "quick": [*quick]}
            Path(temporary, "request").write_text(json.dumps(request))
            with open(os.devnull, "rb") as null, output.open("wb") as out:
                (process,) = self._forks.start(
                    RUNS,
                    [temporary],
                    streams=(null, out, out),
                    environment={**self._variables, "TMPDIR": temporary},
                    folder=self.tree,
                )
            status = _ended(process, seconds)
            lines = told.read_text().splitlines() if told.exists() else []
            begun, failed = _came(lines, status)
            return begun, Trial(failed, output.read_text(errors="replace"))

    def run_broken(
        self,
        file: str,
        source: bytes,
        tests: Sequence[str],
        *,
        seconds: float = SECONDS,
        limits: Mapping[str, float] | None = None,
        quick: Collection[str] = (),
        until_one_fails: bool = True,
    ) -> Trial:
        """Run tests with *source* as a *file*; the copy is whole afterwards."""
        path = self.tree / file
        before, changed_at = path.read_bytes(), path.stat().st_mtime
        try:
            path.write_bytes(source)
            # Each has a time of its own, or what was compiled of another might be taken for it.
            self._broken += 1
            os.utime(path, (self._broken, self._broken))
            with _compiled_again(self.tree, path):
                return self.run(
                    tests,
                    seconds=seconds,
                    limits=limits,
                    quick=quick,
                    until_one_fails=until_one_fails,
                )
        except CannotCompile as error:
            return Trial({IMPORT: "fail"}, str(error))
        finally:
            path.write_bytes(before)
            os.utime(path, (changed_at, changed_at))

    def sound(self, tests: Iterable[str], quick: Collection[str] = ()) -> set[str]:
        """Return those of the tests that pass with the whole code; *quick* is as in ``run``."""
        wanted = {test: (test, test in quick) for test in {*tests} - {IMPORT}}
        if unknown := sorted(test for test, key in wanted.items() if key not in self._sound):
            failed = self.run(unknown, quick=quick, until_one_fails=False).failed
            self._sound |= {wanted[test]: test not in failed for test in unknown}
        return {test for test, key in wanted.items() if self._sound[key]}


def _ended(process: Process, seconds: float) -> int | None:
    """Return the exit status of a process; after *seconds* end it, and return None."""
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        # As Ctrl-C does, so that it cleans up.
        process.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(GRACE_SECONDS)
        process.kill()
        process.wait()
        return None


def _came(lines: Sequence[str], status: int | None) -> tuple[Collection[str], dict[str, str]]:
    """Return which tests have begun, and how tests failed, from what a run has told."""
    begun: list[str] = []
    failed: dict[str, str] = {}
    ended = late = False
    for line in lines:
        kind, _, name = line.partition(" ")
        if kind == "begin":
            begun.append(name)
        elif kind in ("fail", "memory"):
            failed.setdefault(name, kind)
        ended |= kind == "end"
        late |= line.startswith("Timeout (")
    last = begun[-1] if begun else IMPORT
    if status is None or late:
        failed.setdefault(last, "time")
    elif not ended or status < 0:
        failed.setdefault(last, "crash")
    elif status not in (0, NO_TESTS) and not failed:
        failed[IMPORT] = "fail"
    return begun, failed


def environment(tree: Path, temporary: str) -> dict[str, str]:
    """Return the environment in which programs, and those that they start, import the copy."""
    # What is installed in editable mode comes after PYTHONPATH.
    path = os.pathsep.join([str(tree), str(tree / "client")])
    # What is compiled is kept: a run of one test would compile all that it imports.
    keeping = {"PYTHONDONTWRITEBYTECODE": ""}
    return {**os.environ, **keeping, "PYTHONPATH": path, "TMPDIR": temporary}


@contextlib.contextmanager
def copied(origin: Path = TOP) -> Iterator[Path]:
    """Provide a copy of a checkout; in memory if possible, for tests are tried and no disk is."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(
        prefix="mutants-", dir=memory if memory.is_dir() else None, ignore_cleanup_errors=True
    ) as around:
        tree = Path(around, "tree")
        tree.mkdir()
        for part in PARTS:
            if (origin / part).is_dir():
                shutil.copytree(origin / part, tree / part)
            else:
                shutil.copy2(origin / part, tree / part)
        yield tree


@contextlib.contextmanager
def copy(origin: Path = TOP) -> Iterator[Copy]:
    """Provide a copy of a checkout with a process that runs its tests."""
    with copied(origin) as tree:
        made = Copy(tree)
        try:
            yield made
        finally:
            made.close()


@contextlib.contextmanager
def _compiled_again(tree: Path, changed: Path) -> Iterator[None]:
    """Compile the C extension in *tree*, for as long as the context lasts, if C was changed."""
    if changed.suffix not in (".c", ".h"):
        yield
        return
    with tempfile.TemporaryDirectory(dir=tree.parent) as folder:
        built = compiled(tree, Path(folder), uuidd.__version__)
        whole = Path(folder, "whole") if place(tree).exists() else None
        if whole is not None:
            shutil.copy2(place(tree), whole)
        put_in_place(tree, built)
        try:
            yield
        finally:
            put_in_place(tree, whole)


def in_copies(
    work: Callable[[_Given, Copy], _Found],
    items: Iterable[_Given],
    jobs: int,
    *,
    before: Sequence[str] = (),
) -> Iterator[_Found]:
    """Yield what comes of each item, as it comes; *work* has a copy for itself.

    The tests *before* are run first on whole copies: raises RuntimeError if one fails.
    """
    pool = ThreadPoolExecutor(jobs)
    with contextlib.ExitStack() as stack:
        copies = [stack.enter_context(copy()) for _ in range(jobs)]
        # After an error no other item is begun, and what runs is not waited for.
        stack.callback(pool.shutdown, wait=False, cancel_futures=True)
        for trial in pool.map(
            lambda one: one[1].run(before[one[0] :: jobs], seconds=3600.0),
            # To a copy without a test, pytest would run all of them.
            enumerate(copies[: len(before)]),
        ):
            if trial.failed:
                raise RuntimeError(
                    f"the whole code fails {' '.join(trial.failed)}:\n{trial.output}"
                )
        free: SimpleQueue[Copy] = SimpleQueue()
        for each in copies:
            free.put(each)

        def run(item: _Given) -> _Found:
            taken = free.get()
            try:
                return work(item, taken)
            finally:
                free.put(taken)

        for future in as_completed([pool.submit(run, item) for item in items]):
            yield future.result()


def say(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
