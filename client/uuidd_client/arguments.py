"""What callers give, checked."""

from __future__ import annotations

import math

from uuidd.core.ids.checks import look_up, shown
from uuidd.core.ids.kinds import KINDS
from uuidd_client.system import YEAR

MAX_MAKE = 10_000_000
"""Ids of one call: a host has ticks for so many in a second, and as UUIDs they take a gigabyte."""


def known(kind: str, form: object) -> str:
    """Give the form that is meant. ValueError for one that *kind* has not, or an unknown kind."""
    forms = look_up("kind", kind, KINDS).forms
    if form is None:
        return forms[0]
    if not (isinstance(form, str) and form in forms):
        raise ValueError(f"form is {shown(form)}; of {kind} there are {', '.join(forms)}")
    return form


def counted(count: object) -> int:
    """Give *count*, 0 to MAX_MAKE. Raises ValueError, and TypeError if it is no int."""
    if type(count) is not int:
        raise TypeError(f"count is {shown(count)}; it must be an int")
    if count < 0:
        raise ValueError(f"count is {shown(count)}; it must be 0 or more")
    if count > MAX_MAKE:
        raise ValueError(
            f"count is {shown(count)}; make gives {MAX_MAKE} at most: call it again for more, or"
            " take them from iter, which has no end"
        )
    return count


def seconds(name: str, value: object) -> float:
    """Give *value*, a year at most, or -1 if it is no finite number.

    Raises TypeError if it is no number at all.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{name} is {shown(value)}; it must be a number of seconds")
    if value in (math.inf, -math.inf) or value != value:
        return -1
    return min(value, YEAR)
