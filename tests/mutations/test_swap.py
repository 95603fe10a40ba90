from __future__ import annotations

import pytest

from tests.mutations.swap import changes, imported, is_imported, swap

FILE = "swapped.py"

SOURCE = b"""
from functools import cache, wraps

def wrapped(function):
    @wraps(function)
    def inner():
        return function() + 1
    return inner

@wrapped
def one():
    return 1

class Some:
    @property
    def two(self):
        return 2

@cache
def three():
    return sum([number for number in (1, 2)])
"""


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        (b"return 1\n", b"return 5\n", (6, 2, 3)),
        (b"+ 1", b"- 1", (0, 2, 3)),
        (b"return 2", b"return None", (2, None, 3)),
        (b"return sum([number for number in (1, 2)])", b"pass", (2, 2, None)),
    ],
)
def test_imported_functions_get_their_broken_code(
    old: bytes, new: bytes, found: tuple[int, int | None, int | None]
) -> None:
    """Also those that a decorator has wrapped."""
    names: dict[str, object] = {}
    exec(compile(SOURCE, FILE, "exec"), names)  # noqa: S102  (as an import does)
    one, some, three = names["one"], names["Some"], names["three"]
    swapped = changes(FILE, SOURCE, SOURCE.replace(old, new))
    assert swapped is not None
    assert is_imported(imported(), swapped)
    swap(imported(), swapped)
    assert (one(), some().two, three()) == found  # type: ignore[operator]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"x = 1", b"x = 2"),
        (b"def f(a=1): ...", b"def f(a=2): ..."),
        (b"class A:\n    x = 1", b"class A:\n    x = 2"),
        (
            b"def f(x):\n    def g():\n        return x\n    return g",
            b"def f(x):\n    def g():\n        pass\n    return g",
        ),
        (b"f, g = lambda: 1, lambda: 2", b"f, g = lambda: 1, lambda: 3"),
    ],
)
def test_what_is_done_while_a_module_is_imported_cannot_be_swapped(
    before: bytes, after: bytes
) -> None:
    """Nor can what a function closes over, or which of two lambdas in a line is meant."""
    assert changes(FILE, before, after) is None


def test_a_function_that_is_not_imported_yet_cannot_be_swapped() -> None:
    """Its import would give it the whole code."""
    found = changes("elsewhere.py", SOURCE, SOURCE.replace(b"return 2", b"return 3"))
    assert found is not None
    assert not is_imported(imported(), found)
