"""ZooKeeper as the engine, by kazoo, whose threads hand their answers to trio.

A session means nothing here: when it expires kazoo makes another, and the next write is compared as
all are. Two traps of kazoo are kept out of the way: ``start_async`` is called once (a second call
may wait for its own thread), and nothing is asked while there is no connection, because kazoo would
keep the question and send it long after.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from collections.abc import Set as AbstractSet
from contextlib import asynccontextmanager, suppress
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
from kazoo.retry import KazooRetry
from kazoo.security import make_digest_acl

from uuidd.workers.address import Access, Address, host_and_port, secret
from uuidd.workers.asking import in_time
from uuidd.workers.coordinator import Away, Changed, Found, Version, one_line
from uuidd.workers.record import (
    Meta,
    Record,
    UnreadableError,
    decode_meta,
    decode_record,
    encode,
    register_name,
    register_number,
)

SESSION_SECONDS = 4.0
"""Of a session. kazoo takes a host for dead after a third of it, and goes on to the next."""

_Answer = TypeVar("_Answer")

STOP_SECONDS = 1.0
"""For the session's end; without it the server ends the session later."""


@asynccontextmanager
async def connected(address: Address, access: Access) -> AsyncIterator[ZookeeperCoordinator]:
    """Give the namespace for the time of a block."""
    user, password = access.user or address.user, secret(access)
    # Apart from the daemon's log, for kazoo writes a line for each attempt; the last one is kept.
    logger, last = logging.Logger("kazoo", logging.WARNING), _LastLine()
    logger.addHandler(last)
    client = KazooClient(
        hosts=",".join(host_and_port(*each) for each in address.hosts),
        timeout=SESSION_SECONDS,
        connection_retry=KazooRetry(max_tries=-1, delay=0.1, backoff=2, max_delay=2.0),
        auth_data=[("digest", f"{user}:{password}")] if password else None,
        default_acl=[make_digest_acl(user, password, all=True)] if password else None,
        use_ssl=address.tls,
        verify_certs=True,
        check_hostname=True,
        ca=None if access.ca is None else str(access.ca),
        certfile=None if access.cert is None else str(access.cert),
        keyfile=None if access.key is None else str(access.key),
        logger=logger,
    )
    coordinator = ZookeeperCoordinator(address, user, client, last)
    client.start_async()
    try:
        yield coordinator
    finally:
        with trio.move_on_after(STOP_SECONDS, shield=True):
            await trio.to_thread.run_sync(_end, client, abandon_on_cancel=True)


class _LastLine(logging.Handler):
    """Keeps the last line of a log."""

    line = ""

    def emit(self, record: logging.LogRecord) -> None:
        """Keep it."""
        self.line = one_line(record.getMessage())


def _end(client: KazooClient) -> None:
    client.stop()
    with suppress(Exception):
        client.close()


class ZookeeperCoordinator:
    """The namespace at the nodes below the URL's path. See ``Coordinator``."""

    def __init__(self, address: Address, user: str, client: KazooClient, last: _LastLine) -> None:
        self.name = address.name
        self._path = address.path
        self._user = user
        self._client = client
        self._last = last
        self._id: str | None = None
        self._token = trio.lowlevel.current_trio_token()
        self._is_connected = trio.Event()
        client.add_listener(self._on_state)

    async def meta(self) -> Meta | None:
        """See ``Coordinator``."""

        async def ask() -> Meta | None:
            path = f"{self._path}/meta"
            try:
                data, _ = await self._newest(path)
            except NoNodeError:
                self._id = None
                return None
            meta = decode_meta(data, path)
            self._id = meta.id
            return meta

        return await self._in_time(ask)

    async def create(self, meta: Meta, registers: Mapping[int, Record]) -> None:
        """See ``Coordinator``."""

        async def ask() -> None:
            path = ""
            for each in self._path.strip("/").split("/"):
                path = f"{path}/{each}"
                with suppress(NodeExistsError):
                    await self._answer(self._client.create_async(path))
            if await self._answer(self._client.exists_async(f"{path}/meta")) is not None:
                raise Changed
            await self._answer(self._client.create_async(f"{path}/{meta.id}"))
            made = [
                self._client.create_async(
                    f"{path}/{meta.id}/{register_name(number)}", encode(record)
                )
                for number, record in registers.items()
            ]
            for each in made:
                await self._answer(each)
            await self._answer(self._client.create_async(f"{path}/meta", encode(meta)))

        await self._in_time(ask)

    async def taken(self) -> AbstractSet[int]:
        """See ``Coordinator``."""
        own = self._own()

        async def ask() -> set[int]:
            return set(await self._numbers(own))

        return await self._in_time(ask)

    async def registers(self) -> Mapping[int, Found | str]:
        """See ``Coordinator``."""
        own = self._own()

        async def ask() -> dict[int, Found | str]:
            paths = {
                number: f"{own}/{register_name(number)}" for number in await self._numbers(own)
            }
            asked = {number: self._client.get_async(path) for number, path in paths.items()}
            found: dict[int, Found | str] = {}
            for number, each in asked.items():
                try:
                    data, stat = await self._answer(each)
                    found[number] = _found(data, stat, paths[number])
                except UnreadableError as error:
                    found[number] = str(error)
            return found

        return await self._in_time(ask)

    async def read(self, number: int) -> Found | None:
        """See ``Coordinator``."""
        path = f"{self._own()}/{register_name(number)}"

        async def ask() -> Found | None:
            try:
                data, stat = await self._newest(path)
                return _found(data, stat, path)
            except NoNodeError:
                return None

        return await self._in_time(ask)

    async def write(self, number: int, record: Record, version: Version | None) -> Version:
        """See ``Coordinator``."""
        path, data = f"{self._own()}/{register_name(number)}", encode(record)

        async def ask() -> Version:
            if version is None:
                _, stat = await self._answer(
                    self._client.create_async(path, data, include_data=True)
                )
                return stat.czxid, stat.version, data
            # A ZooKeeper that was restored, and a node that was made again, count versions anew.
            there, stat = await self._answer(self._client.get_async(path))
            if (stat.czxid, stat.version, there) != version:
                raise Changed
            stat = await self._answer(self._client.set_async(path, data, stat.version))
            return stat.czxid, stat.version, data

        return await self._in_time(ask)

    def _own(self) -> str:
        if self._id is None:
            raise RuntimeError("the namespace is asked for first, and must be there")
        return f"{self._path}/{self._id}"

    async def _numbers(self, own: str) -> list[int]:
        synced = self._client.sync_async(own)
        names = self._client.get_children_async(own)
        await self._answer(synced)
        numbers = map(register_number, await self._answer(names))
        return sorted(number for number in numbers if number is not None)

    async def _newest(self, path: str) -> tuple[bytes, Any]:
        """Return a node's data and stat. Without the sync a follower may give old ones."""
        synced = self._client.sync_async(path)
        got = self._client.get_async(path)
        await self._answer(synced)
        data, stat = await self._answer(got)
        return data, stat

    async def _in_time(self, ask: Callable[[], Awaitable[_Answer]]) -> _Answer:
        """Return what *ask* returns, with kazoo's errors as those of ``Coordinator``."""

        async def ask_connected() -> _Answer:
            await self._is_connected.wait()
            return await ask()

        connected = self._is_connected.is_set()

        try:
            return await in_time(ask_connected)
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

    async def _answer(self, asked: Any) -> Any:
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


def _found(data: bytes, stat: Any, path: str) -> Found:
    version = stat.czxid, stat.version, data
    return Found(decode_record(data, path), version, stat.mtime / 1000)
