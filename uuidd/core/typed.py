"""What stands for ``typing`` where programs run: its import takes longer than a first id.

The client's modules, and those of the core that they import, take these names from here. For a type
checker they are those of ``typing``. Its other names are imported for type checkers alone.
"""

from __future__ import annotations

from collections import namedtuple

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any as Any
    from typing import NamedTuple as NamedTuple
else:
    Any = object

    class _Fields(type):
        """Makes of a class with fields a tuple with these names."""

        def __new__(meta, name, bases, body):
            if not bases:
                return super().__new__(meta, name, bases, body)
            fields = body["__annotations__"]
            defaults = [body.pop(field) for field in fields if field in body]
            made = namedtuple(name, fields, defaults=defaults)
            for key, value in body.items():
                setattr(made, key, value)
            return made

    class NamedTuple(metaclass=_Fields):
        """Stands for typing.NamedTuple. A module that uses it has annotations that are texts."""
