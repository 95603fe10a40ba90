"""Different ids of many times that the caller chooses, in any order and with repeats.

Theory of operation

1. Each id has a *place* of its own: a tick, and for Snowflakes a slot. The first id of a time takes
   the place at exactly that time. A repeat takes the next free place in the same *unit* of time: a
   tick, a microsecond, a millisecond or a second. At the end of the unit the search continues at
   its beginning. So an id never leaves the unit of its time.
2. Each taken place points to a later one, and no place between the two is free. Following these
   pointers finds the next free place. Then all pointers on the way are set to it, so that many
   repeats of one time cost little more than the first (Tarjan's union-find, on integers).
"""

from __future__ import annotations

from datetime import datetime

from uuidd.core.ids import snowflake
from uuidd.core.ids.at_time import IdFields, accepted, template
from uuidd.core.ids.bounds import own_unit, ticks_of, whole
from uuidd.core.ids.formats import FORMATS
from uuidd.core.ids.nodes import RandomBits
from uuidd.core.ids.ticks import milliseconds
from uuidd.core.ids.times import Time, text, tick_of


class Backfill:
    """Makes ids of one kind for chosen times, and never the same id twice.

    *unit* is the unit of time within which repeats are spread: ``tick``, ``us``, ``ms`` or ``s``.
    It must not be finer than the kind's own, which is the default: a second for KSUIDs, a
    millisecond for v7, ULIDs, Push IDs, Flakes and Snowflakes, and a tick for v1 and v6. A datetime
    is a microsecond of 10 ticks for v1 and v6, so its repeats are spread over these. A millisecond
    has 10,000 places (4096 for Snowflakes), a second a thousand times as many.

    v1, v6 and Flakes draw a random *node* or *clock_seq* once if it is missing, so that their ids
    differ from the daemon's and from those of another Backfill. If both are passed, and for a
    Snowflake's *worker*, the caller must ensure that nothing else makes ids with them for these
    times.

    A Backfill is for one thread. It remembers the place of each id that it made, and nothing else.

    Raises ValueError, naming it, for a field that the kind does not have, needs or has too few bits
    for, and for a *unit* that is unknown or too fine; TypeError for a value of the wrong type.
    """

    def __init__(
        self,
        kind: str,
        *,
        random: RandomBits,
        unit: str | None = None,
        clock_seq: int | None = None,
        node: int | str | None = None,
        worker: int | None = None,
        datacenter: int | None = None,
        epoch: int = snowflake.TWITTER_EPOCH,
    ) -> None:
        fields = IdFields(clock_seq, node, worker, datacenter, None, epoch)
        self._kind = kind
        self._time, self._at = template(kind, fields, random)
        self._slots = kind == "snowflake"
        if unit is not None:
            ticks_of(unit, self._time)
        self._unit = unit
        self._later: dict[int, int] = {}

    def take(self, time: Time) -> int:
        """Return the bits of an id of *time*, or of a time near it if that one is taken.

        Raises ValueError if all places in the unit of *time* are taken, and for a time out of the
        kind's range; TypeError for a time that is neither an aware datetime nor an int. A call that
        raises changes nothing.
        """
        tick = tick_of(time, self._time)
        unit = self._unit_of(time)
        first, end = whole(tick, ticks_of(unit, self._time), self._time)
        begin, until = self._place_from(first), self._place_from(end)
        place = self._free(self._place_at(tick))
        if place >= until:
            place = self._free(begin)
            if place >= until:
                raise ValueError(self._full(tick, unit, until - begin))
        made = self._at(snowflake.tick_of_place(place) if self._slots else place)
        self._later[place] = place + 1
        return made

    def _unit_of(self, time: Time) -> str:
        if self._unit is not None:
            return self._unit
        if self._time.unit == 1 and isinstance(time, datetime):
            return "us"
        return own_unit(self._time)

    def _place_at(self, tick: int) -> int:
        """Return the place at *tick*, or the last one before it."""
        if not self._slots:
            return tick
        ms, rest = milliseconds(tick)
        return (ms << snowflake.SEQUENCE_BITS) + snowflake.slot_at(rest)

    def _place_from(self, tick: int) -> int:
        return snowflake.place_from(tick) if self._slots else tick

    def _free(self, place: int) -> int:
        """Return the first free place at or past *place*."""
        later = self._later
        free = place
        while free in later:
            free = later[free]
        while place != free:
            later[place], place = free, later[place]
        return free

    def _full(self, tick: int, unit: str, places: int) -> str:
        fields = accepted(FORMATS[self._kind])
        other = fields[0] if fields else "Backfill, whose random bits differ"
        ways = [f"another {other}"]
        if unit != "s":
            ways.insert(0, "a coarser unit")
        begin = text(tick, ticks_of(unit, self._time))
        return (
            f"time is {text(tick)}; all {places} places of the {unit} {begin} are taken: use"
            f" {' or '.join(ways)}"
        )
