"""The client for asyncio and trio: other tasks go on while the daemon is asked.

It needs anyio: ``pip install 'uuidd[async]'``.

Theory of operation

1. Nearly all ids are made in this process within microseconds. This happens on the event loop, by
   the same code as that of ``Client``, which raises MustWait where it would have to ask the daemon,
   or to wait for another thread.
2. Then a worker thread asks the daemon for a lease or a block. The id is made on the event loop
   afterwards. So a call that is cancelled meanwhile loses no id: what the daemon has answered is
   there for the next call. The thread is not awaited then.
3. One task at a time has a thread ask for one timeline; those that come meanwhile find its result.
4. Long lists are made by a thread, in pieces, between which others get their turn.
"""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, overload

try:
    import anyio
    import anyio.lowlevel
except ImportError as error:
    raise ImportError(
        "uuidd_client.aio needs the package anyio; install it with pip install 'uuidd[async]'"
    ) from error

import uuidd_client
from uuidd.core.ids.kinds import KINDS
from uuidd_client.arguments import counted, known
from uuidd_client.client import Client
from uuidd_client.counts import Stats
from uuidd_client.drawing import function
from uuidd_client.event_loop import this_loop
from uuidd_client.session import Session
from uuidd_client.transport import MustWait
from uuidd_client.watch import latest

if TYPE_CHECKING:
    from uuidd_client.client import Form, IntKind, Kind, TextKind, UuidKind

__all__ = ["AsyncClient"]

SHORT_LIST = 256
"""The most ids of a list that is made on the event loop, where one takes 5 us at most."""

PIECE = 4096
"""Ids of a long list that a thread makes before it lets others have their turn."""

IDS_A_TURN = 100
"""Ids of an ``async for`` after which other tasks get their turn."""

TRIES = 2
"""How often a thread asks before it makes the id too: with a max_age of 0, nothing can be kept."""


class AsyncClient:
    """The ids of *client* for asyncio and trio; None is the client of the module's functions.

    ``AsyncClient(Client(max_age=0))`` has settings of its own. All tasks, threads and event loops
    may share one. Each method does what the one of ``Client`` with its name does, and raises what
    that one raises; ``aclose`` is ``close``. None blocks the event loop for longer than it takes to
    make the ids.

    If an id can be made without the daemon, ``await`` returns at once and other tasks do not get
    their turn. A call that has to ask the daemon can be cancelled: no id is lost or repeated. A
    list whose making is cancelled is dropped.
    """

    def __init__(self, client: Client | None = None) -> None:
        self._client = uuidd_client._shared if client is None else client
        self._uuid1 = self.factory("v1")
        self._uuid6 = self.factory("v6")
        self._uuid7 = self.factory("v7")
        self._snowflake = self.factory("snowflake")
        self._flake = self.factory("flake")
        self._ulid = self.factory("ulid")
        self._ksuid = self.factory("ksuid")
        self._push_id = self.factory("push_id")

    async def uuid1(self) -> uuid.UUID:
        """See ``Client.uuid1``."""
        return await self._uuid1()

    async def uuid6(self) -> uuid.UUID:
        """See ``Client.uuid6``."""
        return await self._uuid6()

    async def uuid7(self) -> uuid.UUID:
        """See ``Client.uuid7``."""
        return await self._uuid7()

    async def snowflake(self) -> int:
        """See ``Client.snowflake``."""
        return await self._snowflake()

    async def flake(self) -> str:
        """See ``Client.flake``."""
        return await self._flake()

    async def ulid(self) -> str:
        """See ``Client.ulid``."""
        return await self._ulid()

    async def ksuid(self) -> str:
        """See ``Client.ksuid``."""
        return await self._ksuid()

    async def push_id(self) -> str:
        """See ``Client.push_id``."""
        return await self._push_id()

    if TYPE_CHECKING:

        @overload
        async def make(self, kind: UuidKind, count: int, form: None = None) -> list[uuid.UUID]: ...
        @overload
        async def make(self, kind: TextKind, count: int, form: None = None) -> list[str]: ...
        @overload
        async def make(self, kind: IntKind, count: int, form: None = None) -> list[int]: ...
        @overload
        async def make(self, kind: Kind, count: int, form: Literal["uuid"]) -> list[uuid.UUID]: ...
        @overload
        async def make(self, kind: Kind, count: int, form: Literal["text"]) -> list[str]: ...
        @overload
        async def make(self, kind: Kind, count: int, form: Literal["int"]) -> list[int]: ...
        @overload
        async def make(self, kind: Kind, count: int, form: Literal["bytes"]) -> bytes: ...
        @overload
        async def make(
            self, kind: Kind, count: int, form: Form | None = None
        ) -> list[Any] | bytes: ...

    async def make(self, kind: str, count: int, form: str | None = None) -> list[Any] | bytes:
        """See ``Client.make``. A list of more than 256 ids is made by a thread."""
        form = known(kind, form)
        if not counted(count):
            return b"" if form == "bytes" else []
        if count <= SHORT_LIST and self._client._session.made():
            try:
                made: list[Any] | bytes = self._part(kind, count, form, wait=False)
                return made
            except MustWait:
                pass
        stopped = False

        def pieces() -> list[Any]:
            parts = []
            for first in range(0, count, PIECE):
                if stopped:
                    break
                parts.append(self._part(kind, min(PIECE, count - first), form))
            return parts

        def make() -> list[Any] | bytes:
            watch, parts = latest(), pieces()
            if watch.moved:
                # The machine was cloned meanwhile, and its copy may return the first parts too.
                parts = pieces()
            return b"".join(parts) if form == "bytes" else [id for part in parts for id in part]

        try:
            return await this_loop().in_thread(make)
        finally:
            stopped = True

    def _part(self, kind: str, count: int, form: str, *, wait: bool = True) -> Any:
        call = self._client._session.call
        if form == "bytes":
            return call(lambda session: session.join(kind, count, wait=wait))
        return call(lambda session: session.make(kind, count, form, wait=wait))

    if TYPE_CHECKING:

        @overload
        def iter(self, kind: UuidKind, form: None = None) -> AsyncIterator[uuid.UUID]: ...
        @overload
        def iter(self, kind: TextKind, form: None = None) -> AsyncIterator[str]: ...
        @overload
        def iter(self, kind: IntKind, form: None = None) -> AsyncIterator[int]: ...
        @overload
        def iter(self, kind: Kind, form: Literal["uuid"]) -> AsyncIterator[uuid.UUID]: ...
        @overload
        def iter(self, kind: Kind, form: Literal["text"]) -> AsyncIterator[str]: ...
        @overload
        def iter(self, kind: Kind, form: Literal["int"]) -> AsyncIterator[int]: ...
        @overload
        def iter(self, kind: Kind, form: Literal["bytes"]) -> AsyncIterator[bytes]: ...
        @overload
        def iter(self, kind: Kind, form: Form | None = None) -> AsyncIterator[Any]: ...

    def iter(self, kind: Kind, form: Form | None = None) -> AsyncIterator[Any]:
        """Return an endless iterator for ``async for``; see ``Client.iter``.

        Other tasks get their turn after each 100 ids at the latest.
        """
        return _Ids(self.factory(kind, form))

    if TYPE_CHECKING:

        @overload
        def factory(
            self, kind: UuidKind, form: None = None
        ) -> Callable[[], Awaitable[uuid.UUID]]: ...
        @overload
        def factory(self, kind: TextKind, form: None = None) -> Callable[[], Awaitable[str]]: ...
        @overload
        def factory(self, kind: IntKind, form: None = None) -> Callable[[], Awaitable[int]]: ...
        @overload
        def factory(self, kind: Kind, form: Form | None = None) -> Callable[[], Awaitable[Any]]: ...

    def factory(self, kind: str, form: str | None = None) -> Callable[[], Awaitable[Any]]:
        """Return a function to be awaited that returns one id; see ``Client.factory``."""
        form = known(kind, form)
        draw = function(self._client._drawing.factory(kind, form, wait=False))
        session, later = self._client._session, self._later

        async def drawn() -> Any:
            """Return the next id."""
            if session.made():
                try:
                    return draw()
                except MustWait:
                    pass
            return await later(kind, form, draw)

        return drawn

    async def status(self) -> dict[str, Any]:
        """See ``Client.status``."""
        return await this_loop().in_thread(self._client.status)

    def renew(self) -> None:
        """See ``Client.renew``. It waits for nothing, so it is no coroutine."""
        self._client.renew()

    async def stats(self) -> Stats:
        """See ``Client.stats``."""
        return await this_loop().in_thread(self._client.stats)

    async def aclose(self) -> None:
        """Close the connections, as ``Client.close`` does."""
        if self._client._session.made():
            await this_loop().in_thread(self._client.close)

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        with anyio.CancelScope(shield=True):
            await self.aclose()

    async def _later(self, kind: str, form: str, draw: Callable[[], Any]) -> Any:
        """Return an id of *draw*, after a thread has asked the daemon for what it is made of."""
        call = self._client._session.call

        def prepare(session: Session) -> None:
            session.prepare(kind)

        def make(session: Session) -> Any:
            return session.make(kind, 1, form)[0]

        loop = this_loop()
        async with loop.locks[KINDS[kind].timeline]:
            made = None
            for work in (*[prepare] * TRIES, make):
                # Another task may have had a thread ask meanwhile.
                if self._client._session.made():
                    try:
                        return draw()
                    except MustWait:
                        pass
                made = await loop.in_thread(partial(call, work))
            return made


class _Ids:
    """An endless asynchronous iterator over what *draw* returns."""

    def __init__(self, draw: Callable[[], Awaitable[Any]]) -> None:
        self._draw = draw
        self._left = IDS_A_TURN

    def __aiter__(self) -> _Ids:
        return self

    async def __anext__(self) -> Any:
        self._left -= 1
        if not self._left:
            self._left = IDS_A_TURN
            await anyio.lowlevel.checkpoint()
        return await self._draw()
