"""Mutants by rule, drawn at random, run against the quick tests that execute the changed line."""

from __future__ import annotations

import random
import subprocess
import time
from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from tests.mutations.executed import Executed, executed
from tests.mutations.place import Module, modules
from tests.mutations.rules import Mutant, mutants
from tests.mutations.run import in_copies, say
from tests.mutations.trial import PASSED, TOP, Trial, copied, run, run_broken

FIRST_SECONDS = 4.0
"""The quickest tests that take so long together run first: most mutants die there."""

EXIT_OF_NO_TESTS = 5
"""What pytest exits with, if it finds no test."""

EQUAL = Path(__file__).with_name("equal.txt")
"""Survivors that no test can see: ``path | rule: old -> new | reason``, one a line."""


class Verdict(StrEnum):
    """What came of a mutant."""

    KILLED = "killed"
    SURVIVED = "SURVIVED"
    EQUAL = "equal"
    NOT_RUN = "no quick test executes it"


class Outcome(NamedTuple):
    """A mutant, what came of it, and by whom or why."""

    mutant: Mutant
    verdict: Verdict
    by: str
    seconds: float


def chosen(
    sources: Sequence[Module], seed: str, *, paths: Sequence[str] = (), changed: str | None = None
) -> list[Mutant]:
    """Return all mutants of files below *paths* in the order that *seed* draws.

    With *changed*, those of the lines that differ from that commit.
    """
    lines = None if changed is None else _changed(changed)
    found = [
        mutant
        for module in sources
        if not paths or module.path.startswith(tuple(paths))
        for mutant in mutants(module)
        if lines is None or mutant.line in lines.get(module.path, ())
    ]
    random.Random(seed).shuffle(found)
    return found


def auto(
    count: int,
    seed: str,
    *,
    paths: Sequence[str] = (),
    changed: str | None = None,
    seconds: float | None = None,
    jobs: int = 2,
) -> bool:
    """Try *count* mutants, or those that *seconds* allow; print each; True if none survived."""
    sources = {module.path: module for module in modules(TOP)}
    wanted = chosen(list(sources.values()), seed, paths=paths, changed=changed)[:count]
    say(f"seed {seed}: {len(wanted)} mutants")
    if not wanted:
        return True
    tests, equal = executed(), _equal()
    ends = None if seconds is None else time.monotonic() + seconds

    def tried(mutant: Mutant, tree: Path) -> Outcome | None:
        if ends is not None and time.monotonic() > ends:
            return None
        return _outcome(mutant, sources[mutant.path].source, tests, equal, tree)

    outcomes = []
    with copied() as whole:
        # Compiles what the runs need.
        run(whole, ["--collect-only", "tests"], compiling=True)
        for outcome in in_copies(tried, wanted, whole, jobs):
            if outcome is not None:
                outcomes.append(outcome)
                told = outcome.mutant.told(sources[outcome.mutant.path].source)
                say(f"{outcome.seconds:5.1f} s  {told}: {outcome.verdict} {outcome.by}".rstrip())
    survivors = [outcome for outcome in outcomes if outcome.verdict is Verdict.SURVIVED]
    say("")
    for outcome in survivors:
        say(f"SURVIVED: {outcome.mutant.told(sources[outcome.mutant.path].source)}")
    verdicts = [outcome.verdict for outcome in outcomes]
    say(", ".join(f"{verdicts.count(verdict)} {verdict.lower()}" for verdict in Verdict))
    return not survivors


def _outcome(
    mutant: Mutant, source: bytes, executed: Executed, equal: dict[str, str], tree: Path
) -> Outcome:
    key = mutant.told(source).replace(f":{mutant.line}:", " |", 1)
    if key in equal:
        return Outcome(mutant, Verdict.EQUAL, equal[key], 0.0)
    tests = executed.tests(mutant.path, lines_of(mutant, source))
    if not tests:
        return Outcome(mutant, Verdict.NOT_RUN, "", 0.0)
    taken = 0.0
    for part in _parts(tests, executed):
        limit = 15 + 4 * sum(executed.seconds.get(test, 0.0) for test in part)
        trial = run_broken(tree, mutant.path, mutant.applied(source), part, seconds=limit)
        taken += trial.seconds
        if trial.status not in (PASSED, EXIT_OF_NO_TESTS):
            return Outcome(mutant, Verdict.KILLED, _killer(trial), taken)
    return Outcome(mutant, Verdict.SURVIVED, f"{len(tests)} tests", taken)


def lines_of(mutant: Mutant, source: bytes) -> range:
    """Return the lines that a mutant changes."""
    return range(mutant.line, mutant.line + source[mutant.begin : mutant.end].count(b"\n") + 1)


def _parts(tests: Sequence[str], executed: Executed) -> Iterator[list[str]]:
    """Yield the quickest tests, and then the others."""
    taken, first = 0.0, 0
    while first < len(tests) and taken < FIRST_SECONDS:
        taken += executed.seconds.get(tests[first], 0.0)
        first += 1
    yield list(tests[:first])
    if first < len(tests):
        yield list(tests[first:])


def _killer(trial: Trial) -> str:
    if trial.status is None:
        return "by time"
    if trial.crashed:
        return "by a crash"
    return f"by {trial.failed[0].partition('[')[0]}" if trial.failed else "at the import"


def _equal() -> dict[str, str]:
    found = {}
    for line in EQUAL.read_text().splitlines():
        if line and not line.startswith("#"):
            key, _, reason = line.rpartition(" | ")
            found[key] = reason
    return found


def _changed(base: str) -> dict[str, set[int]]:
    """Return the lines of each file that differ from a commit."""
    command = ["git", "diff", "-U0", "--no-color", "--no-renames", base, "--", "uuidd", "client"]
    text = subprocess.run(command, cwd=TOP, capture_output=True, text=True, check=True).stdout
    found: dict[str, set[int]] = {}
    path = ""
    for line in text.splitlines():
        if line.startswith("+++ b/"):
            path = line.removeprefix("+++ b/")
        elif line.startswith("@@"):
            begin, _, count = line.split()[2].removeprefix("+").partition(",")
            found.setdefault(path, set()).update(range(int(begin), int(begin) + int(count or "1")))
    return found
