"""The catalogue: ways to break the code, and the tests that should see each."""

from __future__ import annotations

import builtins
import re
import symtable
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tests.coverage.measuring import TOP
from tests.mutations.place import C, NoPlaceError, find, near, scopes
from tests.mutations.trial import IMPORT, Copy, Trial, in_copies, say


class Mutation(NamedTuple):
    """In *function*, *old* becomes *new*, and one of *tests* then fails.

    `place.py` says how a function is named, and what *old* stands for. A *new* that is empty
    removes *old*. *why* says what goes wrong for users. *tests* are names of test functions, or of
    modules of tests, with the name of their module in front where several have it; the fastest come
    first, since the first that fails ends the run.
    """

    name: str
    why: str
    function: str
    old: str
    new: str
    tests: tuple[str, ...]


class Break(NamedTuple):
    """A mutation as this checkout has it: the file at *path*, broken, and tests for pytest."""

    mutation: Mutation
    path: str
    source: bytes
    tests: tuple[str, ...]


class FaultyError(Exception):
    """The catalogue does not suit the code; each of *faults* is a line for people."""

    def __init__(self, faults: list[str]) -> None:
        super().__init__("\n".join(faults))
        self.faults = faults


def breaks(mutations: Sequence[Mutation], top: Path) -> list[Break]:
    """Return what breaks the checkout at *top*; FaultyError if any mutation has a fault."""
    every, tests = scopes(top), _Tests(top)
    of_c = {scope.text: scope.path for scope in every if scope.path.endswith(C)}
    c_words = {word for text, path in of_c.items() for word in _unknown(text, path)}
    found, faults = [], []
    times = Counter(mutation.name for mutation in mutations)
    for mutation in mutations:
        wrong = [] if times[mutation.name] == 1 else ["another has the same name"]
        named = []
        for test in mutation.tests:
            try:
                named.append(tests.find(test))
            except NoPlaceError as error:
                wrong.append(str(error))
        if mutation.old == mutation.new:
            wrong.append("it changes nothing")
        try:
            place = find(every, mutation.function, mutation.old)
            path, text, broken = place.scope.path, place.scope.text, place.filled(mutation.new)
            known = c_words if path.endswith(C) else _unknown(text, path)
            unknown = sorted(_unknown(broken.decode(), path) - known)
            wrong += [f"{name}, of its new code, is not there" for name in unknown]
            found.append(Break(mutation, path, broken, tuple(named)))
        except NoPlaceError as error:
            wrong.append(str(error))
        except SyntaxError as error:
            wrong.append(f"{error.msg}: {(error.text or '').strip()}")
        faults += [f"{mutation.name}: {fault}" for fault in wrong]
    if faults:
        raise FaultyError(faults)
    return found


@cache
def _unknown(text: str, path: str) -> frozenset[str]:
    """Return names that are used, and may be nowhere: those that are new here are a fault.

    In Python these are global names that are neither assigned nor Python's, and private attributes;
    in C, all words.
    """
    if path.endswith(C):
        return frozenset(re.findall(r"[A-Za-z_]\w*", text))
    top = symtable.symtable(text, path, "exec")
    known = {*dir(builtins), "__file__"} | {
        symbol.get_name() for symbol in top.get_symbols() if symbol.is_local()
    }
    used = set()
    tables = [top]
    while tables:
        table = tables.pop()
        tables += table.get_children()
        used |= {s.get_name() for s in table.get_symbols() if s.is_global() and s.is_referenced()}
    return frozenset(used - known | {*re.findall(r"\._(?!_)\w+", text)})


class _Tests:
    """All tests, by name."""

    _DEFINITION = re.compile(r"^(?:async def |def |class |)(test_\w+|Test\w+)", re.MULTILINE)

    def __init__(self, top: Path) -> None:
        self._nodes: dict[str, list[str]] = {}
        for path in sorted((top / "tests").rglob("test_*.py")):
            file = path.relative_to(top)
            self._add(file.with_suffix("").parts, str(file))
            for name in {*self._DEFINITION.findall(path.read_text())}:
                self._add((*file.with_suffix("").parts, name), f"{file}::{name}")

    def find(self, test: str) -> str:
        """Return what pytest calls a test; NoPlaceError if no test or several have its name."""
        nodes = self._nodes.get(test, [])
        if len(nodes) == 1:
            return nodes[0]
        if nodes:
            raise NoPlaceError(f"{test} is {' and '.join(nodes)}: name the module too")
        names = {name for name in self._nodes if "." not in name}
        raise NoPlaceError(f"there is no {test}; near it: {', '.join(near(test, names))}")

    def _add(self, parts: tuple[str, ...], node: str) -> None:
        for begin in range(len(parts)):
            self._nodes.setdefault(".".join(parts[begin:]), []).append(node)


def check(mutations: Sequence[Mutation]) -> list[Break] | None:
    """Return what breaks the code; print what does not suit it, and return None, if anything."""
    try:
        return breaks(mutations, TOP)
    except FaultyError as error:
        say(f"{error}\n\n{len(error.faults)} faults in {len(mutations)} mutations")
        return None


def run(mutations: Sequence[Mutation], jobs: int) -> bool:
    """Try each mutation, *jobs* at a time, and print which test failed; True if all were caught."""
    wanted = check(mutations)
    if wanted is None:
        return False

    def tried(broken: Break, copy: Copy) -> tuple[Mutation, Trial]:
        return broken.mutation, copy.run_broken(broken.path, broken.source, broken.tests)

    survivors = []
    for mutation, trial in in_copies(tried, wanted, jobs, before=[*_needed(wanted)]):
        say(f"{mutation.name}: {_verdict(trial)}")
        if not trial.caught:
            survivors.append(mutation)
            sys.stderr.write(f"{trial.output}\n")
    say(f"\n{len(wanted) - len(survivors)} of {len(wanted)} caught")
    for mutation in survivors:
        say(f"NOT CAUGHT: {mutation.name}, in {mutation.function}: {mutation.why}")
    return not survivors


def _needed(wanted: Sequence[Break]) -> Iterator[str]:
    """Yield all tests of mutations; beside a file that is needed whole no test of it is named."""
    every = {test for broken in wanted for test in broken.tests}
    for test in sorted(every):
        if "::" not in test or test.partition("::")[0] not in every:
            yield test


def _verdict(trial: Trial) -> str:
    if IMPORT in trial.failed:
        return "NOT TESTED: it cannot be imported or compiled"
    for test, how in trial.failed.items():
        return test if how == "fail" else f"{test} ({how})"
    return "NO TEST: IT SURVIVES"
