"""Puts a keeper together from what the administrator chose."""

from __future__ import annotations

import logging
import socket
from collections.abc import Awaitable, Callable

from uuidd import version
from uuidd.core.ids.ticks import TICKS_PER_SECOND
from uuidd.core.timeline.timelines import Reading, Timelines
from uuidd.fleet.address import Fleet
from uuidd.fleet.claiming import Holder
from uuidd.fleet.connecting import connect
from uuidd.fleet.keeper import Keeper
from uuidd.fleet.standing import Terms
from uuidd.statefile import machine_hash

OTHERS = ("httpx2", "httpcore2", "kazoo")
"""The loggers of the engines' libraries."""

log = logging.getLogger("uuidd")


def keeper(
    fleet: Fleet,
    epoch: int,
    timelines: Timelines,
    read: Callable[[], Reading],
    save: Callable[[], None],
    saved: Callable[[], Awaitable[None]],
) -> Keeper:
    """Return the keeper of *timelines* in *fleet*; *epoch* is that of Snowflakes.

    *read*, *save* and *saved* are as in ``Keeper``.
    """
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
        save,
        saved,
        Holder(host if host.isprintable() else "", machine_hash(), version()),
        name=fleet.address.name,
    )
