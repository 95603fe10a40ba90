"""Checks of what callers pass."""

from __future__ import annotations

import os

from uuidd.core.ids.checks import look_up, shown
from uuidd.core.ids.kinds import KINDS
from uuidd_client.system import YEAR

MAX_MAKE = 10_000_000
"""The most ids of one call: a second of ticks, and a gigabyte as UUIDs."""


def known(kind: str, form: object) -> str:
    """Return *form*, or the default of *kind* for None.

    Raises ValueError for an unknown *kind*, and for a form that it does not have.
    """
    forms = look_up("kind", kind, KINDS).forms
    if form is None:
        return forms[0]
    if not (isinstance(form, str) and form in forms):
        raise ValueError(f"form is {shown(form)}; the forms of {kind} are {', '.join(forms)}")
    return form


def counted(count: object) -> int:
    """Return *count*, 0 to MAX_MAKE. Raises ValueError, or TypeError if it is not an int."""
    if type(count) is not int:
        raise TypeError(f"count is {shown(count)}; it must be an int")
    if count < 0:
        raise ValueError(f"count is {shown(count)}; it must be 0 or more")
    if count > MAX_MAKE:
        raise ValueError(
            f"count is {shown(count)}; make returns {MAX_MAKE} ids at most: call it again for more,"
            " or use iter, which has no limit"
        )
    return count


def seconds(name: str, value: object) -> float:
    """Return *value*, a year at most, or -1 if it is not finite.

    Raises TypeError if it is not a number.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{name} is {shown(value)}; it must be a number of seconds")
    if value in (float("inf"), float("-inf")) or value != value:
        return -1
    return min(value, YEAR)


def path_of(socket: object) -> str:
    """Return the path of a socket. Raises TypeError if *socket* is none."""
    if isinstance(socket, str | bytes | os.PathLike):
        return os.fsdecode(socket)
    raise TypeError(f"socket is {shown(socket)}; it must be a path: a str or an os.PathLike")
