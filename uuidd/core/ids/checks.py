"""Checks of values that callers pass, and how the errors show these values."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from uuidd.core.typed import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import TypeVar

    Value = TypeVar("Value")

LONGEST = 60
"""Characters of a value that an error shows."""


def shown(value: object) -> str:
    """Return any value in one short line."""
    try:
        text = repr(value)
    except ValueError:
        # Python refuses to write an int of more than 4,300 digits.
        return f"<{type(value).__name__} too long to show>"
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."


def look_up(what: str, name: str, table: Mapping[str, Value]) -> Value:
    """Return the value of *name* in *table*. Raises ValueError as ``check_name`` does."""
    check_name(what, name, table)
    return table[name]


def check_name(what: str, name: object, known: Collection[str]) -> None:
    """Raise ValueError, which lists the *known* names, unless *name* is one of them.

    *what* says in the error what the name is for, such as ``kind``.
    """
    if not (isinstance(name, str) and name in known):
        raise ValueError(f"{what} is {shown(name)}; it must be one of {', '.join(known)}")


def check_bits(name: str, value: int, bits: int) -> int:
    """Return *value* if it fits into *bits* bits, so that no field of an id runs into the next.

    Raises TypeError if it is not an int (a bool is not one), ValueError if it does not fit; both
    name the field, the value and the range.
    """
    if type(value) is not int:
        raise TypeError(f"{name} is {shown(value)}; it must be an int")
    if not 0 <= value < 1 << bits:
        most = (1 << bits) - 1
        raise ValueError(f"{name} is {shown(value)}; it must be 0 to {most} ({bits} bits)")
    return value
