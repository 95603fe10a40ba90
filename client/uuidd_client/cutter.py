"""The ids of one source after another, where the extension, which has a twin of it, is not there.

channel.py says how sources, cutters and lives belong together.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable
from itertools import repeat
from uuid import UUID, SafeUUID

from uuidd.core.ids.kinds import PLACES
from uuidd.core.ids.layouts import LAYOUTS
from uuidd.core.ids.places import Origin
from uuidd.core.ids.ticks import TICKS_PER_SECOND, UNIX_EPOCH
from uuidd.core.typed import Any
from uuidd_client.life import Source
from uuidd_client.system import SYSTEM_CLOCK

READINGS = 64
"""How often the clock is read for an id, if it does not move on."""

AHEAD_SECONDS = 0.001
"""How old, in seconds, an id may become before it is drawn."""

MOST_SPARE = 5_000
"""How many ticks before the latest a list begins, if max_age allows, so that the next lists have
ticks too."""

MOST_AHEAD = 128
"""The most ids that are made ahead. More would be too old before they are drawn."""


class Cutter:
    """Ids that are cut from *source*, one after another. None means that there is no source.

    *used* is the end of the places that were used, of whatever source: nothing before it is used
    again. *life* is a memoryview of a word that is 0 once the life of the process is over. *clock*
    returns nanoseconds of UTC, and *random* that many random bytes.

    Any thread may use it, and any handler of a signal. Without the GIL, threads take turns.
    """

    def __init__(
        self,
        life: memoryview,
        max_age: float = 0.1,
        clock: Callable[[], int] | None = None,
        random: Callable[[int], bytes] | None = None,
    ) -> None:
        self.source: Source | None = None
        self.used = 0
        self._life = life
        self._clock = clock or SYSTEM_CLOCK.utc_ns
        self._random = random or os.urandom
        self._age = int(max_age * TICKS_PER_SECOND)
        self._lasting = min(self._age, int(AHEAD_SECONDS * TICKS_PER_SECOND))
        self._spare = min(self._age // 20, MOST_SPARE)
        self._ahead: dict[tuple[str, str], list[_Ahead]] = {}

    def one(self, kind: str, form: str) -> Any:
        """Return the next id of *kind* in *form*, or None if there has to be a refill."""
        return self.draw(kind, form)()

    def draw(self, kind: str, form: str) -> Callable[[], Any]:
        """Return a function that returns what ``one`` does, faster, as a Draw of the extension."""
        clock, life = self._clock, self._life
        # A cell, for a cutter that holds its function would outlive its client, and keep the page.
        ahead = self._ahead.setdefault((kind, form), [_NONE_AHEAD])

        def next_one() -> Any:
            """Return the next id, or None."""
            take, since, until, source, used, horizon, shown, token, value, size = ahead[0]
            now = clock()
            if (
                since <= now < until
                and source is self.source
                and used is self.used
                and horizon[0] == shown
                and token[0] == value
            ):
                try:
                    made = take()
                    return made if life[0] else None
                except IndexError:
                    # Ids in a row are made ahead, which costs less for each.
                    size = min(2 * size, MOST_AHEAD)
            else:
                size = 1
            first, used, source = self._reserve(size, None, 0)
            if first == used:
                return None
            ids = deque(apart(self._ids(kind, form, first, used, source), used - first))
            made = ids.popleft()
            horizon, token, value = source[-3:]
            shown = horizon[0]
            # The oldest tick is older than now by this.
            end = min(now // 100 + UNIX_EPOCH + self._lasting - size, source.until, shown)
            until = (end - UNIX_EPOCH) * 100
            ahead[0] = ids.popleft, now, until, source, used, horizon, shown, token, value, size
            return made if life[0] else None

        return next_one

    def many(
        self, kind: str, form: str, count: int, source: Source | None = None
    ) -> list[Any] | bytes:
        """Return up to *count* ids in a list, or as ``bytes`` all in one piece.

        There are none if there has to be a refill. With a *source* they are made of it, whatever
        UTC is.
        """
        spare = max(0, min(self._spare, self._age - count))
        return self._ids(kind, form, *self._reserve(count, source, spare))

    def raise_to(self, end: int) -> None:
        """Use no place before *end*."""
        # One line without a call: there CPython changes neither to another thread nor to a signal
        # handler, and a debugger does not stop.
        self.used = end if self.used < end else self.used  # noqa: FURB136  (a call)

    def _ids(self, kind: str, form: str, first: int, end: int, source: Source) -> list[Any] | bytes:
        """Return the ids of the places from *first* to *end*, which are reserved."""
        draw, room = LAYOUTS[kind][form], PLACES[kind].room
        made: Any = bytearray() if form == "bytes" else []
        while first < end:
            part = min(end - first, room(first))
            ids = draw(first, part, source.origin, self._random)
            made += new_uuids(ids, part, source.safe) if form == "uuid" else ids
            first += part
        return bytes(made) if form == "bytes" else made

    def _reserve(self, count: int, given: Source | None, spare: int) -> tuple[int, int, Source]:
        """Reserve up to *count* places: return the first, their end, and their source.

        *used* is that end then, the same object. More than one of a lane begin *spare* ticks before
        the latest.
        """
        source = given or self.source or _NO_SOURCE
        for _ in range(READINGS):
            source = given or self.source or _NO_SOURCE
            first, end, since, until, _, _, lane, horizon, token, value = source
            now = self._clock() // 100 + UNIX_EPOCH
            if given is None and not since <= now < until:
                break
            if now >= horizon[0] or token[0] != value:
                break
            if lane:
                end = now + 1
                first = max(first, end - count - (spare if count > 1 else 0))
            used = self.used
            first = max(first, used)
            if first < end:
                end = min(end, first + count)
                # One line, as above.
                self.used = end if (free := self.used == used) else self.used
                if free:
                    return first, end, source
            elif not lane or first > end:
                break
        return 0, 0, source


_NO_WORD = memoryview(bytes(8)).cast("Q")
_NO_SOURCE = Source(0, 0, 0, 0, Origin(0), False, False, _NO_WORD, _NO_WORD, 0)

# A plain tuple, which is taken apart at each id: that of a named one takes twice as long.
_Ahead = tuple[Callable[[], Any], int, int, Source, int, memoryview, int, memoryview, int, int]
_NONE_AHEAD: _Ahead = [].pop, 0, 0, _NO_SOURCE, 0, _NO_WORD, 0, _NO_WORD, 0, 0


def apart(made: list[Any] | bytes, count: int) -> list[Any]:
    """Return the *count* ids of ``many`` one by one."""
    if isinstance(made, list):
        return made
    size = len(made) // count
    return [made[at : at + size] for at in range(0, len(made), size)]


def new_uuids(values: Iterable[int], count: int, safe: bool) -> list[UUID]:
    """Return *count* UUIDs, each of the next of *values*, marked *safe* or unknown."""
    # To set the attributes of a UUID takes a fifth of the time of its __init__. The loops run in C.
    made = list(map(object.__new__, repeat(UUID, count)))
    deque(map(_SET_INT, made, values), 0)
    deque(map(_SET_IS_SAFE, made, repeat(_SAFE if safe else _UNKNOWN)), 0)
    return made


# The attributes of an enum take longer to read than all of the lines above.
_SAFE, _UNKNOWN = SafeUUID.safe, SafeUUID.unknown
_SET_INT, _SET_IS_SAFE = vars(UUID)["int"].__set__, vars(UUID)["is_safe"].__set__
