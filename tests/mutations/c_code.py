"""Find a piece of C in a function of the client's extension.

1. Functions begin and end at the begin of a line.
2. Layout and comments do not matter. All else has to be the same: names, too.
3. A piece has to be in its function exactly once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.mutations.place import NoPlaceError, near

SOURCES = "client/extension"

_TOKEN = re.compile(
    r"""(?P<skipped>\s+|/\*.*?\*/|//[^\n]*)
    |[A-Za-z_]\w*|\.?\d[\w.]*|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'
    |<<=|>>=|->|\+\+|--|&&|\|\||<<|>>|[-+*/%&|^<>=!]=|.""",
    re.DOTALL | re.VERBOSE,
)
_NAME = re.compile(r"[A-Za-z_]\w*")

# "name(" in the first line, and "{" before any ";", so no declaration.
_FUNCTION = re.compile(
    r"^[A-Za-z][^\n;{}=]*?\b(\w+)\([^;{}]*\)\s*\{.*?^\}", re.DOTALL | re.MULTILINE
)


class Token(NamedTuple):
    """A word or a sign of C, and where it begins."""

    text: str
    at: int


class File(NamedTuple):
    """A file of C: its *path* from the top, and its text."""

    path: str
    text: str

    @property
    def name(self) -> str:
        """The name without a folder."""
        return self.path.rpartition("/")[2]

    def functions(self) -> Iterator[tuple[str, int, int]]:
        """Yield the name of each function, and where it begins and ends."""
        for found in _FUNCTION.finditer(self.text):
            yield found[1], found.start(), found.end()


def files(top: Path) -> list[File]:
    """Return the files of the extension below *top*."""
    return [
        File(str(path.relative_to(top)), path.read_text())
        for path in sorted((top / SOURCES).glob("*.[ch]"))
    ]


def is_named(function: str) -> bool:
    """Tell whether a function is named as those of C are: ``cutting.c:read_clock``."""
    return re.match(r"\w+\.[ch]:\w+$", function) is not None


def broken(
    sources: Sequence[File], function: str, old: str, new: str
) -> tuple[str, bytes, list[str]]:
    """Return the path of the file of *function*, and its text with *new* in place of *old*.

    The names of *new* that are nowhere in the extension come with them. Raises NoPlaceError if
    *old* is not there once.
    """
    file, begin, end = _scope(sources, function)
    tokens = list(_tokens(file.text, begin, end))
    wanted = [token.text for token in _tokens(old, 0, len(old))]
    words = [token.text for token in tokens]
    found = [at for at in range(len(words)) if words[at : at + len(wanted)] == wanted]
    told = f"{file.path}:{file.text.count(chr(10), 0, begin) + 1}: its code is"
    if not wanted or len(found) != 1:
        raise NoPlaceError(f"{told} {f'{len(found)} times' if found else 'not'} in {function}")
    known = {word for other in sources for word in _NAME.findall(other.text)}
    first, last = tokens[found[0]], tokens[found[0] + len(wanted) - 1]
    text = file.text[: first.at] + new + file.text[last.at + len(last.text) :]
    return file.path, text.encode(), sorted({*_NAME.findall(new)} - known)


def _scope(sources: Sequence[File], function: str) -> tuple[File, int, int]:
    name, _, wanted = function.partition(":")
    found = [
        (file, begin, end)
        for file in sources
        if file.name == name
        for inner, begin, end in file.functions()
        if inner == wanted
    ]
    if len(found) == 1:
        return found[0]
    names = {f"{file.name}:{inner}" for file in sources for inner, _, _ in file.functions()}
    alike = ", ".join(near(function, names)) or "nothing"
    raise NoPlaceError(f"there is no {function}; near it: {alike}")


def _tokens(text: str, begin: int, end: int) -> Iterator[Token]:
    for found in _TOKEN.finditer(text, begin, end):
        if found["skipped"] is None:
            yield Token(found[0], found.start())
