"""Any id's text, read as each kind of id that it may be."""

from __future__ import annotations

from uuidd.core.ids.inspect.kinds import KINDS, Reading
from uuidd.core.ids.inspect.parts import ORDER
from uuidd.core.ids.inspect.plausible import FROM, UNTIL
from uuidd.core.ids.inspect.texts import ALIASES, LONGEST, readings

__all__ = ["ALIASES", "FROM", "KINDS", "LONGEST", "ORDER", "UNTIL", "Reading", "readings"]
