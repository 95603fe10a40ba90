"""What kazoo's threads are asked, and their answers handed to trio."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, TypeVar

import trio
from kazoo.client import KazooClient, KazooState
from kazoo.exceptions import (
    BadVersionError,
    KazooException,
    NoAuthError,
    NodeExistsError,
    NoNodeError,
)

from uuidd.fleet import asking
from uuidd.fleet.coordinator import Away, Changed, one_line

_Answer = TypeVar("_Answer")


class LastLine(logging.Handler):
    """Keeps the last line of a log."""

    line = ""

    def emit(self, record: logging.LogRecord) -> None:
        """Keep it."""
        self.line = one_line(record.getMessage())


class KazooSession:
    """A connection that kazoo keeps, for what is at *path*, as *user*; *last* has its last line."""

    def __init__(self, client: KazooClient, path: str, user: str, last: LastLine) -> None:
        self._client = client
        self._path = path
        self._user = user
        self._last = last
        self._token = trio.lowlevel.current_trio_token()
        self._is_connected = trio.Event()
        client.add_listener(self._on_state)

    async def in_time(self, ask: Callable[[], Awaitable[_Answer]]) -> _Answer:
        """Return what *ask* returns, with kazoo's errors as those of ``Coordinator``."""

        async def ask_connected() -> _Answer:
            await self._is_connected.wait()
            return await ask()

        connected = self._is_connected.is_set()
        asking.check_network()
        try:
            return await asking.in_time(ask_connected)
        except (NodeExistsError, BadVersionError, NoNodeError):
            raise Changed from None
        except NoAuthError as error:
            user = f"the user {self._user}" if self._user else "those without a user"
            raise Away(f"it refuses {user} at {self._path}") from error
        except Away as away:
            why = "" if connected else self._last.line
            raise Away(f"{away} ({why})" if why else str(away)) from None
        except KazooException as error:
            raise Away(f"{type(error).__name__} {one_line(error)}".strip()) from error

    async def answer(self, asked: Any) -> Any:
        """Return what kazoo's threads get, or raise its exception."""
        done = trio.Event()

        def tell(_: object) -> None:
            with suppress(trio.RunFinishedError):
                self._token.run_sync_soon(done.set)

        asked.rawlink(tell)
        await done.wait()
        return asked.get(block=False)

    def _on_state(self, state: str) -> None:
        """Note whether there is a connection; called by a thread of kazoo's."""
        if state != KazooState.CONNECTED:
            # A server refuses who has seen a later write than it has, and one that was restored
            # would do so for ever. Nothing relies on that check: each read begins with a sync.
            self._client.last_zxid = 0
        with suppress(trio.RunFinishedError):
            self._token.run_sync_soon(self._note, state == KazooState.CONNECTED)

    def _note(self, is_connected: bool) -> None:
        if is_connected:
            self._is_connected.set()
        elif self._is_connected.is_set():
            self._is_connected = trio.Event()
