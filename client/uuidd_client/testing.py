"""Ids and daemons for the tests of a program.

pytest finds the fixtures ``ids`` and ``uuidd`` by itself; these are the same as context managers::

    with fixed_ids(seed=1) as ids:
        assert ids.ulid() == ...
    with private_daemon(worker=5) as daemon:
        print(daemon.socket)
"""

from __future__ import annotations

import contextlib
import datetime
import os
import random
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any

import uuidd_client
from uuidd.core.ids import snowflake
from uuidd.core.ids.checks import check_bits, shown
from uuidd.core.ids.kinds import KINDS, PLACES
from uuidd.core.ids.layouts import LAYOUTS
from uuidd.core.ids.nodes import random_node
from uuidd.core.ids.places import Origin
from uuidd.core.ids.times import tick_at
from uuidd.core.ids.versions import CLOCK_SEQ_BITS
from uuidd_client import private_daemon as daemons
from uuidd_client.channel import Channel
from uuidd_client.client import Client
from uuidd_client.cutter import new_uuids
from uuidd_client.errors import DaemonUnavailable, TimeOutOfRange
from uuidd_client.life import Life
from uuidd_client.notices import Stats
from uuidd_client.private_daemon import PrivateDaemon
from uuidd_client.times import Used

__all__ = ["DEFAULT_TIME", "PrivateDaemon", "fixed_ids", "private_daemon"]

DEFAULT_TIME = datetime.datetime(2022, 2, 22, 19, 22, 22, tzinfo=datetime.UTC)
"""The time of the first id of each kind, unless a test sets the clock."""

PATIENCE_SECONDS = 10.0
"""$UUIDD_TIMEOUT with a private daemon: where tests run, a daemon can be slow, and not silent."""

ANY_TICKS = 3
"""Of so many ticks in a row one holds a Snowflake."""


@contextlib.contextmanager
def fixed_ids(
    seed: int | str = 0,
    *,
    at: datetime.datetime = DEFAULT_TIME,
    worker: int = 0,
    client: Client | None = None,
) -> Iterator[Client]:
    """Let *client* make the same ids in each run; None is the client of the module's functions.

    The ids of one *seed* are the same in each process, on each machine and in each time zone. If
    time-machine or freezegun sets the clock, the ids have the time that it shows; otherwise the
    first of each kind has the time *at*. Each further id of a kind has the next free tick. While
    the clock ticks, only what is not time is the same in each run. *worker* is that of Snowflakes.
    No daemon is asked, and ``is_safe`` is SafeUUID.unknown. Threads that draw get their ids in the
    order in which they draw. A fork's child draws other ids, which are not the same in each run.
    ``Backfill`` is not fixed.

    Raises ValueError if *at* has no time zone, or *worker* is not 0 to 1023. ``status`` raises
    DaemonUnavailable.
    """
    if type(seed) not in (int, str):
        raise TypeError(f"seed is {shown(seed)}; it must be an int or a str")
    if not isinstance(at, datetime.datetime):
        raise TypeError(f"at is {shown(at)}; it must be a datetime")
    if at.tzinfo is None:
        raise ValueError(f"at is {at}, without a time zone; pass one, such as tzinfo=UTC")
    check_bits("worker", worker, snowflake.WORKER_BITS)
    fixed = FixedChannel(seed, tick_at(at), worker)
    with _exchanged(uuidd_client._client(client), fixed.in_life) as exchanged:
        yield exchanged


@contextlib.contextmanager
def private_daemon(
    worker: int | None = 0, *, client: Client | None = None
) -> Iterator[PrivateDaemon]:
    """Run a daemon with worker number *worker*, and let *client* use it; see ``fixed_ids``.

    Its socket and its state are in a temporary folder, which is removed at the end. $UUIDD_SOCKET
    names the socket, for other clients and for processes that the test starts. $UUIDD_TIMEOUT is 10
    seconds, unless it is set already. *client* uses this socket even if it was made for another.

    Raises RuntimeError if the daemon does not start; the text says why.
    """
    used = uuidd_client._client(client)
    with daemons.running(worker) as daemon:
        there = used._settings._replace(path=str(daemon.socket))
        patience = os.environ.get("UUIDD_TIMEOUT") or f"{PATIENCE_SECONDS:g}"
        with (
            _environment(UUIDD_SOCKET=str(daemon.socket), UUIDD_TIMEOUT=patience),
            _exchanged(used, partial(Channel, there)),
        ):
            yield daemon


@contextlib.contextmanager
def _exchanged(client: Client, new: Callable[[Any, Any], Any]) -> Iterator[Client]:
    """Let *client* make its ids in the channels that *new* returns, and at the end as before."""
    channels = client._channels
    before = channels.new, channels.made
    # No id is to be drawn of what there is, without a call of a channel.
    for channel in list(channels.made.values()):
        channel.rest()
    channels.new, channels.made = new, {}
    try:
        yield client
    finally:
        client.close()
        channels.new, channels.made = before


@contextlib.contextmanager
def _environment(**values: str) -> Iterator[None]:
    """Set environment variables while the context lasts."""
    before = {name: os.environ[name] for name in values if name in os.environ}
    os.environ.update(values)
    try:
        yield
    finally:
        for name in values:
            os.environ.pop(name, None)
        os.environ.update(before)


def clock_or(at: int) -> int:
    """Return the tick that a test has set the clock to, by time-machine or freezegun, or *at*."""
    machine = sys.modules.get("time_machine")
    travels = machine is not None and machine.escape_hatch.is_travelling()
    if travels or time.time_ns.__module__ == "freezegun.api":
        # Not time.time_ns: that of freezegun is a float, which is some 100 ns wrong.
        return tick_at(datetime.datetime.now(datetime.UTC))
    return at


class FixedChannel:
    """What stands in for a ``Channel``: ids of *seed*, which are the same in each run.

    Their time is that of the clock, if a test has set it, and otherwise *at*, a tick. An id that
    would have a time which was used before gets the next time that is free. The ids of a kind do
    not depend on how many of another kind were made.
    """

    def __init__(self, seed: int | str, at: int, worker: int) -> None:
        self._lock = threading.RLock()
        self._pid, self._at, self._worker = os.getpid(), at, worker
        # Repeatable is what is wanted.
        self._random = cache(lambda name: random.Random(f"{seed}/{name}"))  # noqa: S311
        draw = self._random("origin").getrandbits
        self._origin = Origin(random_node(draw), draw(CLOCK_SEQ_BITS), worker, lane=None)
        self._used: defaultdict[str, Used] = defaultdict(Used)

    def make(self, kind: str, form: str, count: int) -> list[Any] | bytes:
        """Return *count* ids of *kind* in *form*. Raises TimeOutOfRange. Nothing has to wait."""
        made: list[Any] = []
        with self._lock:
            for first, part in self._use(kind, count):
                ids = LAYOUTS[kind][form](first, part, self._origin, self._random(kind).randbytes)
                made.append(new_uuids(ids, part, safe=False) if form == "uuid" else ids)
            return b"".join(made) if form == "bytes" else [id for part in made for id in part]

    def _use(self, kind: str, count: int) -> Iterator[tuple[int, int]]:
        """Use the first *count* places that are free: yield the first of each run, and how many."""
        now, place = clock_or(self._at), 0
        used, places = self._used[kind], PLACES[kind]
        if (times := KINDS[kind].time) is not None:
            if not times.epoch <= now < times.end - ANY_TICKS:
                raise TimeOutOfRange(kind, now, times.epoch, times.end)
            place = places.places(now, ANY_TICKS)[0]
        while count:
            first = place = used.free(place)
            end = first + min(count, places.room(first))
            while place < end and used.free(place) == place:
                used.add(place)
                place += 1
            yield first, place - first
            count -= place - first

    def in_life(self, life: Life, former: FixedChannel | None) -> FixedChannel:
        """Return the channel of a *life* that follows *former*: the same, if there is one.

        A fork's child cannot know how many siblings it has, so it has one of a random seed.
        """
        found = former or self
        if found._pid == life.pid:
            return found
        return FixedChannel(os.urandom(16).hex(), self._at, self._worker)

    def cutter(self, _kind: str) -> None:
        """Return None: each id is made here."""

    def stats(self) -> Stats:
        """Return what was asked for: nothing."""
        return Stats()

    def status(self) -> dict[str, Any]:
        """Raise DaemonUnavailable: there is no daemon."""
        raise DaemonUnavailable(
            "(none)", "the ids of this test are fixed, and need no daemon", "fixed"
        )

    def close(self) -> None:
        """Do nothing: there is no connection, and each id is a call of this channel."""

    rest = close
