"""Makes room for a new connection, where there is none, by closing others."""

from __future__ import annotations

from collections.abc import Callable, Collection
from itertools import islice
from math import ceil

import trio

from uuidd.server.admission import Admission
from uuidd.server.stream import Stream

PAUSE = 1.0
"""Seconds between two searches for silent connections that make room: a search takes long."""

AT_ONCE = 64
"""Of this many connections that a user could lose to a newcomer, one is closed: to find them takes
as long for one as for many."""

SILENT = "silent"
"""Why a connection ended that asked nothing for long, where there was no room for another."""

MADE_ROOM = "made_room"
"""Why a connection ended whose user had the most, where there was no room for another user's."""


class Room:
    """Closes some of *streams* so that *admission* has room, and counts them by *refuse*.

    *drop* closes a stream at once if it is between two requests; the answer is whether it was.
    """

    def __init__(
        self,
        streams: Collection[Stream],
        admission: Admission,
        drop: Callable[[Stream], bool],
        refuse: Callable[[str], None],
    ) -> None:
        self._streams = streams
        self._admission = admission
        self._drop = drop
        self._refuse = refuse
        self._looked_at = -PAUSE

    def make(self, uid: int, long: float) -> bool:
        """Make room for a connection of *uid*; whether there is any now.

        First those are closed that have asked nothing for *long* seconds, and whose user, or the
        whole, has no room. If there are none, and all connections are taken, some of the user with
        the most are, if *uid* has fewer: a few users together could shut out all others for good
        otherwise.
        """
        return self._end_silent(long) or self._end_some_of_most(uid)

    def _end_silent(self, long: float) -> bool:
        now = trio.current_time()
        if now < self._looked_at + PAUSE:
            return False
        self._looked_at = now
        silent = [
            stream
            for stream in self._streams
            if not stream.heard
            and stream.silent_since <= now - long
            and self._admission.refusal(stream.uid)
        ]
        for stream in silent:
            self._refuse(SILENT)
            self._drop(stream)
        return bool(silent)

    def _end_some_of_most(self, uid: int) -> bool:
        greediest, surplus = self._admission.greediest(uid)
        if not surplus:
            return False
        theirs = [stream for stream in self._streams if stream.uid == greediest]
        number = ceil(surplus / AT_ONCE)
        ended = list(islice(filter(self._drop, theirs), number))
        for stream in ended or theirs[:number]:
            self._refuse(MADE_ROOM)
            if not ended:
                # In the middle of a request, which ends a moment later; then there is room.
                stream.end_reading()
        return bool(ended)
