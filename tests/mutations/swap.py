"""Give imported functions the code of a broken file, which takes no import.

It suits a change inside of functions. What a module or a class does while it is imported, such as
assigning a constant or a default, is not done again.
"""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Iterator
from inspect import CO_OPTIMIZED
from types import CodeType, FunctionType
from typing import NamedTuple

Key = tuple[str, str, int]
"""The file, the qualified name and the first line of a function."""


class Change(NamedTuple):
    """The code of a function, whole and broken."""

    old: CodeType
    new: CodeType


def key(code: CodeType) -> Key:
    """Return what tells a function from all others."""
    return code.co_filename, code.co_qualname, code.co_firstlineno


def changes(path: str, before: bytes, after: bytes) -> list[Change] | None:
    """Return the functions that differ; None if one of them cannot be swapped."""
    old = compile(before, path, "exec", dont_inherit=True)
    found = _differing(old, compile(after, path, "exec", dont_inherit=True))
    if found is None:
        return None
    times = Counter(map(key, _all(old)))
    # Such as two lambdas in one line.
    return None if any(times[key(change.old)] > 1 for change in found) else found


def imported() -> dict[Key, list[FunctionType]]:
    """Return all functions that there are, also those that others have wrapped."""
    found: dict[Key, list[FunctionType]] = {}
    for one in gc.get_objects():
        if type(one) is FunctionType:
            found.setdefault(key(one.__code__), []).append(one)
    return found


def is_imported(functions: dict[Key, list[FunctionType]], found: list[Change]) -> bool:
    """Return whether *functions* has all that are changed, but for those that others make."""
    return all(
        key(change.old) in functions or "<locals>" in change.old.co_qualname for change in found
    )


def swap(functions: dict[Key, list[FunctionType]], found: list[Change]) -> None:
    """Give *functions* their broken code."""
    for change in found:
        for function in functions.get(key(change.old), ()):
            function.__code__ = change.new


def _differing(old: CodeType, new: CodeType) -> list[Change] | None:
    if old == new:
        return []
    alike = _own(old) == _own(new)
    if not alike and not _lasting(new) <= _lasting(old):
        # Which function inside has become which cannot be told.
        return None
    found = []
    for change in map(_differing, _inner(old), _inner(new)) if alike else ():
        if change is None:
            return None
        found += change
    if old.co_flags & CO_OPTIMIZED:
        found.append(Change(old, new))
        return found if old.co_freevars == new.co_freevars else None
    return found if alike else None


def _own(code: CodeType) -> CodeType:
    """Return the code without that of the functions inside, and without where they end."""
    kept = (one.co_qualname if isinstance(one, CodeType) else one for one in code.co_consts)
    return code.replace(co_consts=tuple(kept), co_linetable=b"")


def _inner(code: CodeType) -> list[CodeType]:
    return [one for one in code.co_consts if isinstance(one, CodeType)]


def _lasting(code: CodeType) -> set[CodeType]:
    """Return the functions inside that can still be called when the code has ended."""
    passing = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")
    return {one for one in _inner(code) if one.co_name not in passing}


def _all(code: CodeType) -> Iterator[CodeType]:
    yield code
    for inner in _inner(code):
        yield from _all(inner)
