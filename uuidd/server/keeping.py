"""Puts a keeper together from what the administrator chose."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable

from uuidd import version
from uuidd.core.ids.ticks import TICKS_PER_SECOND
from uuidd.core.timeline.timelines import Reading, Timelines
from uuidd.server.keeper import Keeper
from uuidd.server.saver import Saver
from uuidd.server.settings import Fleet
from uuidd.server.standing import Terms
from uuidd.statefile import machine_hash
from uuidd.workers.claiming import Holder
from uuidd.workers.connecting import connect

OTHERS = ("httpx2", "httpcore2", "kazoo")
"""The loggers of the engines' libraries."""

log = logging.getLogger("uuidd")


def keeper(
    fleet: Fleet, epoch: int, timelines: Timelines, read: Callable[[], Reading], saver: Saver
) -> Keeper:
    """Return the keeper of *timelines* in *fleet*; *epoch* is that of Snowflakes."""
    terms = Terms(
        fleet.address.url,
        int(fleet.window * TICKS_PER_SECOND),
        int(fleet.hold * TICKS_PER_SECOND),
        epoch,
        fleet.low,
        fleet.high,
    )
    if not log.isEnabledFor(logging.DEBUG):
        # They have a line for each request, or for each loss of a connection, which we tell once.
        for name in OTHERS:
            logging.getLogger(name).setLevel(logging.ERROR)
    host = socket.gethostname()
    return Keeper(
        lambda: connect(fleet.address, fleet.access),
        terms,
        timelines,
        read,
        saver.want,
        saver.settled_anew,
        Holder(host if host.isprintable() else "", machine_hash(), version()),
        name=fleet.address.name,
    )
