"""The kinds of ids that can be inspected, and an id read as one of them.

Whether bits are likely to be of a kind is in ``plausible``.
"""

from __future__ import annotations

from dataclasses import dataclass

from uuidd.core.ids import snowflake
from uuidd.core.ids.inspect import foreign
from uuidd.core.ids.inspect.fields import (
    EPOCH_FIELDS,
    OTHER_FIELDS,
    TEXTS,
    UUID_FIELDS,
    Fields,
    full_on,
)
from uuidd.core.ids.ticks import TimeField

EPOCHS = {
    "snowflake": snowflake.TWITTER_EPOCH,
    "leaf": snowflake.TWITTER_EPOCH,
    **foreign.SONYFLAKE_EPOCHS,
    "uidgenerator": foreign.UIDGENERATOR_EPOCH,
}
"""The kinds whose users choose an epoch, with the default epoch, in Unix milliseconds.

``leaf`` is Meituan's: a Snowflake with a worker of 10 bits.
"""

UUID_KINDS = tuple(kind for kind in UUID_FIELDS if kind != "unknown")

INSPECTED_KINDS = (*UUID_KINDS, *OTHER_FIELDS, *EPOCHS)
"""All kinds that a caller can name."""

ORDER = (
    "version",
    "variant",
    "time",
    "timestamp",
    "clock_seq",
    "node",
    "worker",
    "datacenter_id",
    "worker_id",
    "sequence",
    "payload",
    "machine",
    "domain",
    "local_id",
    "family",
    "host",
    "custom_a",
    "custom_b",
    "custom_c",
    "random",
    "tick",
    "lane",
    "uuid",
    "node_is",
    "base",
    "full_on",
)
"""The names of all fields, in the order in which they are shown."""

_FIELDS = {**UUID_FIELDS, **OTHER_FIELDS}


def time_field(kind: str, epoch: int) -> TimeField:
    """Return the time field of a kind of ``EPOCHS`` whose epoch is *epoch*."""
    if kind == "uidgenerator":
        return foreign.uidgenerator_time(epoch)
    if kind in foreign.SONYFLAKE_EPOCHS:
        return foreign.sonyflake_time(epoch)
    return snowflake.time_field(epoch)


@dataclass(frozen=True, slots=True)
class Reading:
    """An id read as one kind. Its text and fields are computed at each access.

    *kind* is one of ``INSPECTED_KINDS``, or ``unknown`` for a UUID whose version or variant is not
    in use. *epoch*, in Unix milliseconds, replaces the one of ``EPOCHS``. *base* names the base of
    the text that was read, if that is not decimal.
    """

    kind: str
    value: int
    epoch: int | None = None
    base: str | None = None

    @property
    def text(self) -> str:
        """The id as its kind writes it."""
        return TEXTS.get(self.kind, str)(self.value)

    @property
    def fields(self) -> Fields:
        """The fields that the kind has, in the order of ``ORDER``."""
        if fields_of := _FIELDS.get(self.kind):
            return fields_of(self.value)
        epoch = EPOCHS[self.kind] if self.epoch is None else self.epoch
        field = time_field(self.kind, epoch)
        base: Fields = {} if self.base is None else {"base": self.base}
        return {
            **EPOCH_FIELDS[self.kind](self.value, field),
            **base,
            "full_on": full_on(field),
        }
