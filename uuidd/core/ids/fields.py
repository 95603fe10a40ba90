"""Range checks for the fields of an id, so that none bleeds into its neighbour."""

from __future__ import annotations


def check(name: str, value: int, bits: int) -> int:
    """Give *value* back if it fits into *bits* bits.

    Raises TypeError for what is no int (a bool is none), ValueError for what does not fit; both
    name the field, the value and the range.
    """
    if type(value) is not int:
        raise TypeError(f"{name} is {value!r}; it must be an int")
    if not 0 <= value < 1 << bits:
        raise ValueError(f"{name} is {value}; it must be 0 to {(1 << bits) - 1} ({bits} bits)")
    return value
