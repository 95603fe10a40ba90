"""Find a piece of code in a function, and put another in its place.

1. A function is named by its qualified name, `Saver.save`, wherever its module is. Where several
   functions have that name, the last parts of the module's name come first: `saver.Saver.save`.
   A class or a module is named likewise: that is the code outside its functions. A function of C
   is named with its file: `core.c:core_exec`.
2. Layout and comments do not matter, and all else has to be the same. `...` between two other parts
   stands for the code up to where the second part is next.
3. A piece has to be in its function exactly once.
"""

from __future__ import annotations

import ast
import difflib
import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

PACKAGES = ("uuidd", "client/uuidd_client")
EXTENSION = "client/extension"
C = (".c", ".h")

Function = ast.FunctionDef | ast.AsyncFunctionDef

_WORD = r"""(?P<skipped>\s+|%s)
    |(?i:[bfru]{0,2})(?:\"{3}(?:\\.|[^\\])*?\"{3}|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')
    |[^\W\d]\w*|\.?\d[\w.]*|\.\.\.
    |<<=|>>=|\*\*|//|->|:=|\+\+|--|&&|\|\||<<|>>|[-+*/%%&|^<>=!]=|."""
_OF_PYTHON, _OF_C = (
    re.compile(_WORD % comment, re.DOTALL | re.VERBOSE)
    for comment in (r"\#[^\n]*", r"/\*.*?\*/|//[^\n]*")
)

# "name(" in the first line, and "{" before any ";", so no declaration.
_C_FUNCTION = re.compile(
    r"^[A-Za-z][^\n;{}=]*?\b(\w+)\([^;{}]*\)\s*\{.*?^\}", re.DOTALL | re.MULTILINE
)


class NoPlaceError(Exception):
    """The function, or the piece in it, is not there exactly once; the message is for people."""


class Module(NamedTuple):
    """A file of Python: the module's full *name*, its *path* from the top, its text, its tree."""

    name: str
    path: str
    source: bytes
    tree: ast.Module


class Token(NamedTuple):
    """A word or a sign, and where it begins and ends."""

    text: str
    begin: int
    end: int


class Scope(NamedTuple):
    """Code in the file at *path*, which has *text*: a function, or what is outside of functions.

    Its *name* has as much of *full*, which begins with the module, as must be told.
    """

    path: str
    text: str
    full: str
    name: str
    is_function: bool
    begin: int
    tokens: Sequence[Token]

    @property
    def line(self) -> int:
        """The line in which it begins."""
        return self.text.count("\n", 0, self.begin) + 1


class Place(NamedTuple):
    """Where in a file a piece is, and the code that each `...` stands for there."""

    scope: Scope
    begin: int
    end: int
    skipped: list[Token]

    def filled(self, new: str) -> bytes:
        """Return the text of the file with *new* in this place."""
        text, path = self.scope.text, self.scope.path
        indent = text[text.rfind("\n", 0, self.begin) + 1 : self.begin]
        if indent.strip():
            indent = ""
        elif not new and _language(path) is _OF_PYTHON:
            new = "pass"
        new = new.replace("\n", f"\n{indent}")
        gaps = [token for token in tokens(new, path) if token.text == "..."]
        for gap, skipped in reversed([*zip(gaps, self.skipped, strict=False)]):
            was = skipped.begin - text.rfind("\n", 0, skipped.begin) - 1
            now = gap.begin - new.rfind("\n", 0, gap.begin) - 1
            if "\n" not in new[: gap.begin]:
                now += len(indent)
            code = skipped.text.replace("\n" + " " * was, "\n" + " " * now)
            new = new[: gap.begin] + code + new[gap.end :]
        return (text[: self.begin] + new + text[self.end :]).encode()


def tokens(text: str, path: str) -> list[Token]:
    """Return the words and signs of a text in the language of a file."""
    return [
        Token(found[0], *found.span())
        for found in _language(path).finditer(text)
        if found["skipped"] is None
    ]


def _language(path: str) -> re.Pattern[str]:
    return _OF_C if path.endswith(C) else _OF_PYTHON


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


def scopes(top: Path) -> list[Scope]:
    """Return all functions, classes and modules below *top* in which a piece may be."""
    found: list[Scope] = []
    for module in modules(top):
        found += _of_python(module)
    for path in sorted((top / EXTENSION).glob("*.[ch]")):
        text, name = path.read_text(), str(path.relative_to(top))
        every = tokens(text, name)
        for match in _C_FUNCTION.finditer(text):
            begin, end = match.span()
            inside = [token for token in every if begin <= token.begin < end]
            full = f"{path.name}:{match[1]}"
            found.append(Scope(name, text, full, full, True, begin, inside))
    return found


def _of_python(module: Module) -> Iterator[Scope]:
    text = module.source.decode()
    every = tokens(text, module.path)
    begins = [token.begin for token in every]
    lines = [0]
    for line in text.splitlines(keepends=True):
        lines.append(lines[-1] + len(line))

    def span(node: ast.AST) -> tuple[int, int]:
        if isinstance(node, ast.Module):
            return 0, len(text)
        first = min(part.lineno for part in (node, *node.decorator_list))  # type: ignore[attr-defined]
        return lines[first - 1], lines[node.end_lineno]  # type: ignore[attr-defined]

    def scope(node: ast.AST, name: str) -> Scope:
        begin, end = span(node)
        is_function = isinstance(node, Function)
        own = every[bisect_left(begins, begin) : bisect_left(begins, end)]
        for a, b in [] if is_function else map(span, _functions(node)):
            own = [token for token in own if not a <= token.begin < b]
        full = f"{module.name}.{name}".rstrip(".")
        own_name = name or full.rpartition(".")[2]
        return Scope(module.path, text, full, own_name, is_function, begin, own)

    yield scope(module.tree, "")
    for node, name in _named(module.tree, ""):
        yield scope(node, name)


def _functions(node: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, Function):
            yield child
        else:
            yield from _functions(child)


def _named(node: ast.AST, prefix: str) -> Iterator[tuple[ast.AST, str]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, Function | ast.ClassDef):
            yield child, f"{prefix}{child.name}"
            yield from _named(child, f"{prefix}{child.name}.")
        elif isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case):
            yield from _named(child, prefix)


def find(every: Sequence[Scope], function: str, old: str) -> Place:
    """Return the one place of *old* in *function*; NoPlaceError if there is not one."""
    named = [scope for scope in every if _is_named(scope, function)]
    # A function, where a module has the same name.
    named = [scope for scope in named if scope.is_function] or named
    homes = sorted({scope.full.removesuffix(f".{scope.name}") for scope in named})
    if len(homes) > 1:
        raise NoPlaceError(f"{function} is in {' and '.join(homes)}: name the module too")
    if not named:
        alike = ", ".join(near(function, {scope.name for scope in every})) or "nothing"
        raise NoPlaceError(f"there is no {function}; near it: {alike}{_elsewhere(every, old)}")
    found = [place for scope in named for place in _places(scope, old)]
    if len(found) == 1:
        return found[0]
    told = f"{named[0].path}:{named[0].line}: its code is"
    if not found:
        raise NoPlaceError(f"{told} not in {function}{_elsewhere(every, old)}")
    raise NoPlaceError(f"{told} {len(found)} times in {function}")


def _elsewhere(every: Sequence[Scope], old: str) -> str:
    """Return a hint at the functions that hold such a piece, if they are few."""
    names = [scope.name for scope in every if scope.is_function and any(_places(scope, old))]
    return f"; its code is in {' and '.join(names)}" if 0 < len(names) < 4 else ""


def near(name: str, names: set[str]) -> list[str]:
    """Return the names that are most like a qualified name, or end as it does."""
    last = name.rpartition(".")[2]
    ends = sorted(other for other in names if other.rpartition(".")[2] == last)
    return list(dict.fromkeys(ends[:3] + difflib.get_close_matches(name, names)))


def _is_named(scope: Scope, function: str) -> bool:
    own = f".{function}".endswith(f".{scope.name}")
    return own and f".{scope.full}".endswith(f".{function}")


@cache
def _parts(piece: str, path: str) -> list[list[str]]:
    """Return the words and signs of a piece before, between and after its `...`."""
    parts: list[list[str]] = [[]]
    for token in tokens(piece, path):
        if token.text == "...":
            parts.append([])
        else:
            parts[-1].append(token.text)
    return parts


def _places(scope: Scope, old: str) -> Iterator[Place]:
    """Yield each place of *old*; `...` stands for as little as it can."""
    first, *others = _parts(old, scope.path)
    words = [token.text for token in scope.tokens]

    def at(part: list[str], begin: int) -> int:
        """Return where the next such words are; -1 if they are nowhere."""
        last = len(words) - len(part)
        return next((i for i in range(begin, last + 1) if words[i : i + len(part)] == part), -1)

    here = at(first, 0)
    while first and here >= 0:
        end, skipped = here + len(first), []
        for part in others:
            begin, end = end, at(part, end)
            if end < 0:
                return
            a, b = scope.tokens[begin].begin, scope.tokens[max(begin, end - 1)].end
            skipped.append(Token(scope.text[a:b] if begin < end else "", a, b))
            end += len(part)
        yield Place(scope, scope.tokens[here].begin, scope.tokens[end - 1].end, skipped)
        here = at(first, here + 1)
