"""Find a piece of code by its function and by what it says, and put another in its place.

1. A function is named by its qualified name, `Saver.save`, wherever its module is. Where several
   functions have that name, the last parts of the module's name come first: `saver.Saver.save`.
   A class or a module is named likewise: that is the code outside its functions.
2. A piece, as `piece.py` says what is the same, has to be in its function exactly once.
"""

from __future__ import annotations

import ast
import builtins
import difflib
import textwrap
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tests.mutations.piece import Matching, Piece, is_block

PACKAGES = ("uuidd", "client/uuidd_client")

Function = ast.FunctionDef | ast.AsyncFunctionDef
_Window = Sequence[ast.expr | ast.stmt]


class NoPlaceError(Exception):
    """The function, or the piece in it, is not there exactly once; the message is for people."""


class Module(NamedTuple):
    """A file of source: the module's full *name*, its *path* from the top, its text, its tree."""

    name: str
    path: str
    source: bytes
    tree: ast.Module


class Scope(NamedTuple):
    """A function, a class or a module, and the names of the local variables in it."""

    module: Module
    name: str
    node: ast.Module | ast.ClassDef | Function
    local: frozenset[str]


class Place(NamedTuple):
    """Where in a file a piece is, and what stands for its names there."""

    module: Module
    line: int
    begin: int
    end: int
    indent: int
    matching: Matching

    def filled(self, new: Piece) -> bytes:
        """Return the file's source with *new* in this place."""
        text = textwrap.indent(self.matching.rewritten(new), " " * self.indent).lstrip()
        source = self.module.source
        return source[: self.begin] + text.encode() + source[self.end :]


def modules(top: Path) -> list[Module]:
    """Return every module of the packages below *top*, and their scripts."""
    found = []
    for package in PACKAGES:
        for path in sorted((top / package).rglob("*")):
            if path.suffix == ".py" or (path.parent.name == "scripts" and path.is_file()):
                parts = path.relative_to((top / package).parent).with_suffix("").parts
                name = ".".join(parts).removesuffix(".__init__")
                source = path.read_bytes()
                tree = ast.parse(source, str(path))
                found.append(Module(name, str(path.relative_to(top)), source, tree))
    return found


class Scopes:
    """All functions, classes and modules in which a piece may be."""

    def __init__(self, sources: Sequence[Module]) -> None:
        self._scopes: list[Scope] = []
        for module in sources:
            self._scopes.append(Scope(module, "", module.tree, frozenset()))
            self._scopes += _inner(module, module.tree, "", frozenset())

    def find(self, function: str, old: Piece) -> Place:
        """Return the one place of *old* in *function*; NoPlaceError if there is not one."""
        scopes = [scope for scope in self._scopes if _is_named(scope, function)]
        # A function, where a module has the same name.
        scopes = [scope for scope in scopes if scope.name] or scopes
        homes = sorted({scope.module.name for scope in scopes})
        if len(homes) > 1:
            raise NoPlaceError(f"{function} is in {' and '.join(homes)}: name the module too")
        if not scopes:
            names = {scope.name or scope.module.name for scope in self._scopes}
            alike = ", ".join(near(function, names)) or "nothing"
            raise NoPlaceError(f"there is no {function}; near it: {alike}{self._elsewhere(old)}")
        module, first_line = scopes[0].module, getattr(scopes[0].node, "lineno", 1)
        found = [match for scope in scopes for match in _matches(scope, old)]
        if len(found) == 1:
            return _place(module, *found[0])
        told = f"{module.path}:{first_line}: its code is"
        if not found:
            raise NoPlaceError(f"{told} not in {function}{self._elsewhere(old)}")
        lines = ", ".join(str(line) for line in sorted({window[0].lineno for window, _ in found}))
        raise NoPlaceError(f"{told} {len(found)} times in {function}, in lines {lines}")

    def _elsewhere(self, old: Piece) -> str:
        """Return a hint at the functions that hold such a piece, if they are few."""
        functions = [scope for scope in self._scopes if isinstance(scope.node, Function)]
        names = [scope.name for scope in functions if any(_matches(scope, old))]
        return f"; its code is in {' and '.join(names)}" if 0 < len(names) < 4 else ""


def near(name: str, names: set[str]) -> list[str]:
    """Return the names that are most like a qualified name, or end as it does."""
    last = name.rpartition(".")[2]
    ends = sorted(other for other in names if other.rpartition(".")[2] == last)
    return list(dict.fromkeys(ends[:3] + difflib.get_close_matches(name, names)))


def _is_named(scope: Scope, function: str) -> bool:
    full = f"{scope.module.name}.{scope.name}".rstrip(".")
    own = scope.name or full.rpartition(".")[2]
    return f".{full}".endswith(f".{function}") and f".{function}".endswith(f".{own}")


def _inner(module: Module, node: ast.AST, prefix: str, local: frozenset[str]) -> Iterator[Scope]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, Function | ast.ClassDef):
            name = f"{prefix}{child.name}"
            names = local | _locals(child) if isinstance(child, Function) else local
            yield Scope(module, name, child, names)
            yield from _inner(module, child, f"{name}.", names)
        elif isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case):
            yield from _inner(module, child, prefix, local)


def _locals(function: Function) -> frozenset[str]:
    """Return the names of parameters and local variables; what is imported keeps its name."""
    found, foreign = set(), set()
    for node in ast.walk(function):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                found.add(name)
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)):
                found.add(name)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                if node is not function:
                    found.add(name)
            case ast.Global(names=names):
                foreign |= {*names}
    return frozenset(found - foreign)


def _matches(scope: Scope, old: Piece) -> Iterator[tuple[_Window, Matching]]:
    """Yield each run of nodes that is the same as *old*."""
    # A builtin or a name of the module means what it says, unless the function has its own.
    fixed = {*dir(builtins), *_globals(scope.module.tree)} - scope.local
    wanted = [old] if isinstance(old, ast.expr) else old
    for window in _windows(scope, old):
        matching = Matching(scope.local, fixed)
        if all(map(matching.same, wanted, window)):
            yield window, matching


def _windows(scope: Scope, old: Piece) -> Iterator[_Window]:
    """Yield all that *old* may be: each expression, or each run of as many statements."""
    for node in _code(scope.node, outside=not isinstance(scope.node, Function)):
        if isinstance(old, ast.expr):
            if isinstance(node, ast.expr):
                yield [node]
            continue
        for _, block in ast.iter_fields(node):
            if is_block(block):
                for begin in range(len(block) - len(old) + 1):
                    yield block[begin : begin + len(old)]


def _code(node: ast.AST, *, outside: bool) -> Iterator[ast.AST]:
    """Yield the node and all below it, except in f-strings, and in functions if *outside*."""
    yield node
    if not isinstance(node, ast.JoinedStr):
        for child in ast.iter_child_nodes(node):
            if not (outside and isinstance(child, Function)):
                yield from _code(child, outside=outside)


@cache
def _globals(tree: ast.Module) -> set[str]:
    found = {node.name for node in tree.body if isinstance(node, Function)}
    for node in _code(tree, outside=True):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.ClassDef(name=name):
                found.add(name)
            case ast.alias(name=name, asname=alias):
                found.add(alias or name.partition(".")[0])
    return found


def _place(module: Module, window: _Window, matching: Matching) -> Place:
    lines = module.source.splitlines(keepends=True)
    first, last = window[0], window[-1]
    decorators: list[ast.expr] = getattr(first, "decorator_list", [])
    line = min([first.lineno, *(decorator.lineno for decorator in decorators)])
    begin = sum(map(len, lines[: line - 1])) + first.col_offset
    end = sum(map(len, lines[: (last.end_lineno or 0) - 1])) + (last.end_col_offset or 0)
    if module.source.startswith(b"elif", begin):
        raise NoPlaceError(f"{module.path}:{line}: an elif can be replaced only with its if")
    return Place(module, line, begin, end, first.col_offset, matching)
