"""The client for asyncio and trio: other tasks go on while the daemon is asked.

It needs anyio: ``pip install 'uuidd[async]'``.

Theory of operation

1. Nearly all ids are made in this process within microseconds, on the event loop, by the cutter
   that ``Client`` has. It waits for nothing.
2. Where it has no id, a worker thread calls ``Client``. A call that is cancelled meanwhile does not
   wait for the thread. The id that this makes is lost; no id comes twice.
3. One task at a time has a thread make an id; those that come meanwhile find its source.
4. Long lists are made by a thread, in pieces, between which others get their turn.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import AsyncIterator, Callable, Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar, cast, overload

try:
    import anyio
    import anyio.lowlevel
    import anyio.to_thread
except ImportError as error:
    raise ImportError(
        "uuidd_client.aio needs the package anyio; install it with pip install 'uuidd[async]'"
    ) from error

import uuidd_client
from uuidd_client.channel import PACKED_BYTES, Channel
from uuidd_client.client import Client, counted, known, nothing
from uuidd_client.life import current

if TYPE_CHECKING:
    from uuidd_client.client import Form, IntKind, Kind, TextKind, UuidKind
    from uuidd_client.notices import Stats

Result = TypeVar("Result")
Draw = Callable[[], Coroutine[Any, Any, Result]]
"""A function to be awaited that returns one id."""

__all__ = ["AsyncClient"]

SHORT_LIST = 256
"""The most ids of a list that is made on the event loop, where one takes 5 us at most."""

PIECE = 4096
"""Ids of a long list that a thread makes before it lets others have their turn."""

IDS_A_TURN = 100
"""Ids of an ``async for`` after which other tasks get their turn."""

MAX_THREADS = 4
"""Threads of one event loop that call a client at once. Those whose task was cancelled count until
they end: the client's time-out is their limit."""

FULL_SECONDS = 0.001
"""Between two looks whether one of them has ended."""


class AsyncClient:
    """The ids of *client* for asyncio and trio; None is the client of the module's functions.

    ``AsyncClient(Client(max_age=0))`` has settings of its own. All tasks, threads and event loops
    may share one. Each method does what the one of ``Client`` with its name does, and raises what
    that one raises; ``aclose`` is ``close``. None blocks the event loop for longer than it takes to
    make the ids.

    If an id can be made without the daemon, ``await`` returns at once and other tasks do not get
    their turn. A call that has to ask the daemon can be cancelled: no id is repeated.
    """

    def __init__(self, client: Client | None = None) -> None:
        self._client = uuidd_client._client(client)
        self.uuid1 = self.factory("v1")
        self.uuid6 = self.factory("v6")
        self.uuid7 = self.factory("v7")
        self.snowflake = self.factory("snowflake")
        self.flake = self.factory("flake")
        self.ulid = self.factory("ulid")
        self.ksuid = self.factory("ksuid")
        self.push_id = self.factory("push_id")

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
    async def make(self, kind: Kind, count: int, form: Form | None = None) -> list[Any] | bytes: ...
    async def make(self, kind: str, count: int, form: str | None = None) -> list[Any] | bytes:
        """See ``Client.make``. A list of more than 256 ids is made by a thread."""
        form = known(kind, form)
        if not counted(count):
            return b"" if form == "bytes" else []
        channels = self._client._channels

        size = PACKED_BYTES.get(kind, 16) if form == "bytes" else 1

        def cut(channel: Channel) -> list[Any] | bytes | None:
            cutter = channel.cutter(kind)
            made: Any = () if cutter is None else cutter.many(kind, form, count)
            return made if len(made) == count * size else None

        if count <= SHORT_LIST and (made := channels.call(cut)) is not None:
            return made
        stopped = False

        def pieces(channel: Channel) -> list[Any] | bytes:
            parts: list[Any] = []
            for first in range(0, count, PIECE):
                if stopped:
                    break
                parts.append(channel.make(kind, form, min(PIECE, count - first)))
            return b"".join(parts) if form == "bytes" else [id for part in parts for id in part]

        try:
            return await _in_thread(partial(channels.call, pieces))
        finally:
            stopped = True

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

    @overload
    def factory(self, kind: UuidKind, form: None = None) -> Draw[uuid.UUID]: ...
    @overload
    def factory(self, kind: TextKind, form: None = None) -> Draw[str]: ...
    @overload
    def factory(self, kind: IntKind, form: None = None) -> Draw[int]: ...
    @overload
    def factory(self, kind: Kind, form: Form | None = None) -> Draw[Any]: ...
    def factory(self, kind: str, form: str | None = None) -> Draw[Any]:
        """Return a function to be awaited that returns one id; see ``Client.factory``."""
        form = known(kind, form)
        channels = self._client._channels
        draw = cast("Callable[..., Callable[[], Any]]", self._client.factory)(kind, form)
        cut: Callable[[str, str], Any] = nothing
        alive = current().alive

        async def drawn() -> Any:
            """Return the next id."""
            nonlocal cut, alive
            made = cut(kind, form)
            # A handler that forks may have run since. A look at the word of the life runs none.
            if made is None or not alive[0]:
                async with _this_loop().lock:
                    # Another task may have had a thread ask meanwhile.
                    alive = current().alive
                    cutter = channels.cutter(kind)
                    cut = nothing if cutter is None else cutter.one
                    made = cut(kind, form)
                    if made is None or not alive[0]:
                        made = await _in_thread(draw)
            return made

        return drawn

    async def status(self) -> dict[str, Any]:
        """See ``Client.status``."""
        return await _in_thread(self._client.status)

    def renew(self) -> None:
        """See ``Client.renew``. It waits for nothing, so it is no coroutine."""
        self._client.renew()

    async def stats(self) -> Stats:
        """See ``Client.stats``."""
        return await _in_thread(self._client.stats)

    async def aclose(self) -> None:
        """Close the connections, as ``Client.close`` does."""
        if self._client._channels.made:
            await _in_thread(self._client.close)

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        with anyio.CancelScope(shield=True):
            await self.aclose()


class _Ids:
    """An endless asynchronous iterator over what *draw* returns."""

    def __init__(self, draw: Draw[Any]) -> None:
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


class _Loop(NamedTuple):
    """What one event loop has of its own: a *lock*, and the *threads* that run for it."""

    lock: anyio.Lock
    threads: set[object]


_of_this: anyio.lowlevel.RunVar[_Loop] = anyio.lowlevel.RunVar("uuidd_client")


def _this_loop() -> _Loop:
    """Return what the event loop that runs now has."""
    loop = _of_this.get(None)
    if loop is None:
        loop = _Loop(anyio.Lock(), set())
        _of_this.set(loop)
    return loop


async def _in_thread(work: Callable[[], Result]) -> Result:
    """Return what *work* returns in a thread, which is left alone if this is cancelled."""
    threads = _this_loop().threads
    # Who acquires it has the thread's place: the thread or, if it has not begun, the end of this.
    begun = threading.Lock()

    def run() -> Result | None:
        if not begun.acquire(blocking=False):
            return None
        try:
            return work()
        finally:
            threads.discard(begun)

    # Neither a thread that was left alone, nor anyio, tells this loop that it has ended.
    while len(threads) >= MAX_THREADS:  # noqa: ASYNC110
        await anyio.sleep(FULL_SECONDS)
    threads.add(begun)
    try:
        # The program's own threads may have taken all of the common limit.
        own = anyio.CapacityLimiter(1)
        made = await anyio.to_thread.run_sync(run, abandon_on_cancel=True, limiter=own)
    finally:
        if begun.acquire(blocking=False):
            threads.discard(begun)
    return made  # type: ignore[return-value]  # not None, as this was not cancelled
