"""What a client is in one process: a channel to the daemon for each timeline."""

from __future__ import annotations

import os
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, Any

from uuidd.core.ids.kinds import KINDS
from uuidd_client.channel import Channel, Common
from uuidd_client.counts import Stats
from uuidd_client.fork_guard import alive
from uuidd_client.mark import Mark, new_mark
from uuidd_client.notices import Notices
from uuidd_client.per_process import Owned
from uuidd_client.places import Places
from uuidd_client.source import LatestSteady
from uuidd_client.supply import Direct, Run
from uuidd_client.system import ClientClock, default_path, given_timeout, may_fall_back
from uuidd_client.transport import Silence

if TYPE_CHECKING:
    from uuidd_client._core import Cutter

STATUS = "status"
"""The channel of requests for the status, beside those of the timelines."""


class Session(Owned):
    """The ids of one process, and its connections to the daemon.

    *socket* and *timeout* are None for the default; the rest is as for ``Client``. The ids of a
    kind rise from each session with the same *shared* to the next. Raises ValueError if
    $UUIDD_TIMEOUT is needed and no number of seconds.
    """

    def __init__(
        self,
        socket: str | None,
        fallback: bool,
        max_age: float,
        timeout: float | None,
        core: ModuleType | None = None,
        shared: dict[str, tuple[LatestSteady, Mark]] | None = None,
        *,
        clock: ClientClock,
    ) -> None:
        # First, for a handler may fork in the middle of this.
        self.alive = alive()
        self._pid = os.getpid()
        latest, self._utc = LatestSteady(new_mark(core)), Mark()
        if shared is not None:
            latest, self._utc = shared.setdefault("used", (latest, self._utc))
        # One of its own: a thread that is still in the session before may raise that one's.
        utc = new_mark(core)
        utc.end = self._utc.end
        self.child: dict[str, Session] = {}
        self._channels: dict[str, Channel] = {}
        self._common = Common(
            self.alive,
            socket or default_path(),
            given_timeout() if timeout is None else timeout,
            Silence(always=not may_fall_back(fallback)),
            may_fall_back(fallback),
            partial(Places, max_age=max_age),
            latest,
            utc,
            clock,
            core,
        )

    def run(self, kind: str, form: str, *, wait: bool = True) -> tuple[Run, Direct, Any]:
        """Return a new run of ids of *kind* in *form*, what makes single ones, and the first id.

        Without *wait*, this and the next three raise MustWait rather than ask the daemon.
        """
        return self._of(kind).turn(wait, lambda channel: channel.run(kind, form))

    def one(self, kind: str, form: str, *, wait: bool = True) -> tuple[Cutter | None, Any]:
        """Return a cutter for ids of *kind*, if there is one, and the first id, in *form*.

        Only with the C extension *core*.
        """
        return self._of(kind).turn(wait, lambda channel: channel.one(kind, form))

    def make(self, kind: str, count: int, form: str, *, wait: bool = True) -> list[Any]:
        """Return exactly *count* ids of *kind* in *form*."""
        return self._of(kind).turn(wait, lambda channel: channel.supply(kind).make(count, form))

    def prepare(self, kind: str) -> None:
        """Ask the daemon for what the next ids of *kind* are made of, unless it is there."""
        self._of(kind).turn(True, lambda channel: channel.supply(kind).prepare())

    def join(self, kind: str, count: int, *, wait: bool = True) -> bytes:
        """Return the bytes of exactly *count* ids of *kind*, in one piece."""
        return self._of(kind).turn(wait, lambda channel: channel.supply(kind).join(count))

    def status(self) -> dict[str, Any]:
        """Return the daemon's status."""
        return self.channel(STATUS).in_turn(lambda channel: channel.connection.status())

    def stats(self) -> Stats:
        """Return what was done in this process."""
        found = Stats()
        for name in list(self._channels):
            found = found.plus(self._channels[name].in_turn(lambda channel: channel.stats()))
        return found

    def close(self) -> None:
        """Close all connections; a later call opens them again."""
        for name in list(self._channels):
            self._channels[name].in_turn(lambda channel: channel.close())

    def rest(self) -> None:
        """Let no id be drawn, from what was returned until now, before the next call."""
        for name in list(self._channels):
            self._channels[name].in_turn(lambda channel: channel.rest())

    def drop(self) -> None:
        """Close connections of which nobody makes ids any more; the next are later.

        In a fork's child they are its copies; the parent's stay open. In the same process, after
        ``renew``, other threads may be in the middle of a request: their connections are closed
        when they have left them.
        """
        forked = os.getpid() != self._pid
        if "utc" in self._channels:
            self._utc.raise_to(self._channels["utc"].used())
        for channel in list(self._channels.values()):
            if forked:
                channel.connection.close()
            else:
                channel.close_if_free()

    def _of(self, kind: str) -> Channel:
        return self.channel(KINDS[kind].timeline)

    def channel(self, name: str) -> Channel:
        """Return the channel of a timeline, or of STATUS."""
        channel = self._channels.get(name)
        if channel is not None:
            return channel
        ids = ", ".join(kind for kind in KINDS if KINDS[kind].timeline == name)
        # Atomic, so that all threads get the same one.
        return self._channels.setdefault(
            name, Channel(self._common, name, Notices(ids, self._common.clock))
        )
