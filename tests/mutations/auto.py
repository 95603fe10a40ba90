"""Mutants by rule, drawn at random, run against the quick tests that execute the changed line."""

from __future__ import annotations

import ast
import contextlib
import random
import subprocess
import time
from collections import Counter
from collections.abc import Container, Iterator, Sequence
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from tests.coverage.measuring import TOP
from tests.mutations.executed import KEPT, Executed, executed, loaded, state
from tests.mutations.place import Function, Module, modules
from tests.mutations.recording import function
from tests.mutations.results import Results
from tests.mutations.rules import Mutant, is_real, mutants
from tests.mutations.run import in_copies, say
from tests.mutations.trial import PASSED, Trial, copied, run_broken
from tests.mutations.warm import Warm, warm

FIRST_SECONDS = 4.0
"""The quickest tests that take so long together run first: most mutants die there."""

COLD_SECONDS = 60.0
"""So long tests that import the broken file may take, besides what they take with the whole code:
the machine may be busy, and what is killed by its time alone would be no survivor."""

SLOWEST = 10.0
"""A test that takes more seconds is not run: each mutant that survives would cost as much."""

EXIT_OF_NO_TESTS = 5
"""What pytest exits with, if it finds no test."""

EQUAL = Path(__file__).with_name("equal.txt")
"""Survivors that no test can see: ``path | rule: code [old -> new] | reason``, one a line."""

FILE = KEPT / "outcomes"


class Verdict(StrEnum):
    """What came of a mutant."""

    KILLED = "killed"
    BY_TIME = "killed by time"
    BY_MEMORY = "killed by memory"
    SURVIVED = "SURVIVED"
    EQUAL = "equal"
    NOT_RUN = "no quick test executes it"


HOW = {"time": Verdict.BY_TIME, "memory": Verdict.BY_MEMORY}
"""The verdict on a mutant, by how a test failed under it."""


class Outcome(NamedTuple):
    """A mutant, what came of it, by which test or why, and the seconds that it took."""

    mutant: str
    verdict: Verdict
    by: str
    seconds: float


def chosen(
    sources: Sequence[Module],
    seed: str,
    *,
    paths: Sequence[str] = (),
    changed: str | None = None,
    keys: Container[str] | None = None,
) -> Iterator[tuple[Module, Mutant]]:
    """Yield all mutants of files below *paths* in the order that *seed* draws.

    With *changed*, those of the lines that differ from that commit; with *keys*, those of a key
    that is among them.
    """
    lines = None if changed is None else _changed(changed)
    found = [
        (module, mutant)
        for module in sources
        if not paths or module.path.startswith(tuple(paths))
        for mutant in mutants(module)
        if lines is None or mutant.line in lines.get(module.path, ())
    ]
    random.Random(seed).shuffle(found)
    for module, mutant in found:
        if (keys is None or _key(_told((module, mutant))) in keys) and is_real(mutant, module):
            yield module, mutant


def auto(
    count: int,
    seed: str,
    *,
    paths: Sequence[str] = (),
    changed: str | None = None,
    again: bool = False,
    slowest: float = SLOWEST,
    seconds: float | None = None,
    jobs: int = 2,
    file: Path | None = None,
) -> bool:
    """Try *count* mutants, or those that *seconds* allow; print each; True if none survived.

    What is known of a mutant counts, and it is not run. With *again*, those that survived when they
    were last tried are drawn. Tests that take longer than *slowest* seconds are left out. The map
    is that of *file*, if one is given, and otherwise that of this checkout.
    """
    results = Results(FILE, state())
    before = {**results.former, **results.rows}
    survived = {_key(name) for name, (verdict, *_) in before.items() if verdict == Verdict.SURVIVED}
    keys = survived if again else None
    pairs = list(islice(chosen(modules(TOP), seed, paths=paths, changed=changed, keys=keys), count))
    wanted = [pair for pair in pairs if _told(pair) not in results.rows]
    say(f"seed {seed}: {len(pairs)} mutants, of which {len(pairs) - len(wanted)} are known")
    for outcome in _outcomes(wanted, slowest, seconds, jobs, file):
        results.add(outcome.mutant, [outcome.verdict, outcome.by, round(outcome.seconds, 2)])
        say(f"{outcome.seconds:5.1f} s  {outcome.mutant}: {outcome.verdict} {outcome.by}".rstrip())
    names = [name for name in map(_told, pairs) if name in results.rows]
    survivors = [name for name in names if results.rows[name][0] == Verdict.SURVIVED]
    say("\n".join(["", *(f"SURVIVED: {name}" for name in sorted(survivors))]))
    verdicts = Counter(results.rows[name][0] for name in names)
    say(", ".join(f"{verdicts[verdict]} {verdict.lower()}" for verdict in Verdict))
    return not survivors


def _outcomes(
    wanted: Sequence[tuple[Module, Mutant]],
    slowest: float,
    seconds: float | None,
    jobs: int,
    file: Path | None,
) -> Iterator[Outcome]:
    if not wanted:
        return
    all_tests = executed() if file is None else loaded(file).executed
    tests, equal = all_tests.without_slow(slowest), _equal()
    ends = None if seconds is None else time.monotonic() + seconds
    with trials(tests, {module.path for module, _ in wanted}, jobs) as (tried, whole):

        def outcome(pair: tuple[Module, Mutant], tree: Path) -> Outcome | None:
            if ends is not None and time.monotonic() > ends:
                return None
            if (key := _key(_told(pair))) in equal:
                return Outcome(_told(pair), Verdict.EQUAL, equal[key], 0.0)
            return _outcome(*pair, tests, tried, tree)

        for found in in_copies(outcome, wanted, whole, jobs):
            if found is not None:
                yield found


@contextlib.contextmanager
def trials(tests: Executed, paths: set[str], jobs: int) -> Iterator[tuple[Warm, Path]]:
    """Provide the quick tests of some files of the product, collected, and a whole copy."""
    files = {test.partition("::")[0] for path in paths for test in tests.tests(path, ())}
    with copied() as whole, warm(whole, tests, sorted(files), jobs) as collected:
        yield collected, whole


def _outcome(
    module: Module, mutant: Mutant, executed: Executed, collected: Warm, tree: Path
) -> Outcome:
    begun = time.monotonic()
    told, broken, lines = (
        _told((module, mutant)),
        mutant.applied(module.source),
        lines_of(mutant, module),
    )
    tests = executed.tests(mutant.path, lines)

    def came(verdict: Verdict, by: str) -> Outcome:
        return Outcome(told, verdict, by, time.monotonic() - begun)

    if not tests:
        return came(Verdict.NOT_RUN, "")
    killers = collected.killers(mutant.path, module.source, broken, tests)
    for test, how in (killers or {}).items():
        return came(HOW.get(how, Verdict.KILLED), f"by {test}{' (crash)' * (how == 'crash')}")
    if killers is None or executed.is_imported(mutant.path, lines):
        quick, *slower = _parts(tests, executed)
        # After all tests have passed with the broken function, the import alone is left.
        for part in [quick, *slower] if killers is None else [quick]:
            trial = _cold(mutant.path, broken, part, executed, collected, tree)
            if trial.status not in (PASSED, EXIT_OF_NO_TESTS):
                return came(*_killer(trial))
    return came(Verdict.SURVIVED, f"{len(tests)} tests")


def _cold(
    path: str, broken: bytes, tests: list[str], executed: Executed, collected: Warm, tree: Path
) -> Trial:
    """Run tests that import the broken file, without those that fail with the whole code too."""
    limit = COLD_SECONDS + 4 * sum(executed.seconds.get(test, 0.0) for test in tests)
    while True:
        trial = run_broken(tree, path, broken, tests, seconds=limit)
        failed = {function(test) for test in trial.failed}
        unsound = failed - collected.sound(failed)
        if not unsound:
            return trial
        tests = [test for test in tests if test not in unsound]


def lines_of(mutant: Mutant, module: Module) -> range:
    """Return the lines of the statement that a mutant changes, or of its head.

    They are none where the statement is not in a function, so that it runs at the import.
    """
    inside = [
        node
        for node in ast.walk(module.tree)
        if isinstance(node, ast.stmt) and node.lineno <= mutant.line <= (node.end_lineno or 0)
    ]
    *around, last = sorted(inside, key=lambda node: node.lineno)
    if not any(isinstance(node, Function) for node in around):
        return range(0)
    body: list[ast.stmt] = getattr(last, "body", [])
    end = body[0].lineno if body else (last.end_lineno or 0) + 1
    # Of a later part of a statement, as an "except", only the line is known.
    return range(last.lineno, end) if mutant.line < end else range(mutant.line, mutant.line + 1)


def _told(pair: tuple[Module, Mutant]) -> str:
    return pair[1].told(pair[0].source)


def _key(told: str) -> str:
    """Return what is told of a mutant, without its line."""
    place, _, rest = told.partition(": ")
    return f"{place.rpartition(':')[0]} | {rest}"


def _parts(tests: Sequence[str], executed: Executed) -> Iterator[list[str]]:
    """Yield the quickest tests, and then the others."""
    taken, first = 0.0, 0
    while first < len(tests) and taken < FIRST_SECONDS:
        taken += executed.seconds.get(tests[first], 0.0)
        first += 1
    yield list(tests[:first])
    if first < len(tests):
        yield list(tests[first:])


def _killer(trial: Trial) -> tuple[Verdict, str]:
    by = f"by {trial.failed[0].partition('[')[0]}" if trial.failed else "at the import"
    if trial.status is None:
        return Verdict.BY_TIME, by if trial.failed else ""
    if trial.ate_memory:
        return Verdict.BY_MEMORY, by
    return Verdict.KILLED, "by a crash" if trial.crashed else by


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
