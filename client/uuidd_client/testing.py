"""Ids and daemons for the tests of a program.

pytest finds the fixtures ``ids`` and ``uuidd`` by itself; these are the same as context managers::

    with fixed_ids(seed=1) as ids:
        assert ids.ulid() == ...
    with private_daemon(worker=5) as daemon:
        print(daemon.socket)
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from typing import Any

import uuidd_client
from uuidd.core.ids import snowflake
from uuidd.core.ids.checks import check_bits, shown
from uuidd.core.ids.times import tick_at
from uuidd_client import private_daemon as daemons
from uuidd_client.channel import Channel
from uuidd_client.client import Client
from uuidd_client.fixed import FixedChannel
from uuidd_client.private_daemon import PrivateDaemon

__all__ = ["DEFAULT_TIME", "PrivateDaemon", "fixed_ids", "private_daemon"]

DEFAULT_TIME = datetime(2022, 2, 22, 19, 22, 22, tzinfo=UTC)
"""The time of the first id of each kind, unless a test sets the clock."""

PATIENCE_SECONDS = 10.0
"""$UUIDD_TIMEOUT with a private daemon: where tests run, a daemon can be slow, and not silent."""


@contextlib.contextmanager
def fixed_ids(
    seed: int | str = 0,
    *,
    at: datetime = DEFAULT_TIME,
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
    if not isinstance(at, datetime):
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
    with daemons.running(None if worker is None else str(worker)) as daemon:
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
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value
