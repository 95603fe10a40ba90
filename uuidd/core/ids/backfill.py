"""Ids for many given times, in any order and with repeats: no id comes twice.

Theory of operation. Each id sits on a *place* of its own: a tick, and for Snowflakes a slot. The
first id of a time takes the place of that very time. A repeat takes the next free place in the same
*unit* of time, a tick, a microsecond, a millisecond or a second, and at its end goes on from its
begin. So an id never leaves the unit of the time it is for.

Every place taken points to a later one such that none between them is free. Following the pointers
from a place finds the next free one; whoever follows them turns them all to what was found, so that
many repeats of one time cost little more each than the first (the union-find of Tarjan, on a line).
"""

from __future__ import annotations

from datetime import datetime

from uuidd.core.ids import snowflake
from uuidd.core.ids.at_time import Given, RandomBits, pattern
from uuidd.core.ids.bounds import own_unit, ticks_of, whole
from uuidd.core.ids.ticks import milliseconds
from uuidd.core.ids.times import Time, text, tick_of


class Backfill:
    """Gives ids of one kind for given times, and never the same one twice.

    *unit* is the time within which repeats are spread, ``tick``, ``us``, ``ms`` or ``s``, and never
    finer than the kind's own. Left out it is the kind's own: a second for KSUIDs, a millisecond for
    v7, ULIDs, Push IDs, Flakes and Snowflakes, and a tick for v1 and v6. But a datetime for v1 or
    v6 tells no single tick, so its repeats are spread over the 10 ticks of its microsecond. A
    millisecond has 10,000 places (4096 for Snowflakes), a second a thousand times as many.

    v1, v6 and Flakes with no *node* or *clock_seq* draw a random one, once: then their ids cannot
    meet the daemon's, nor those of another Backfill. Where both are given, as for a Snowflake's
    *worker*, it is for the caller to see that no one else makes ids with them for these times.

    It is for one thread, and it remembers the place of each id that it gave, and nothing else.

    Raises ValueError, naming it, for a field that the kind lacks, needs or cannot hold, and for a
    *unit* that is none or too fine; TypeError for a value of the wrong type.
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
        given = Given(clock_seq, node, worker, datacenter, None, epoch)
        self._kind = kind
        self._time, self._at = pattern(kind, given, random)
        self._slots = kind == "snowflake"
        if unit is not None:
            ticks_of(unit, self._time)
        self._unit = unit
        self._later: dict[int, int] = {}

    def take(self, time: Time) -> int:
        """Give the bits of an id for *time*: of that very time, or near it when that is taken.

        Raises ValueError when all places in the unit of *time* are taken, and for a time out of the
        kind's range; TypeError for a time that is neither an aware datetime nor an int. What raises
        changes nothing.
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
        """Give the place that is at *tick*, or the last before it."""
        if not self._slots:
            return tick
        ms, rest = milliseconds(tick)
        return (ms << snowflake.SEQUENCE_BITS) + snowflake.slot_at(rest)

    def _place_from(self, tick: int) -> int:
        return snowflake.place_from(tick) if self._slots else tick

    def _free(self, place: int) -> int:
        """Give the first free place at or past *place*."""
        later = self._later
        free = place
        while free in later:
            free = later[free]
        while place != free:
            later[place], place = free, later[place]
        return free

    def _full(self, tick: int, unit: str, places: int) -> str:
        ways = [_OTHER.get(self._kind, "another Backfill, whose random bits differ")]
        if unit != "s":
            ways.insert(0, "a coarser unit")
        begin = text(tick, ticks_of(unit, self._time))
        return (
            f"time is {text(tick)}; all {places} places of its unit, the {unit} {begin}, are taken:"
            f" it takes {' or '.join(ways)}"
        )


_OTHER = {
    "v1": "another clock_seq",
    "v6": "another clock_seq",
    "flake": "another node",
    "snowflake": "another worker",
}
"""What makes room for more ids of the same unit of time."""
