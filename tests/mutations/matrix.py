"""Which tests see which mutants: all that fail, so that one can tell what would be lost.

The matrix is kept in the folder `.mutations` of the checkout. A run adds mutants to those that it
already has, as long as the product and the tests are the same.
"""

from __future__ import annotations

import difflib
import sys
import time
from collections import Counter
from collections.abc import Sequence
from itertools import islice, zip_longest
from pathlib import Path
from typing import NamedTuple

from tests.coverage.measuring import TOP
from tests.mutations.auto import COLD_SECONDS, EXIT_OF_NO_TESTS, SLOWEST, chosen, lines_of, trials
from tests.mutations.catalogue import MUTATIONS
from tests.mutations.executed import KEPT, Executed, digests, executed, kept, state
from tests.mutations.mutation import breaks
from tests.mutations.place import modules
from tests.mutations.recording import function
from tests.mutations.results import Results
from tests.mutations.run import in_copies, sample, say
from tests.mutations.trial import PASSED, run_broken
from tests.mutations.warm import Warm

FILE = KEPT / "matrix"

OTHERWISE = "(the import, a crash or the time limit)"
"""What kills a mutant, if no test does."""


class Row(NamedTuple):
    """A broken file, what it is called, the lines that differ, and the tests that may see it.

    *slow* are those of them that are not of the quick tier.
    """

    name: str
    path: str
    source: bytes
    lines: list[int]
    quick: list[str]
    slow: list[str]


def matrix(
    count: int,
    seed: str,
    *,
    entries: int | None = None,
    paths: Sequence[str] = (),
    slowest: float = SLOWEST,
    seconds: float | None = None,
    jobs: int = 2,
) -> bool:
    """Find what kills *entries* of the catalogue, or all, and *count* mutants by rule; keep it."""
    tests, results = executed().without_slow(slowest), Results(FILE, state())
    every = _rows(count, seed, tests, entries=entries, paths=paths)
    rows = [row for row in every if row.name not in results.rows]
    say(f"{len(results.rows)} mutants are known, {len(rows)} are to be run")
    ends = None if seconds is None else time.monotonic() + seconds
    with trials(tests, {row.path for row in rows if row.quick}, jobs) as (collected, whole):

        def killers(row: Row, tree: Path) -> tuple[Row, list[str], float] | None:
            begun = time.monotonic()
            if ends is not None and begun > ends:
                return None
            failed = _killers(row, tests, collected, tree)
            return row, sorted(failed), time.monotonic() - begun

        for answer in in_copies(killers, rows, whole, jobs):
            if answer is not None:
                row, failed, took = answer
                results.add(row.name, [failed, row.path, row.lines])
                say(f"{took:5.1f} s  {row.name}: {len(failed)} of {_count(row)} tests")
    _tell_idle(results, tests)
    return True


def _count(row: Row) -> int:
    return len(row.quick) + len(row.slow)


def _killers(row: Row, tests: Executed, collected: Warm, tree: Path) -> set[str]:
    found = None
    if row.quick and row.path.endswith(".py"):
        before = (TOP / row.path).read_bytes()
        found = collected.killers(row.path, before, row.source, row.quick, until_one_fails=False)
    failed = {*(found or ())}
    cold = row.slow if found is not None else row.slow + row.quick
    if found == {} and tests.is_imported(row.path, row.lines):
        cold = row.slow + row.quick
    if cold:
        limit = COLD_SECONDS + 4 * sum(tests.seconds.get(test, 1.0) for test in cold)
        trial = run_broken(tree, row.path, row.source, cold, seconds=limit, until_one_fails=False)
        failed |= collected.sound({function(test) for test in trial.failed})
        if not failed and trial.status not in (PASSED, EXIT_OF_NO_TESTS):
            failed = {OTHERWISE}
    return failed


def _tell_idle(results: Results, tests: Executed) -> None:
    """Print the quick tests that kill nothing, and how many mutants each could have killed."""
    useful = {test for killers, *_ in results.rows.values() for test in killers}
    exposed = Counter(
        test for _, path, lines in results.rows.values() for test in tests.tests(path, lines)
    )
    tried = tests.seconds.keys() - {*tests.failed}
    idle = sorted(tried - useful, key=lambda test: (-exposed[test], test))
    for test in idle:
        say(f"kills nothing: {exposed[test]:4d} mutants  {test}")
    never = sum(not exposed[test] for test in idle)
    say(
        f"of {len(tried)} quick tests {len(idle)} kill none of {len(results.rows)} mutants;"
        f" {never} of these execute none of them"
    )


def lost(tests: Sequence[str]) -> bool:
    """Print what no test would see without *tests*; True if that is nothing.

    A test is named as pytest names it, without parameters; a file or a folder stands for its tests.
    """
    found = {name: killers for name, (killers, *_) in Results(FILE, state()).rows.items()}
    gone = tuple(tests)
    unseen = [
        name
        for name, killers in found.items()
        if killers and all(_is_one_of(killer, gone) for killer in killers)
    ]
    for name in unseen:
        say(f"LOST: {name}")
    say(f"{len(unseen)} of {len(found)} mutants would be seen by no test")
    return bool(found) and not unseen


def needed(path: str) -> bool:
    """Print the quick tests that execute anything of a file, one a line; True if there are any.

    A file of which all tests are needed stands for them. The map may be one of before a change.
    """
    before = kept()
    found = executed() if before is None else before.executed
    if before is not None and (
        differing := sum(before.files.get(name) != digest for name, digest in digests().items())
    ):
        sys.stderr.write(f"{differing} files differ since the map was made; --map makes it again\n")
    tests = found.tests(path, ())
    by_file: dict[str, set[str]] = {}
    for test in found.seconds:
        by_file.setdefault(test.partition("::")[0], set()).add(test)
    for file, every in sorted(by_file.items()):
        wanted = every.intersection(tests)
        for line in [file] if wanted == every else sorted(wanted):
            say(line)
    return bool(tests)


def _rows(
    count: int, seed: str, tests: Executed, *, entries: int | None, paths: Sequence[str]
) -> list[Row]:
    """Return the rows of both kinds, one of each in turn."""
    by_name = []
    for broken in breaks(MUTATIONS if entries is None else sample(entries, seed), TOP):
        lines = _differing((TOP / broken.path).read_bytes(), broken.source)
        quick = tests.tests(broken.path, lines)
        known = {*quick, *(test.partition("::")[0] for test in quick)}
        quick += [test for test in broken.tests if test in tests.seconds and test not in known]
        slow = [test for test in broken.tests if test not in known and test not in tests.seconds]
        by_name.append(Row(broken.mutation.name, broken.path, broken.source, lines, quick, slow))
    by_rule = []
    for module, mutant in islice(chosen(modules(TOP), seed, paths=paths), count):
        lines = [*lines_of(mutant, module)]
        quick = tests.tests(mutant.path, lines)
        told, broken_source = mutant.told(module.source), mutant.applied(module.source)
        by_rule.append(Row(told, mutant.path, broken_source, lines, quick, []))
    rows = [row for pair in zip_longest(by_rule, by_name) for row in pair if row is not None]
    return [row for row in rows if _count(row)]


def _differing(before: bytes, after: bytes) -> list[int]:
    """Return the lines of *before* that are not in *after*."""
    old, new = before.splitlines(), after.splitlines()
    found: list[int] = []
    for tag, begin, end, _, _ in difflib.SequenceMatcher(a=old, b=new).get_opcodes():
        if tag != "equal":
            found += range(begin + 1, max(end, begin + 1) + 1)
    return found


def _is_one_of(test: str, gone: tuple[str, ...]) -> bool:
    return any(test == one or test.startswith((f"{one}::", f"{one}/")) for one in gone)
