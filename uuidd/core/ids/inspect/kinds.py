"""An id as one kind of id reads it.

Nothing here asks whether bits are likely to be of a kind; see ``plausible``.
"""

from __future__ import annotations

from dataclasses import dataclass

from uuidd.core.ids.inspect import others, parts, uuidkinds
from uuidd.core.ids.inspect.others import EPOCHS, time_field
from uuidd.core.ids.inspect.parts import Fields

KINDS = (*uuidkinds.KINDS, *others.FIELDS, *EPOCHS)
"""All kinds that can be asked for. ``leaf`` is Meituan's: a Snowflake with a worker of 10 bits."""

_FIELDS = {**uuidkinds.FIELDS, **others.FIELDS}
_TEXTS = {**uuidkinds.TEXTS, **others.TEXTS}


@dataclass(frozen=True, slots=True)
class Reading:
    """An id as one kind reads it. Text and fields are made when asked for, anew each time.

    *kind* is one of ``KINDS``, or ``unknown`` for a UUID of no version or variant in use.
    *epoch*, in Unix milliseconds, stands in for the one of ``EPOCHS``. *base* names what the id
    was given in, if not in decimal.
    """

    kind: str
    value: int
    epoch: int | None = None
    base: str | None = None

    @property
    def text(self) -> str:
        """The id as its kind writes it."""
        return _TEXTS.get(self.kind, str)(self.value)

    @property
    def fields(self) -> Fields:
        """What the id is made of, in the order of ``ORDER``, as far as the kind has it."""
        if told := _FIELDS.get(self.kind):
            return told(self.value)
        epoch = EPOCHS[self.kind] if self.epoch is None else self.epoch
        field = time_field(self.kind, epoch)
        base: Fields = {} if self.base is None else {"base": self.base}
        return {
            **others.BY_EPOCH[self.kind](self.value, field),
            **base,
            "full_on": parts.full_on(field),
        }
