"""What a caller gave, as the errors that refuse it show it, and looked up by name."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TypeVar

Value = TypeVar("Value")

LONGEST = 60
"""Characters of a value that an error shows."""


def shown(value: object) -> str:
    """Give a value in one short line, whatever it is."""
    try:
        text = repr(value)
    except ValueError:
        # Python does not write an int of more than 4,300 digits.
        return f"<{type(value).__name__} too long to show>"
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."


def named(what: str, name: str, table: Mapping[str, Value]) -> Value:
    """Give what *name* stands for in *table*. Raises ValueError as ``check_name``."""
    check_name(what, name, table)
    return table[name]


def check_name(what: str, name: object, known: Collection[str]) -> None:
    """Raise ValueError, which says *what* is called so, unless *name* is one of the *known*."""
    if not (isinstance(name, str) and name in known):
        raise ValueError(f"{what} is {shown(name)}; it must be one of {', '.join(known)}")
