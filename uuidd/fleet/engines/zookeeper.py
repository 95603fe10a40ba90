"""ZooKeeper as the engine, by kazoo, whose threads hand their answers to trio.

A session means nothing here: when it expires kazoo makes another, and the next write is compared as
all are. Two traps of kazoo are kept out of the way: ``start_async`` is called once (a second call
may wait for its own thread), and nothing is asked while there is no connection, because kazoo would
keep the question and send it long after.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeVar

import trio
from kazoo.client import KazooClient
from kazoo.exceptions import (
    NodeExistsError,
    NoNodeError,
)
from kazoo.retry import KazooRetry
from kazoo.security import make_digest_acl

from uuidd.fleet.address import Access, Address, host_and_port, secret
from uuidd.fleet.coordinator import (
    Away,
    Changed,
    Found,
    Freed,
    Version,
    is_let_go,
    known_id,
)
from uuidd.fleet.engines.zookeeper_session import KazooSession, LastLine
from uuidd.fleet.record import (
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
    logger, last = logging.Logger("kazoo", logging.WARNING), LastLine()
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


def _end(client: KazooClient) -> None:
    client.stop()
    with suppress(Exception):
        client.close()


class ZookeeperCoordinator(KazooSession):
    """The namespace at the nodes below the URL's path. See ``Coordinator``."""

    def __init__(self, address: Address, user: str, client: KazooClient, last: LastLine) -> None:
        super().__init__(client, address.path, user, last)
        self.name = address.name
        self._id: str | None = None
        self._fired: trio.Event | None = None

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

        return await self.in_time(ask)

    async def create(self, meta: Meta, registers: Mapping[int, Record]) -> None:
        """See ``Coordinator``."""

        async def ask() -> None:
            path = ""
            for each in self._path.strip("/").split("/"):
                path = f"{path}/{each}"
                with suppress(NodeExistsError):
                    await self.answer(self._client.create_async(path))
            if await self.answer(self._client.exists_async(f"{path}/meta")) is not None:
                raise Changed
            await self.answer(self._client.create_async(f"{path}/{meta.id}"))
            made = [
                self._client.create_async(
                    f"{path}/{meta.id}/{register_name(number)}", encode(record)
                )
                for number, record in registers.items()
            ]
            for each in made:
                await self.answer(each)
            await self.answer(self._client.create_async(f"{path}/meta", encode(meta)))

        await self.in_time(ask)

    async def taken(self) -> AbstractSet[int]:
        """See ``Coordinator``."""
        own = self._own()

        async def ask() -> set[int]:
            return set(await self._numbers(own))

        return await self.in_time(ask)

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
                    data, stat = await self.answer(each)
                    found[number] = _found(data, stat, paths[number])
                except UnreadableError as error:
                    found[number] = str(error)
            return found

        return await self.in_time(ask)

    async def read(self, number: int) -> Found | None:
        """See ``Coordinator``."""
        path = f"{self._own()}/{register_name(number)}"

        async def ask() -> Found | None:
            try:
                data, stat = await self._newest(path)
                return _found(data, stat, path)
            except NoNodeError:
                return None

        return await self.in_time(ask)

    async def write(self, number: int, record: Record, version: Version | None) -> Version:
        """See ``Coordinator``."""
        path, data = f"{self._own()}/{register_name(number)}", encode(record)

        async def ask() -> Version:
            if version is None:
                _, stat = await self.answer(
                    self._client.create_async(path, data, include_data=True)
                )
                return stat.czxid, stat.version, data
            # A ZooKeeper that was restored, and a node that was made again, count versions anew.
            there, stat = await self.answer(self._client.get_async(path))
            if (stat.czxid, stat.version, there) != version:
                raise Changed
            stat = await self.answer(self._client.set_async(path, data, stat.version))
            return stat.czxid, stat.version, data

        new = await self.in_time(ask)
        if is_let_go(record):
            with suppress(Away, Changed):
                await self.in_time(lambda: self._tell_freed(number))
        return new

    async def freed(self, after: int | None) -> Freed:
        """See ``Coordinator``."""
        while True:
            freed = await self.in_time(self._freed)
            if freed.count != after:
                return freed
            assert self._fired is not None  # noqa: S101 - the question has set it
            await self._fired.wait()

    async def _freed(self) -> Freed:
        """Return what was let go so far, and have the next time told."""
        path, watch = f"{self._own()}/freed", None
        if self._fired is None or self._fired.is_set():
            fired = self._fired = trio.Event()

            def watch(_: object) -> None:
                with suppress(trio.RunFinishedError):
                    self._token.run_sync_soon(fired.set)

        try:
            data, stat = await self.answer(self._client.get_async(path, watch=watch))
        except NoNodeError:
            await self.answer(self._client.exists_async(path, watch=watch))
            return Freed(0, None)
        return Freed(stat.version + 1, int(data))

    async def _tell_freed(self, number: int) -> None:
        path, data = f"{self._own()}/freed", b"%d" % number
        try:
            await self.answer(self._client.set_async(path, data))
        except NoNodeError:
            await self.answer(self._client.create_async(path, data))

    def _own(self) -> str:
        return f"{self._path}/{known_id(self._id)}"

    async def _numbers(self, own: str) -> list[int]:
        synced = self._client.sync_async(own)
        names = self._client.get_children_async(own)
        await self.answer(synced)
        numbers = map(register_number, await self.answer(names))
        return sorted(number for number in numbers if number is not None)

    async def _newest(self, path: str) -> tuple[bytes, Any]:
        """Return a node's data and stat. Without the sync a follower may give old ones."""
        synced = self._client.sync_async(path)
        got = self._client.get_async(path)
        await self.answer(synced)
        data, stat = await self.answer(got)
        return data, stat


def _found(data: bytes, stat: Any, path: str) -> Found:
    version = stat.czxid, stat.version, data
    return Found(decode_record(data, path), version, stat.mtime / 1000)
