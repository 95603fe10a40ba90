"""Which tests see which mutants: all that fail, so that one can tell what would be lost.

The matrix is kept in the folder `.mutations` of the checkout. A run adds mutants to those that it
already has, as long as the product and the tests are the same.
"""

from __future__ import annotations

import difflib
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tests.mutations.auto import EXIT_OF_NO_TESTS, chosen, lines_of
from tests.mutations.catalogue import MUTATIONS
from tests.mutations.executed import KEPT, Executed, executed, state
from tests.mutations.mutation import breaks
from tests.mutations.place import modules
from tests.mutations.recording import function
from tests.mutations.run import in_copies, say
from tests.mutations.trial import PASSED, TOP, copied, run, run_broken

FILE = KEPT / "matrix.json"

OTHERWISE = "(the import, a crash or the time limit)"
"""What kills a mutant, if no test does."""


class Row(NamedTuple):
    """A broken file, what it is called, and the tests that may see it."""

    name: str
    path: str
    source: bytes
    tests: list[str]


def matrix(count: int, seed: str, *, seconds: float | None = None, jobs: int = 2) -> bool:
    """Find what kills each entry of the catalogue, and *count* mutants by rule, and keep it."""
    tests = executed()
    found = _kept()
    rows = [row for row in _rows(count, seed, tests) if row.name not in found]
    say(f"{len(found)} mutants are known, {len(rows)} are to be run")
    ends = None if seconds is None else time.monotonic() + seconds

    def killers(row: Row, tree: Path) -> tuple[str, list[str]] | None:
        if ends is not None and time.monotonic() > ends:
            return None
        limit = 30 + 4 * sum(tests.seconds.get(test, 0.0) for test in row.tests)
        trial = run_broken(
            tree, row.path, row.source, row.tests, seconds=limit, until_one_fails=False
        )
        failed = sorted({function(test) for test in trial.failed} - {*tests.failed})
        if not failed and trial.status not in (PASSED, EXIT_OF_NO_TESTS):
            failed = [OTHERWISE]
        return row.name, failed

    with copied() as whole:
        run(whole, ["--collect-only", "tests"], compiling=True)
        for answer in in_copies(killers, rows, whole, jobs):
            if answer is not None:
                found[answer[0]] = answer[1]
                say(f"{answer[0]}: {len(answer[1])} tests")
                _keep(found)
    idle = sorted({*tests.seconds} - {test for killers in found.values() for test in killers})
    say("\n".join(["", *(f"kills nothing: {test}" for test in idle)]))
    say(f"of {len(tests.seconds)} quick tests {len(idle)} kill none of {len(found)} mutants")
    return True


def lost(tests: Sequence[str]) -> bool:
    """Print what no test would see without *tests*; True if that is nothing.

    A test is named as pytest names it, without parameters; a file or a folder stands for its tests.
    """
    found = _kept()
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
    """Print the quick tests that execute anything of a file, one a line; True if there are any."""
    found = executed()
    tests = found.tests(path, ())
    for test in sorted(tests):
        say(test)
    return bool(tests)


def _rows(count: int, seed: str, tests: Executed) -> list[Row]:
    sources = {module.path: module for module in modules(TOP)}
    rows = []
    for broken in breaks(MUTATIONS, TOP):
        before = (TOP / broken.path).read_bytes()
        seen = tests.tests(broken.path, _differing(before, broken.source))
        named = [test for test in broken.tests if test not in seen]
        rows.append(Row(broken.mutation.name, broken.path, broken.source, named + seen))
    for mutant in chosen(list(sources.values()), seed)[:count]:
        source = sources[mutant.path].source
        seen = tests.tests(mutant.path, lines_of(mutant, source))
        rows.append(Row(mutant.told(source), mutant.path, mutant.applied(source), seen))
    return [row for row in rows if row.tests]


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


def _kept() -> dict[str, list[str]]:
    if not FILE.exists():
        return {}
    found = json.loads(FILE.read_text())
    rows: dict[str, list[str]] = found["killers"] if found["state"] == state() else {}
    return rows


def _keep(found: dict[str, list[str]]) -> None:
    KEPT.mkdir(exist_ok=True)
    FILE.write_text(json.dumps({"state": state(), "killers": found}, indent=0))
