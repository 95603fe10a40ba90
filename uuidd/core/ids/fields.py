"""Range checks for the fields of an id, so that none bleeds into its neighbour."""

from __future__ import annotations

from uuidd.core.ids.shown import shown


def check(name: str, value: int, bits: int) -> int:
    """Give *value* back if it fits into *bits* bits.

    Raises TypeError for what is no int (a bool is none), ValueError for what does not fit; both
    name the field, the value and the range.
    """
    if type(value) is not int:
        raise TypeError(f"{name} is {shown(value)}; it must be an int")
    if not 0 <= value < 1 << bits:
        most = (1 << bits) - 1
        raise ValueError(f"{name} is {shown(value)}; it must be 0 to {most} ({bits} bits)")
    return value
