"""The kinds of ids that can be inspected, and an id read as one of them.

Whether bits are likely to be of a kind is in ``plausible``.
"""

from __future__ import annotations

from dataclasses import dataclass

from uuidd.core.ids import snowflake
from uuidd.core.ids.inspect.fields import OTHER_FIELDS, TEXTS, UUID_FIELDS, Fields, of_snowflake
from uuidd.core.ids.ticks import TimeField

UUID_KINDS = tuple(kind for kind in UUID_FIELDS if kind != "unknown")

INSPECTED_KINDS = (*UUID_KINDS, *OTHER_FIELDS, "snowflake")
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
    "domain",
    "local_id",
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


def snowflake_time(epoch: int | None) -> TimeField:
    """Return the time field of Snowflakes whose epoch is *epoch*; None stands for Twitter's."""
    return snowflake.time_field(snowflake.TWITTER_EPOCH if epoch is None else epoch)


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
        return TEXTS.get(self.kind, str)(self.value)

    @property
    def fields(self) -> Fields:
        """The fields that the kind has, in the order of ``ORDER``."""
        if fields_of := _FIELDS.get(self.kind):
            return fields_of(self.value)
        found = of_snowflake(self.value, snowflake_time(self.epoch))
        if self.base is not None:
            # Before the last, as in ``ORDER``.
            full_on = found.pop("full_on")
            found |= {"base": self.base, "full_on": full_on}
        return found
