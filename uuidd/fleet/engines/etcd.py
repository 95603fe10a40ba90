"""etcd as the engine, through its JSON gateway (``/v3``, etcd 3.4 and later).

etcd's own protocol is gRPC, whose library is large and knows nothing of trio. In the gateway's JSON
a key or value is base64, a 64-bit number is text, and a field that is false or zero is left out.
"""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import AsyncIterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import trio

from uuidd.fleet.address import Access, Address, host_and_port, secret
from uuidd.fleet.asking import CONNECT_SECONDS, HOST_SECONDS, check_network, in_time, tls_context
from uuidd.fleet.coordinator import (
    Away,
    Changed,
    Found,
    Freed,
    Version,
    is_let_go,
    known_id,
    one_line,
    reason,
)
from uuidd.fleet.engines.etcd_json import base64, message, number_of, put, text, understood
from uuidd.fleet.record import (
    Meta,
    Record,
    UnreadableError,
    decode_meta,
    decode_record,
    encode,
    register_name,
)

MAX_BYTES = 4 << 20
"""Of an answer; all 1,024 registers have some 350 kB."""

OPERATIONS = 100
"""In one transaction; etcd takes 128 by default."""

_NOT_ASKED = (httpx2.ConnectError, httpx2.ConnectTimeout)
"""Then no host has got the request."""


@asynccontextmanager
async def connected(address: Address, access: Access) -> AsyncIterator[EtcdCoordinator]:
    """Give the namespace for the time of a block. Raises AddressError."""
    async with httpx2.AsyncClient(
        verify=tls_context(access) if address.tls else False,
        # No proxy of the environment gets to see this.
        trust_env=False,
        timeout=httpx2.Timeout(HOST_SECONDS, connect=CONNECT_SECONDS),
        limits=httpx2.Limits(max_connections=4, max_keepalive_connections=2),
        follow_redirects=False,
    ) as client:
        yield EtcdCoordinator(address, access, client)


class EtcdCoordinator:
    """The namespace at keys that begin with the URL's path. See ``Coordinator``."""

    def __init__(self, address: Address, access: Access, client: httpx2.AsyncClient) -> None:
        self.name = address.name
        self._path = address.path
        self._hosts = [
            f"{'https' if address.tls else 'http'}://{host_and_port(*each)}"
            for each in address.hosts
        ]
        self._user = access.user or address.user
        self._secret = secret(access)
        self._client = client
        self._token: str | None = None
        self._meta: bytes | None = None
        self._id: str | None = None

    async def meta(self) -> Meta | None:
        """See ``Coordinator``."""
        kvs = await self._range({"key": text(self._meta_key)}, self._meta_key)
        if not kvs:
            self._meta = self._id = None
            return None
        _, value, _ = kvs[0]
        meta = decode_meta(value, self._meta_key)
        self._meta, self._id = value, meta.id
        return meta

    async def create(self, meta: Meta, registers: Mapping[int, Record]) -> None:
        """See ``Coordinator``."""
        absent = {"key": text(self._meta_key), "target": "VERSION", "version": "0"}
        puts = [
            put(f"{self._path}/{meta.id}/{register_name(number)}", encode(record))
            for number, record in registers.items()
        ]
        # Before the namespace is there: nobody else knows its id yet.
        for first in range(0, len(puts), OPERATIONS):
            await self._transaction([absent], puts[first : first + OPERATIONS])
        await self._transaction([absent], [put(self._meta_key, encode(meta))])

    async def taken(self) -> AbstractSet[int]:
        """See ``Coordinator``."""
        kvs = await self._all(keys_only=True)
        return {number for key, _, _ in kvs if (number := number_of(key)) is not None}

    async def registers(self) -> Mapping[int, Found | str]:
        """See ``Coordinator``."""
        found: dict[int, Found | str] = {}
        for key, value, revision in await self._all():
            number = number_of(key)
            if number is not None:
                try:
                    found[number] = Found(decode_record(value, key), (revision, value))
                except UnreadableError as error:
                    found[number] = str(error)
        return found

    async def read(self, number: int) -> Found | None:
        """See ``Coordinator``."""
        key = self._key(number)
        for _, value, revision in await self._range({"key": text(key)}, key):
            return Found(decode_record(value, key), (revision, value))
        return None

    async def write(self, number: int, record: Record, version: Version | None) -> Version:
        """See ``Coordinator``."""
        key, data = self._key(number), encode(record)
        there = {"key": text(self._meta_key), "target": "VALUE", "value": base64(self._meta)}
        if version is None:
            compare = [{"key": text(key), "target": "VERSION", "version": "0"}]
        else:
            # The value too, for a restored etcd may give a revision once more.
            revision, value = version
            compare = [
                {"key": text(key), "target": "MOD", "mod_revision": str(revision)},
                {"key": text(key), "target": "VALUE", "value": base64(value)},
            ]
        puts = [put(key, data)]
        if is_let_go(record):
            puts.append(put(self._freed_key, b"%d" % number))
        return await self._transaction([there, *compare], puts), data

    async def freed(self, after: int | None) -> Freed:
        """See ``Coordinator``."""
        key = self._freed_key
        while True:
            answer = await self._ask("kv/range", {"key": text(key)}, repeat=True)
            with understood(key):
                freed, revision = Freed(0, None), int(answer["header"]["revision"])
                for each in answer.get("kvs", []):
                    # Of a key, etcd counts the writes.
                    freed = Freed(int(each["version"]), int(b64decode(each["value"])))
            if freed.count != after:
                return freed
            await self._until_written(key, revision)

    async def _until_written(self, key: str, revision: int) -> None:
        """Wait until a key is written after a *revision*. Raises Away."""
        body = {"create_request": {"key": text(key), "start_revision": str(revision + 1)}}
        headers = {} if self._token is None else {"Authorization": self._token}
        url = f"{self._hosts[0]}/v3/watch"
        timeout = httpx2.Timeout(HOST_SECONDS, connect=CONNECT_SECONDS, read=None)
        data = bytearray()
        try:
            # The generators of httpx2 end with a cancellation; they do not if they are left early.
            with trio.CancelScope() as watching:
                async with self._client.stream(
                    "POST", url, json=body, headers=headers, timeout=timeout
                ) as response:
                    async for piece in response.aiter_bytes():
                        data += piece
                        if b'"events"' in data or len(data) > MAX_BYTES:
                            watching.cancel()
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise Away(reason(error)) from error
        if b'"events"' not in data:
            raise Away(f"it ends a watch: {one_line(data.decode(errors='replace'))}")

    @property
    def _meta_key(self) -> str:
        return f"{self._path}/meta"

    @property
    def _freed_key(self) -> str:
        return f"{self._own()}/freed"

    def _key(self, number: int) -> str:
        return f"{self._own()}/{register_name(number)}"

    def _own(self) -> str:
        return f"{self._path}/{known_id(self._id)}"

    async def _all(self, *, keys_only: bool = False) -> list[tuple[str, bytes, int]]:
        first = self._key(0).removesuffix(register_name(0))
        # "0" is what follows "/".
        span = {"key": text(first), "range_end": text(first[:-1] + "0")}
        return await self._range({**span, "keys_only": keys_only}, first)

    async def _range(self, body: dict[str, Any], where: str) -> list[tuple[str, bytes, int]]:
        """Return the key, value and revision of each key; reads what was confirmed last."""
        answer = await self._ask("kv/range", body, repeat=True)
        with understood(where):
            return [
                (
                    b64decode(each["key"], validate=True).decode(),
                    b64decode(each.get("value", ""), validate=True),
                    int(each["mod_revision"]),
                )
                for each in answer.get("kvs", [])
            ]

    async def _transaction(self, compare: list[dict[str, str]], puts: list[dict[str, Any]]) -> int:
        """Return the revision of these puts. Raises Changed if a comparison fails."""
        body = {"compare": [{"result": "EQUAL", **each} for each in compare], "success": puts}
        answer = await self._ask("kv/txn", body, repeat=False)
        with understood("a transaction"):
            if answer.get("succeeded") is not True:
                if "succeeded" in answer or "responses" in answer:
                    raise TypeError("it says neither that it was done nor that it was not")
                _ = answer["header"]["revision"]
                raise Changed
            return int(answer["header"]["revision"])

    async def _ask(self, method: str, body: dict[str, Any], *, repeat: bool) -> dict[str, Any]:
        """Return a host's answer, and remember the host. Raises Away.

        Another host is asked if none has got the request, or if it can be done twice (*repeat*).
        """

        async def ask() -> dict[str, Any]:
            for left in reversed(range(len(self._hosts))):
                try:
                    return await self._ask_host(method, body)
                except (httpx2.HTTPError, httpx2.InvalidURL, Away) as error:
                    self._hosts.append(self._hosts.pop(0))
                    again = repeat or isinstance(error, _NOT_ASKED)
                    if not (left and again):
                        raise Away(reason(error)) from error
            raise AssertionError("there is a host")

        check_network()
        return await in_time(ask)

    async def _ask_host(self, method: str, body: dict[str, Any]) -> dict[str, Any]:
        if self._token is None and self._secret:
            await self._authenticate()
        status, answer = await self._post(method, body)
        if status == 401 and self._secret:
            # A token ends after some minutes; the request was not looked at.
            await self._authenticate()
            status, answer = await self._post(method, body)
        if status != 200:
            # After a change of etcd's users it refuses older tokens, and says so in several ways.
            self._token = None
            raise Away(f"it answers {status}: {message(answer)}")
        return answer

    async def _authenticate(self) -> None:
        self._token = None
        body = {"name": self._user, "password": self._secret}
        status, answer = await self._post("auth/authenticate", body)
        token = answer.get("token")
        if status != 200 or type(token) is not str or not token.isprintable():
            raise Away(f"it refuses the user {self._user}: {message(answer)}")
        self._token = token

    async def _post(self, method: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        headers = {} if self._token is None else {"Authorization": self._token}
        url = f"{self._hosts[0]}/v3/{method}"
        async with self._client.stream("POST", url, json=body, headers=headers) as response:
            data = bytearray()
            async for piece in response.aiter_bytes():
                data += piece
                if len(data) > MAX_BYTES:
                    raise Away(f"its answer has more than {MAX_BYTES} bytes")
        try:
            answer = json.loads(data)
        except (ValueError, RecursionError):
            answer = None
        if not isinstance(answer, dict):
            raise Away(f"its answer, with status {response.status_code}, is not etcd's")
        return response.status_code, answer
