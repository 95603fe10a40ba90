"""Mutants by rule, drawn at random, run against the quick tests that execute the changed line."""

from __future__ import annotations

import ast
import json
import random
import subprocess
import time
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import Any

from tests.coverage.measuring import TOP
from tests.mutations.executed import KEPT, Map, executed, loaded, state
from tests.mutations.place import Function, Module, modules
from tests.mutations.rules import Mutant, is_real, mutants
from tests.mutations.trial import IMPORT, Copy, in_copies, say

FIRST = 40
"""So many of the quickest tests run first: most mutants die there, and few files are imported."""

SECONDS = 10.0
"""So long a test may take, and longer if it takes long with the whole code."""

EQUAL = Path(__file__).with_name("equal.txt")
"""Survivors that no test can see: ``path | rule: code [old -> new] | reason``, one a line."""


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


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which mutants are tried: those of files below *paths*, in the order that *seed* draws.

    With *changed*, those of the lines that differ from that commit. After *seconds* no mutant is
    begun.
    """

    seed: str
    paths: Sequence[str]
    changed: str | None
    seconds: float | None
    jobs: int

    def ends(self) -> float:
        """Return when no mutant is begun any more."""
        return float("inf") if self.seconds is None else time.monotonic() + self.seconds

    def mutants(self) -> Iterator[tuple[Module, Mutant]]:
        """Yield them."""
        lines = None if self.changed is None else _changed(self.changed)
        found = [
            (module, mutant)
            for module in modules(TOP)
            if not self.paths or module.path.startswith(tuple(self.paths))
            for mutant in mutants(module)
            if lines is None or mutant.line in lines.get(module.path, ())
        ]
        random.Random(self.seed).shuffle(found)
        for module, mutant in found:
            if is_real(mutant, module):
                yield module, mutant


class Results:
    """Rows by name, in a file of `.mutations`; each is there as soon as it is added.

    *rows* are of this product and these tests.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._state = state()
        self.rows: dict[str, Any] = {}
        for line in file.read_text().splitlines() if file.exists() else ():
            # One may have been broken off.
            with suppress(json.JSONDecodeError):
                found, name, row = json.loads(line)
                if found == self._state:
                    self.rows[name] = row

    def add(self, name: str, row: Any) -> None:
        """Keep a row."""
        self.rows[name] = row
        self._file.parent.mkdir(exist_ok=True)
        with self._file.open("a") as file:
            # After a line break, because the line before may have been broken off.
            file.write("\n" + json.dumps([self._state, name, row]))


def auto(count: int, wanted: Wanted, file: Path | None) -> bool:
    """Try *count* mutants; print each; True if none survived.

    What is known of a mutant counts, and it is not run. The map is that of *file*, if one is given,
    and otherwise that of this checkout.
    """
    results, equal = Results(KEPT / "outcomes"), _equal()
    every = {
        mutant.told(module.source): (module, mutant)
        for module, mutant in islice(wanted.mutants(), count)
    }
    new = {name: pair for name, pair in every.items() if name not in results.rows}
    say(f"seed {wanted.seed}: {len(every)} mutants, of which {len(every) - len(new)} are known")
    tests = (executed() if file is None else loaded(file)) if new else Map({}, {})
    ends = wanted.ends()

    def outcome(name: str, copy: Copy) -> tuple[str, Verdict | None, str]:
        if time.monotonic() > ends:
            return name, None, ""
        if (key := _key(name)) in equal:
            return name, Verdict.EQUAL, equal[key]
        module, mutant = new[name]
        seeing = tests.executing(mutant.path, lines_of(mutant, module))
        broken = mutant.applied(module.source)
        for part in filter(None, (seeing[:FIRST], seeing[FIRST:])):
            for test, how in killers(copy, mutant.path, broken, part, tests).items():
                return name, HOW.get(how, Verdict.KILLED), f"by {test}"
        survived = f"{len(seeing)} tests"
        return name, *((Verdict.SURVIVED, survived) if seeing else (Verdict.NOT_RUN, ""))

    for name, verdict, by in in_copies(outcome, new, wanted.jobs) if new else ():
        if verdict is not None:
            results.add(name, [verdict, by])
            say(f"{name}: {verdict} {by}".rstrip())
    found = {name: results.rows[name][0] for name in every if name in results.rows}
    survivors = sorted(name for name, verdict in found.items() if verdict == Verdict.SURVIVED)
    say("\n".join(["", *(f"SURVIVED: {name}" for name in survivors)]))
    verdicts = Counter(found.values())
    say(", ".join(f"{verdicts[verdict]} {verdict.lower()}" for verdict in Verdict))
    return not survivors


def killers(
    copy: Copy,
    path: str,
    broken: bytes,
    tests: Sequence[str],
    known: Map,
    *,
    named: Collection[str] = (),
    until_one_fails: bool = True,
) -> dict[str, str]:
    """Return which tests fail with a broken file, and how: one of them, or all.

    A test that fails with the whole code as well is left out. Only what is quick runs of a test,
    unless it is *named*.
    """
    limits = {
        test: SECONDS + 5 * known.tests[test].seconds for test in tests if test in known.tests
    }
    quick = {*tests}.difference(named)
    seconds = 60 + sum(limits.values())
    while tests:
        failed = copy.run_broken(
            path,
            broken,
            tests,
            seconds=seconds,
            limits=limits,
            quick=quick,
            until_one_fails=until_one_fails,
        ).failed
        real = copy.sound(failed, quick) | {IMPORT}
        if real.intersection(failed) or not failed or not until_one_fails:
            return {test: how for test, how in failed.items() if test in real}
        tests = [test for test in tests if test not in failed]
    return {}


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


def _key(told: str) -> str:
    """Return what is told of a mutant, without its line."""
    place, _, rest = told.partition(": ")
    return f"{place.rpartition(':')[0]} | {rest}"


def _equal() -> dict[str, str]:
    lines = EQUAL.read_text().splitlines()
    parts = (line.rpartition(" | ") for line in lines if line and not line.startswith("#"))
    return {key: reason for key, _, reason in parts}


def run_git(*words: str) -> subprocess.CompletedProcess[str]:
    """Run git in this checkout."""
    return subprocess.run(["git", *words], cwd=TOP, capture_output=True, text=True)


def _changed(base: str) -> dict[str, set[int]]:
    """Return the lines of each file that differ from a commit."""
    asked = run_git("diff", "-U0", "--no-color", "--no-renames", base, "--", "uuidd", "client")
    asked.check_returncode()
    text = asked.stdout
    found: dict[str, set[int]] = {}
    path = ""
    for line in text.splitlines():
        if line.startswith("+++ b/"):
            path = line.removeprefix("+++ b/")
        elif line.startswith("@@"):
            begin, _, count = line.split()[2].removeprefix("+").partition(",")
            found.setdefault(path, set()).update(range(int(begin), int(begin) + int(count or "1")))
    return found
