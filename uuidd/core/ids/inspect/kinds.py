"""The kinds of ids that can be inspected, and an id read as one of them.

Whether bits are likely to be of a kind is in ``plausible``.
"""

from __future__ import annotations

from dataclasses import dataclass

from uuidd.core.ids import snowflake
from uuidd.core.ids.formats import FORMATS
from uuidd.core.ids.inspect.fields import Fields, fields_of, text_of
from uuidd.core.ids.ticks import TimeField

UUID_KINDS = (*(kind for kind, form in FORMATS.items() if form.version), "nil", "max", "guid")

INSPECTED_KINDS = (*UUID_KINDS, *(kind for kind in FORMATS if kind not in UUID_KINDS))
"""All kinds that a caller can name."""


def time_field(kind: str, epoch: int | None) -> TimeField | None:
    """Return the time field of a kind; *epoch* is that of a Snowflake, by default Twitter's."""
    if epoch is not None:
        return snowflake.time_field(epoch)
    return FORMATS[kind].time if kind in FORMATS else None


@dataclass(frozen=True, slots=True)
class Reading:
    """An id read as one kind. Its text and fields are computed at each access.

    *kind* is one of ``INSPECTED_KINDS``, or ``unknown`` for a UUID whose version or variant is not
    in use. *epoch*, in Unix milliseconds, is that of a Snowflake, by default Twitter's. *base*
    names the base of the text that was read, if that is not decimal.
    """

    kind: str
    value: int
    epoch: int | None = None
    base: str | None = None

    @property
    def text(self) -> str:
        """The id as its kind writes it."""
        return text_of(self.kind, self.value)

    @property
    def fields(self) -> Fields:
        """The fields that the kind has, in the order of ``ORDER``."""
        return fields_of(self.kind, self.value, time_field(self.kind, self.epoch), self.base)
