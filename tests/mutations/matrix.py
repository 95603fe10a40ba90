"""Which tests see which mutants: all that fail, so that one can tell what would be lost.

The matrix is kept in the folder `.mutations` of the checkout. A run adds mutants to those that it
already has, as long as the product and the tests are the same.
"""

from __future__ import annotations

import difflib
import sys
import time
from collections import Counter
from collections.abc import Collection, Sequence
from itertools import islice, zip_longest
from typing import NamedTuple

from tests.coverage.measuring import TOP
from tests.mutations.auto import Results, Wanted, killers, lines_of
from tests.mutations.executed import FILE, KEPT, Map, digests, executed, loaded
from tests.mutations.mutation import Mutation, breaks
from tests.mutations.trial import Copy, in_copies, say

MATRIX = KEPT / "matrix"


class Row(NamedTuple):
    """A broken file, what it is called, the lines that differ, and the tests that may see it.

    The catalogue names some of them.
    """

    name: str
    path: str
    source: bytes
    lines: list[int]
    tests: list[str]
    named: Collection[str] = ()


def matrix(count: int, entries: Sequence[Mutation], wanted: Wanted) -> bool:
    """Find what kills each of the *entries*, and *count* mutants by rule; keep it."""
    known, results, ends = executed(), Results(MATRIX), wanted.ends()
    rows = [row for row in _rows(count, entries, wanted, known) if row.name not in results.rows]
    say(f"{len(results.rows)} mutants are known, {len(rows)} are to be run")

    def tried(row: Row, copy: Copy) -> tuple[Row, list[str] | None]:
        if time.monotonic() > ends:
            return row, None
        found = killers(
            copy,
            row.path,
            row.source,
            row.tests,
            known,
            named=row.named,
            until_one_fails=False,
        )
        return row, sorted(found)

    for row, failed in in_copies(tried, rows, wanted.jobs):
        if failed is not None:
            results.add(row.name, [failed, row.path, row.lines])
            say(f"{row.name}: {len(failed)} of {len(row.tests)} tests")
    _tell_idle(results, known)
    return True


def _tell_idle(results: Results, known: Map) -> None:
    """Print the quick tests that kill nothing, and how many mutants each could have killed."""
    useful = {test for killers, *_ in results.rows.values() for test in killers}
    exposed = Counter(
        test for _, path, lines in results.rows.values() for test in known.executing(path, lines)
    )
    tried = {test for test, ran in known.tests.items() if test and not ran.failed}
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
    found = {name: killers for name, (killers, *_) in Results(MATRIX).rows.items()}
    begins = tuple(f"{one}{end}" for one in tests for end in ("::", "/"))
    unseen = [
        name
        for name, killers in found.items()
        if killers and all(killer in tests or killer.startswith(begins) for killer in killers)
    ]
    for name in unseen:
        say(f"LOST: {name}")
    say(f"{len(unseen)} of {len(found)} mutants would be seen by no test")
    return bool(found) and not unseen


def needed(path: str) -> bool:
    """Print the quick tests that execute anything of a file, one a line; True if there are any.

    A file of which all tests are needed stands for them. The map may be one of before a change.
    """
    found, now = loaded(FILE), digests()
    if not found.files:
        found = executed()
    if differing := sum(found.files.get(name) != digest for name, digest in now.items()):
        sys.stderr.write(f"{differing} files differ since the map was made; --map makes it again\n")
    tests = found.executing(path, ())
    by_file: dict[str, set[str]] = {}
    for test in found.tests:
        by_file.setdefault(test.partition("::")[0], set()).add(test)
    for file, every in sorted(by_file.items()):
        wanted = every.intersection(tests)
        for line in [file] if wanted == every else sorted(wanted):
            say(line)
    return bool(tests)


def _rows(count: int, entries: Sequence[Mutation], wanted: Wanted, known: Map) -> list[Row]:
    """Return the rows of both kinds, one of each in turn."""
    by_name = []
    for broken in breaks(entries, TOP):
        lines = _differing((TOP / broken.path).read_bytes(), broken.source)
        tests = known.executing(broken.path, lines)
        files = {test.partition("::")[0] for test in tests}
        tests += [test for test in broken.tests if test not in {*tests, *files}]
        name = broken.mutation.name
        by_name.append(Row(name, broken.path, broken.source, lines, tests, broken.tests))
    by_rule = []
    for module, mutant in islice(wanted.mutants(), count):
        lines = [*lines_of(mutant, module)]
        tests = known.executing(mutant.path, lines)
        told, source = mutant.told(module.source), mutant.applied(module.source)
        by_rule.append(Row(told, mutant.path, source, lines, tests))
    rows = [row for pair in zip_longest(by_rule, by_name) for row in pair if row is not None]
    return [row for row in rows if row.tests]


def _differing(before: bytes, after: bytes) -> list[int]:
    """Return the lines of *before* that are not in *after*."""
    matcher = difflib.SequenceMatcher(a=before.splitlines(), b=after.splitlines())
    return [
        line
        for tag, begin, end, _, _ in matcher.get_opcodes()
        if tag != "equal"
        for line in range(begin + 1, max(end, begin + 1) + 1)
    ]
