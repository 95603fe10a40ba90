"""The text of any id, read as each kind of id that it may be."""

from __future__ import annotations

from uuidd.core.ids.inspect.fields import ORDER
from uuidd.core.ids.inspect.kinds import INSPECTED_KINDS, Reading
from uuidd.core.ids.inspect.plausible import FROM, UNTIL
from uuidd.core.ids.inspect.texts import ALIASES, LONGEST, readings

__all__ = [
    "ALIASES",
    "FROM",
    "INSPECTED_KINDS",
    "LONGEST",
    "ORDER",
    "UNTIL",
    "Reading",
    "readings",
]
