"""What a client is in one process: a channel to the daemon for each timeline."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

from uuidd.core.ids.kinds import KINDS
from uuidd_client.compiled import CompiledSupply
from uuidd_client.connection import Connection
from uuidd_client.counts import Stats
from uuidd_client.fork_guard import ForkGuard, alive
from uuidd_client.mark import Mark
from uuidd_client.notices import Notices
from uuidd_client.own_lane import OwnLane
from uuidd_client.per_process import Forked
from uuidd_client.places import Places
from uuidd_client.source import LatestSteady, Source
from uuidd_client.supply import Direct, Run, Supply
from uuidd_client.system import default_path, default_timeout, may_fall_back
from uuidd_client.transport import MustWait, Silence

if TYPE_CHECKING:
    from uuidd_client._core import Cutter

Result = TypeVar("Result")

FORK_CHECK_SECONDS = 0.05
"""Seconds after which a thread that waits for a lock checks whether it is in a fork's child."""


def _new_mark(core: ModuleType | None) -> Mark:
    mark: Mark = Mark() if core is None else core.Mark()
    return mark


STATUS = "status"
"""The channel of requests for the status, beside those of the timelines."""


class Session:
    """The ids of one process, and its connections to the daemon.

    *socket* and *timeout* are None for the default; the rest is as for ``Client``. Sessions with
    the same *shared* have steady ids that rise among all of them. Raises ValueError if
    $UUIDD_TIMEOUT is needed and no number of seconds.
    """

    def __init__(
        self,
        socket: str | None,
        fallback: bool,
        max_age: float,
        timeout: float | None,
        wait: bool,
        core: ModuleType | None = None,
        shared: dict[str, LatestSteady] | None = None,
    ) -> None:
        # First, for a handler may fork in the middle of this.
        self.alive = alive()
        self._pid = os.getpid()
        latest = LatestSteady(_new_mark(core))
        if shared is not None:
            latest = shared.setdefault("latest", latest)
        self.child: dict[str, Session] = {}
        self._channels: dict[str, Channel] = {}
        self._notices = Notices()
        self._new_channel = partial(
            Channel,
            self.alive,
            socket or default_path(),
            default_timeout() if timeout is None else timeout,
            Silence(),
            may_fall_back(fallback),
            partial(Places, max_age=max_age, wait=wait),
            latest,
            core,
            self._notices,
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
        error = self._notices.error
        if error is None:
            return found
        return found._replace(last_error=str(error), last_error_at=self._notices.error_at)

    def close(self) -> None:
        """Close all connections; a later call opens them again."""
        for name in list(self._channels):
            self._channels[name].in_turn(lambda channel: channel.close())

    def rest(self) -> None:
        """Let no id be drawn, from what was returned until now, before the next call."""
        for name in list(self._channels):
            self._channels[name].in_turn(lambda channel: channel.rest())

    def drop(self) -> None:
        """Close connections of which nobody makes ids any more.

        In a fork's child they are its copies; the parent's stay open. In the same process, after
        ``renew``, other threads may be in the middle of a request: their connections are closed
        when they have left them.
        """
        forked = os.getpid() != self._pid
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
        # Atomic, so that all threads get the same one.
        return channel or self._channels.setdefault(name, self._new_channel(name))


class Channel:
    """The supplies of one timeline's kinds, over one connection, under one lock.

    Each timeline has its own, because each has its own reasons to wait: a v1 is not held up by a v7
    that waits for the daemon's disk.
    """

    def __init__(
        self,
        alive: memoryview[float],
        path: str,
        timeout: float,
        silence: Silence,
        fallback: bool,
        new_places: Callable[..., Places],
        latest: LatestSteady,
        core: ModuleType | None,
        notices: Notices,
        name: str,
    ) -> None:
        self._alive = alive
        self._lock = threading.RLock()
        self._busy = self._interrupted = self._interrupts = False
        self.connection = Connection(path, timeout, silence)
        self._source = Source(self.connection, fallback=fallback, latest=latest, notices=notices)
        self._lane = OwnLane(self.connection, latest if name == "steady" else None, notices)
        self._notices = notices
        self._interrupting = Stats()
        self._supplies: dict[str, Supply] = {}
        self._new_places = new_places
        self._core = core
        self._another = partial(
            Channel,
            alive,
            path,
            timeout,
            silence,
            fallback,
            new_places,
            latest,
            core,
            notices,
            name,
        )

    def turn(self, wait: bool, use: Callable[[Channel], Result]) -> Result:
        """Return what *use* returns for the channel; without *wait*, it may raise MustWait."""
        try:
            return self.in_turn(use) if wait else self.at_once(use)
        finally:
            if self._notices.pending:
                self._notices.tell()

    def in_turn(self, use: Callable[[Channel], Result]) -> Result:
        """Return what *use* returns for the channel, for one thread at a time.

        A signal handler or a finalizer that has interrupted a use by its own thread gets a channel
        of its own rather than a deadlock. This is not a generator, because one that an exception
        has interrupted would hold the lock as long as the exception's traceback lives.

        Raises Forked in a child whose parent forked while another thread held the lock, because no
        thread will release it in the child.
        """
        try:
            while not self._lock.acquire(timeout=FORK_CHECK_SECONDS):
                if not self._alive[0]:
                    raise Forked
            if self._busy:
                return self._interrupt(use)
            try:
                self._busy = True
                # Here too, for an exception may have come just before it was set again.
                self.connection.may_wait = True
                return use(self)
            finally:
                self._busy = False
                if self._interrupted:
                    self._interrupted = False
                    self._drop_blocks()
        finally:
            try:  # noqa: SIM105  (a call before the release could be interrupted)
                self._lock.release()
            except RuntimeError:
                # The lock was not acquired yet when an exception came.
                pass

    def at_once(self, use: Callable[[Channel], Result]) -> Result:
        """As ``in_turn``; raise MustWait if another thread or the daemon has to be awaited."""
        try:
            if not self._lock.acquire(blocking=False):
                raise MustWait
            return self.in_turn(lambda channel: channel.without_waiting(use))
        finally:
            try:  # noqa: SIM105  (as in in_turn)
                self._lock.release()
            except RuntimeError:
                # Another thread holds it.
                pass

    def without_waiting(self, use: Callable[[Channel], Result]) -> Result:
        """Return what *use* returns. Raises MustWait if it has to ask the daemon."""
        try:
            self.connection.may_wait = False
            return use(self)
        finally:
            self.connection.may_wait = True

    def _interrupt(self, use: Callable[[Channel], Result]) -> Result:
        # The ids of the other channel will be later than the blocks of this one.
        self._interrupted = True
        other = self._another()
        other._interrupts = True
        try:
            return use(other)
        finally:
            other._drop_blocks()
            self._interrupting = self._interrupting.plus(other.stats())
            other.connection.close()

    def run(self, kind: str, form: str) -> tuple[Run, Direct, Any]:
        """Return a new run of ids of *kind* in *form*, what makes single ones, and the first id."""
        supply = self.supply(kind)
        run, drawn = supply.run(form)
        return run, supply.direct(form), drawn

    def one(self, kind: str, form: str) -> tuple[Cutter | None, Any]:
        """Return one id of *kind* in *form*, and a refilled cutter to go on with.

        There is none for a caller that has interrupted another.
        """
        supply = self.supply(kind)
        assert isinstance(supply, CompiledSupply)  # noqa: S101  (only a client with core calls this)
        made = supply.one(form)
        return None if self._interrupts else supply.cutter, made

    def supply(self, kind: str) -> Supply:
        """Return the supply of *kind*."""
        supply = self._supplies.get(kind)
        if supply is None:
            mark = _new_mark(self._core)
            places = self._new_places(
                kind, self._source, ForkGuard(), lane=self._lane, reserved=mark
            )
            supply = Supply(places) if self._core is None else CompiledSupply(places, self._core)
            if self._interrupts:
                # The daemon's blocks may begin before the ids of the lane that were made until now.
                supply.drop_block()
            self._supplies[kind] = supply
        return supply

    def stats(self) -> Stats:
        """Return what was done here, without the errors."""
        self.rest()
        found, source, lane = self._interrupting, self._source, self._lane
        for supply in self._supplies.values():
            of_daemon, of_process = supply.made()
            timed = bool(supply.places.timeline)
            found = found.plus(
                Stats(of_daemon, of_process if timed else 0, 0 if timed else of_process)
            )
        return found.plus(
            Stats(
                leases=lane.leases,
                blocks=source.blocks,
                fallback_blocks=source.fallback_blocks,
                leased=lane.lease is not None,
            )
        )

    def rest(self) -> None:
        """Let no id be drawn from the runs and the cutters before they are asked for again."""
        for supply in self._supplies.values():
            supply.rest()

    def close(self) -> None:
        """Close the connection, and with it end the lease; a later call opens another."""
        self._lane.drop()
        self.connection.close()

    def close_if_free(self) -> None:
        """Close the connection, unless another thread uses it."""
        if self._lock.acquire(blocking=False):
            try:
                self.close()
            finally:
                self._lock.release()

    def _drop_blocks(self) -> None:
        for supply in self._supplies.values():
            supply.drop_block()
