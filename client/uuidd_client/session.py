"""What a client is in one process: a lock, a line, supplies. A fork's child gets another."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from uuidd_client.connection import Connection, default_path
from uuidd_client.page import Page
from uuidd_client.source import Source, may_fall_back
from uuidd_client.supply import Run, Supply

Given = TypeVar("Given")


class Session:
    """The supplies of one process, one for each kind, over one line, under one lock.

    *socket* is None for the default; the rest is as for ``Client``.
    """

    def __init__(
        self, socket: str | None, fallback: bool, max_age: float, timeout: float, wait: bool
    ) -> None:
        self._page = Page()
        self._lock = threading.RLock()
        self._busy = self._overtaken = False
        self._connection = Connection(socket or default_path(), timeout)
        self._source = Source(self._connection, fallback=may_fall_back(fallback))
        self._supplies: dict[str, Supply] = {}
        # Where a child puts the session that follows; see following().
        self._next: dict[str, Session] = {}
        self._new_supply = partial(Supply, source=self._source, max_age=max_age, wait=wait)
        self._another = partial(Session, socket, fallback, max_age, timeout, wait)

    def following(self) -> Session:
        """Give this session or, in a fork's child, the one that the child has in its place.

        Without a lock, for the child may have been born while another thread held it: setdefault
        is atomic, so all threads of the child find the same one.
        """
        if self._page.alive[0]:
            return self
        following = self._next.setdefault("next", self._another())
        # The line is the parent's. Closing it here does not hang up there.
        self._connection.close()
        return following.following()

    def run(self, kind: str, form: str) -> tuple[Run, Any]:
        """Give a new run of ids of *kind* in *form*, and its first id."""
        return self._in_turn(lambda session: session._supply(kind).run(form))

    def make(self, kind: str, count: int, form: str) -> list[Any]:
        """Give exactly *count* ids of *kind* in *form*."""
        return self._in_turn(lambda session: session._supply(kind).make(count, form))

    def join(self, kind: str, count: int) -> bytes:
        """Give the bytes of exactly *count* ids of *kind*, in one piece."""
        return self._in_turn(lambda session: session._supply(kind).join(count))

    def status(self) -> dict[str, Any]:
        """Give the daemon's status."""
        return self._in_turn(lambda session: session._connection.status())

    def close(self) -> None:
        """Hang up; a later call connects anew."""
        self._in_turn(lambda session: session._connection.close())

    def _in_turn(self, use: Callable[[Session], Given]) -> Given:
        """Give what *use* makes of the session, for one thread at a time.

        It is this one, unless its own thread is in the middle of using it: then a signal handler
        or a finalizer has come in between, and gets a session of its own rather than a deadlock.
        No generator, for one that an exception broke off holds the lock as long as its traceback.
        """
        with self._lock:
            if self._busy:
                # What is later than the blocks in use here is given out now.
                self._overtaken = True
                apart = self._another()
                try:
                    return use(apart)
                finally:
                    apart._give_up()
                    apart.close()
            try:
                self._busy = True
                return use(self)
            finally:
                self._busy = False
                if self._overtaken:
                    self._overtaken = False
                    self._give_up()

    def _give_up(self) -> None:
        for supply in self._supplies.values():
            supply.give_up()

    def _supply(self, kind: str) -> Supply:
        supply = self._supplies.get(kind)
        if supply is None:
            supply = self._new_supply(kind, page=Page())
            self._supplies[kind] = supply
        return supply
