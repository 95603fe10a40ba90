"""What a client is in one process: a channel for each timeline. A fork's child gets another."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from uuidd.core.ids.kinds import KINDS
from uuidd_client.connection import Connection
from uuidd_client.environment import default_path, default_timeout, may_fall_back
from uuidd_client.errors import DaemonUnavailable, RateExceeded
from uuidd_client.fork_guard import Forked, ForkGuard, alive
from uuidd_client.silence import Silence
from uuidd_client.source import Reached, Source
from uuidd_client.supply import Run, Supply

Given = TypeVar("Given")

LOOK_SECONDS = 0.05
"""Seconds after which a thread that waits for a lock looks whether its process has forked."""

STATUS = "status"
"""The channel of requests for the status, beside those of the timelines."""


class Session:
    """The ids of one process, and its connections to the daemon.

    *socket* and *timeout* are None for the default; the rest is as for ``Client``. Raises
    ValueError when the environment holds a bad default.
    """

    def __init__(
        self, socket: str | None, fallback: bool, max_age: float, timeout: float | None, wait: bool
    ) -> None:
        self._alive = alive()
        self._channels: dict[str, _Channel] = {}
        self._new_channel = partial(
            _Channel,
            self._alive,
            socket or default_path(),
            default_timeout() if timeout is None else timeout,
            Silence(),
            may_fall_back(fallback),
            partial(Supply, max_age=max_age, wait=wait),
            Reached(),
        )
        # Where a child puts the session that follows; see following().
        self._next: dict[str, Session] = {}
        self._another = partial(Session, socket, fallback, max_age, timeout, wait)

    def following(self) -> Session:
        """Give this session or, in a fork's child, the one that the child has in its place.

        Without a lock, for the child may have been born while another thread held it: setdefault
        is atomic, so all threads of the child find the same one.
        """
        if self._alive[0]:
            return self
        following = self._next.setdefault("next", self._another())
        # The connections are the parent's. Closing them here does not hang up there.
        for channel in list(self._channels.values()):
            channel.connection.close()
        return following.following()

    def run(self, kind: str, form: str) -> tuple[Run, Any]:
        """Give a new run of ids of *kind* in *form*, and its first id."""
        return self._in_turn(KINDS[kind].timeline, lambda channel: channel.supply(kind).run(form))

    def make(self, kind: str, count: int, form: str) -> list[Any]:
        """Give exactly *count* ids of *kind* in *form*."""
        timeline = KINDS[kind].timeline
        return self._in_turn(timeline, lambda channel: channel.supply(kind).make(count, form))

    def join(self, kind: str, count: int) -> bytes:
        """Give the bytes of exactly *count* ids of *kind*, in one piece."""
        return self._in_turn(KINDS[kind].timeline, lambda channel: channel.supply(kind).join(count))

    def status(self) -> dict[str, Any]:
        """Give the daemon's status."""
        return self._in_turn(STATUS, lambda channel: channel.connection.status())

    def close(self) -> None:
        """Hang up; a later call connects anew."""
        for name in list(self._channels):
            self._in_turn(name, lambda channel: channel.connection.close())

    def _in_turn(self, name: str, use: Callable[[_Channel], Given]) -> Given:
        """Give what *use* makes of a channel, in the process that gets it.

        A signal handler may fork in the middle of that, and return in the child too. What comes of
        it is the parent's alone: the child drops it, and begins again with a session of its own.
        """
        session = self
        while True:
            try:
                given = session._channel(name).in_turn(use)
            except (Forked, DaemonUnavailable, RateExceeded):
                if session._alive[0]:
                    raise
            else:
                # The last look, behind which no handler comes in before the caller has the ids.
                if session._alive[0]:
                    return given
            session = session.following()

    def _channel(self, name: str) -> _Channel:
        channel = self._channels.get(name)
        # Atomic, as above.
        return channel or self._channels.setdefault(name, self._new_channel())


class _Channel:
    """The supplies of one timeline's kinds, over one connection, under one lock.

    Each timeline has its own, for what it waits for is its own too: a v1 is not held up by a v7
    that waits for the daemon's disk.
    """

    def __init__(
        self,
        alive: memoryview[float],
        path: str,
        timeout: float,
        silence: Silence,
        fallback: bool,
        new_supply: Callable[..., Supply],
        reached: Reached,
    ) -> None:
        self._alive = alive
        self._lock = threading.RLock()
        self._busy = self._overtaken = False
        self.connection = Connection(path, timeout, silence)
        self._source = Source(self.connection, fallback=fallback, reached=reached)
        self._supplies: dict[str, Supply] = {}
        self._new_supply = new_supply
        self._another = partial(
            _Channel, alive, path, timeout, silence, fallback, new_supply, reached
        )

    def in_turn(self, use: Callable[[_Channel], Given]) -> Given:
        """Give what *use* makes of the channel, for one thread at a time.

        It is this one, unless its own thread is in the middle of using it: then a signal handler
        or a finalizer has come in between, and gets a channel of its own rather than a deadlock.
        No generator, for one that an exception broke off holds the lock as long as its traceback.

        Raises Forked in a child whose parent forked while another thread held the lock, which
        nobody will release in the child.
        """
        try:
            while not self._lock.acquire(timeout=LOOK_SECONDS):
                if not self._alive[0]:
                    raise Forked
            if self._busy:
                return self._between(use)
            try:
                self._busy = True
                return use(self)
            finally:
                self._busy = False
                if self._overtaken:
                    self._overtaken = False
                    self._give_up()
        finally:
            try:  # noqa: SIM105  (a call before the release could be broken off)
                self._lock.release()
            except RuntimeError:
                # Broken off before the lock was acquired.
                pass

    def _between(self, use: Callable[[_Channel], Given]) -> Given:
        # What is later than the blocks in use here is given out now.
        self._overtaken = True
        apart = self._another()
        try:
            return use(apart)
        finally:
            apart._give_up()
            apart.connection.close()

    def supply(self, kind: str) -> Supply:
        """Give the supply of *kind*."""
        supply = self._supplies.get(kind)
        if supply is None:
            supply = self._new_supply(kind, source=self._source, page=ForkGuard())
            self._supplies[kind] = supply
        return supply

    def _give_up(self) -> None:
        for supply in self._supplies.values():
            supply.give_up()
