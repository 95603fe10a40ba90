from __future__ import annotations

import ast

import pytest

from tests.mutations.place import Module
from tests.mutations.rules import is_real, mutants


def broken(source: str) -> list[str]:
    """Return what the rules make of a file, each mutant a whole file."""
    code = source.encode()
    module = Module("m", "m.py", code, ast.parse(code))
    found = [mutant for mutant in mutants(module) if is_real(mutant, module)]
    return [mutant.applied(code).decode() for mutant in found]


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("a < b", ["a <= b"]),
        ("(a) == (b)", ["(a) != (b)"]),
        ("(a) is (b)", ["(a) is not (b)"]),
        ("a and b", ["a or b"]),
        ("x = 1", ["x = 2"]),
        ("x = False", ["x = True"]),
        ("x = a + b", ["x = a - b"]),
        ("x = f(a, b)", ["x = f(b, a)"]),
        ("x = max(a, b)", []),
        ("x = f(*a, b)", []),
        ("f()", ["pass"]),
        ("a.b = c", ["pass"]),
        ("a += b", ["pass"]),
        ("if a:\n    b", ["if (not (a)):\n    b"]),
        ("x = [a for a in b if c]", ["x = [a for a in b if (not (c))]"]),
        ("def f():\n    return a", ["def f():\n    return None"]),
        ("def f():\n    return False", ["def f():\n    return True"]),
        ("def f():\n    raise a", ["def f():\n    pass"]),
    ],
)
def test_each_rule_makes_its_mutants(source: str, found: list[str]) -> None:
    """And none that cannot be parsed."""
    assert broken(source) == found


@pytest.mark.parametrize(
    "source",
    [
        '"""A text of 1 < 2."""',
        "def f(a: int | None) -> Literal[1]: ...",
        "log.warning(a, b)",
        'x = f"{a + b}"',
        '__all__ = ["a", "b"]',
        "if TYPE_CHECKING:\n    a = 1",
        "TYPE_CHECKING = False",
        'A = TypeVar("A", int, str)',
    ],
)
def test_what_no_test_is_to_see_is_left_alone(source: str) -> None:
    """Documents, types and logs."""
    assert broken(source) == []


def test_a_mutant_keeps_the_text_around_it() -> None:
    """Its place counts bytes, and not characters."""
    assert broken("é = 'ü'; x = (a\n     < b)  # ö\n") == ["é = 'ü'; x = (a\n     <= b)  # ö\n"]


def test_what_follows_a_mutant_keeps_its_line() -> None:
    """Although a dropped statement was written in several lines."""
    assert broken("f(\n)  # ö\n") == ["pass\n  # ö\n"]


def test_a_mutant_is_told_within_its_line() -> None:
    """So that of two like it, in one line or in one file, it is clear which is meant."""
    code = b"if a < b or (c <\n  d):\n  x"
    module = Module("m", "m.py", code, ast.parse(code))
    told = [one.told(code) for one in mutants(module) if one.rule == "comparison"]
    assert told == [
        "m.py:1: comparison: if a [< -> <=] b or (c <",
        "m.py:1: comparison: if a < b or (c [< -> <=] d):",
    ]
