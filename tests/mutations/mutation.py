"""A mutation: one way to break the code, and the tests that should see it."""

from __future__ import annotations

import ast
import builtins
import re
import symtable
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tests.mutations import c_code
from tests.mutations.piece import Piece, parsed
from tests.mutations.place import NoPlaceError, Place, Scopes, modules, near


class Mutation(NamedTuple):
    """In *function*, *old* becomes *new*, and one of *tests* then fails.

    `place.py` says how a function is named, and `piece.py` what *old* stands for; for a function of
    the C extension, `c_code.py` says both. A *new* that is empty removes *old*. *why* says what
    goes wrong for users. *tests* are names of test functions, or of modules of tests, with the name
    of their module in front where several have it; the fastest come first, since the first that
    fails ends the run.
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
    scopes, sources, tests = Scopes(modules(top)), c_code.files(top), _Tests(top)
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
            if c_code.is_named(mutation.function):
                path, broken, unknown = c_code.broken(sources, *mutation[2:5])
            else:
                old, new = _alike(parsed(mutation.old), parsed(mutation.new))
                place = scopes.find(mutation.function, old)
                path, broken = place.module.path, place.filled(new)
                unknown = [*_unknown(place, broken)]
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


def _alike(old: Piece, new: Piece) -> tuple[Piece, Piece]:
    """Take an expression for a statement, where the other is one."""
    if isinstance(old, ast.expr) and not isinstance(new, ast.expr):
        return [ast.Expr(old)], new
    if isinstance(new, ast.expr) and not isinstance(old, ast.expr):
        return old, [ast.Expr(new)]
    return old, new


def _unknown(place: Place, broken: bytes) -> Iterator[str]:
    """Yield the names that the broken file uses, and that neither it nor the whole file has."""
    module = place.module
    yield from sorted(_undefined(broken, module.path) - _undefined(module.source, module.path))
    yield from sorted(_private_attributes(broken) - _private_attributes(module.source))


@cache
def _undefined(source: bytes, path: str) -> frozenset[str]:
    """Return the names that are used, and neither assigned anywhere nor Python's."""
    top = symtable.symtable(source.decode(), path, "exec")
    known = {*dir(builtins), "__file__"} | {
        symbol.get_name() for symbol in top.get_symbols() if symbol.is_local()
    }
    found = set()
    tables = [top]
    while tables:
        table = tables.pop()
        tables += table.get_children()
        found |= {s.get_name() for s in table.get_symbols() if s.is_global() and s.is_referenced()}
    return frozenset(found - known)


@cache
def _private_attributes(source: bytes) -> frozenset[str]:
    return frozenset(re.findall(r"\._(?!_)\w+", source.decode()))


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
