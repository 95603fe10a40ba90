"""ZooKeeper as the engine, by kazoo.

A session means nothing here: when it expires kazoo makes another, and the next write is compared as
all are. Nothing is asked while there is no connection, because kazoo would keep the question and
send it long after.
"""

from __future__ import annotations

import logging
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from socket import socket
from threading import Event, Thread
from typing import Any

from kazoo.client import KazooClient
from kazoo.exceptions import (
    BadVersionError,
    ConnectionLoss,
    NoAuthError,
    NodeExistsError,
    NoNodeError,
)
from kazoo.handlers.threading import SequentialThreadingHandler
from kazoo.protocol.states import KeeperState
from kazoo.retry import KazooRetry
from kazoo.security import make_digest_acl

from uuidd.fleet.address import Address, host_and_port
from uuidd.fleet.engines import (
    ATTEMPT_SECONDS,
    HOST_SECONDS,
    Away,
    Changed,
    Entry,
    one_line,
    tls_context,
)

SESSION_SECONDS = 4.0
"""Of a session. Each host has its share of it to answer, and then kazoo goes on to the next."""

CONNECT_SECONDS = ATTEMPT_SECONDS - 0.5
"""How long to wait for a connection, so that the attempt ends with the reason."""


class Zookeeper:
    """The nodes at the hosts of *address*."""

    def __init__(self, address: Address, password: str) -> None:
        self._path = address.path
        self._user = user = address.user
        self._tls = tls_context(address) if address.tls else None
        self._said = ""
        # Apart from the daemon's log, for kazoo writes a line for each attempt; the last is kept.
        logger = logging.Logger("kazoo", logging.WARNING)
        logger.addFilter(self._keep)
        self._options = {
            "hosts": ",".join(host_and_port(*each) for each in address.hosts),
            "timeout": SESSION_SECONDS,
            "connection_retry": KazooRetry(max_tries=-1, delay=0.1, backoff=2, max_delay=2.0),
            "auth_data": [("digest", f"{user}:{password}")] if password else None,
            "default_acl": [make_digest_acl(user, password, all=True)] if password else None,
            "logger": logger,
        }
        self._client: KazooClient | None = None
        self._waiting: Any = None
        self._share = SESSION_SECONDS / len(address.hosts)
        # The address that gave the last answer, until another is waited for.
        self._served: tuple[str, int] | None = None

    def get(self, key: str) -> Entry | None:
        """See ``Engine``."""
        with self._asked() as client, suppress(NoNodeError):
            # Without it a follower may give an old one.
            client.sync_async(key)
            return _entry(*self._answer(client.get_async(key)))
        return None

    def list(self, prefix: str) -> Mapping[str, Entry]:
        """See ``Engine``."""
        folder = prefix.removesuffix("/")
        with self._asked() as client, suppress(NoNodeError):
            client.sync_async(folder)
            names = self._answer(client.get_children_async(folder))
            asked = {f"{prefix}{name}": client.get_async(f"{prefix}{name}") for name in names}
            return {key: _entry(*self._answer(each)) for key, each in asked.items()}
        return {}

    def put(
        self, key: str, value: bytes, old: Entry | None, guard: tuple[str, bytes] | None
    ) -> None:
        """See ``Engine``. No node can be made without its folder, which is that of the guard."""
        with self._asked() as client, suppress(NodeExistsError, BadVersionError, NoNodeError):
            if old is None:
                self._answer(client.create_async(key, value, makepath=guard is None))
                return
            # A node that was made again counts its versions anew, too.
            there, stat = self._answer(client.get_async(key))
            if _entry(there, stat)[:2] == old[:2]:
                self._answer(client.set_async(key, value, stat.version))
                return
        raise Changed

    def close(self) -> None:
        """See ``Engine``. What was asked is not sent later. kazoo's threads may take seconds."""
        client, self._client = self._client, None
        if client is not None:
            # For a thread that waits.
            self._live.set()
            if self._waiting is not None:
                self._waiting.set_exception(ConnectionLoss())
            Thread(target=_end, args=(client,), daemon=True).start()

    @contextmanager
    def _asked(self) -> Iterator[KazooClient]:
        """Give a client with a connection, and say whom ZooKeeper refuses."""
        client = self._connected()
        try:
            yield client
        except NoAuthError as error:
            user = f"the user {self._user}" if self._user else "those without a user"
            raise Away(f"it refuses {user} at {self._path}") from error
        self._served = client.handler.address

    def _connected(self) -> KazooClient:
        client = self._client
        if client is None or not (client.connected or _is_connecting(client)):
            # A client that lost its connection has seen writes which a restored server may not
            # have; such a server would refuse it for ever.
            self.close()
            handler = _Handler(self._tls, self._share, self._served)
            client = self._client = KazooClient(**self._options, handler=handler)
            self._said, self._served = "", None
            self._live = live = Event()
            client.add_listener(lambda _: live.set())
            client.start_async()
        self._live.wait(CONNECT_SECONDS)
        if not client.connected:
            why = f" ({self._said})" if self._said else ""
            raise Away(f"no connection within {CONNECT_SECONDS:g} s{why}")
        return client

    def _answer(self, asked: Any) -> Any:
        """Return the answer to what was *asked*, unless ``close`` is called before it comes."""
        self._waiting = asked
        return asked.get(timeout=HOST_SECONDS)

    def _keep(self, record: logging.LogRecord) -> bool:
        self._said = one_line(record.getMessage())
        return False


def _is_connecting(client: KazooClient) -> bool:
    """Whether a client goes on to look for its first connection, which may take long."""
    return client.client_state is KeeperState.CONNECTING and not client.last_zxid


class _Handler(SequentialThreadingHandler):  # type: ignore[misc]
    """Connects with *tls*, if that is not None: kazoo's own also trusts whom the system trusts.

    It begins at the address *first*, for others may hang, and each has so many *seconds*.
    """

    def __init__(
        self, tls: ssl.SSLContext | None, seconds: float, first: tuple[str, int] | None
    ) -> None:
        super().__init__()
        self._tls = tls
        self._seconds = seconds
        self._first = self.address = first
        self._passed_over: set[tuple[str, int]] = set()

    def create_connection(self, address: tuple[str, int], hostname: str, **_: object) -> socket:
        """Return a connection to *address*, whose certificate must be for *hostname*."""
        if self._first not in (None, address) and address not in self._passed_over:
            # kazoo goes through them in a random order, again and again.
            self._passed_over.add(address)
            raise self.timeout_exception(f"{address[0]} is asked later")
        self._first, self.address = None, address
        try:
            plain: socket = super().create_connection(address, timeout=self._seconds)
        except TimeoutError as error:
            raise self.timeout_exception(f"{address[0]} lets nobody connect") from error
        if self._tls is None:
            return plain
        return self._tls.wrap_socket(plain, server_hostname=hostname)


def _end(client: KazooClient) -> None:
    with suppress(Exception):
        client.stop()
        client.close()


def _entry(data: bytes, stat: Any) -> Entry:
    return Entry(data, (stat.czxid, stat.version), stat.mtime / 1000)
