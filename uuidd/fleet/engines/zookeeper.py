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
from threading import Thread
from typing import Any

from kazoo.client import KazooClient
from kazoo.exceptions import BadVersionError, NoAuthError, NodeExistsError, NoNodeError
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
"""Of a session. kazoo takes a host for dead after a third of it, and goes on to the next."""

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

    def get(self, key: str) -> Entry | None:
        """See ``Engine``."""
        with self._asked() as client, suppress(NoNodeError):
            # Without it a follower may give an old one.
            client.sync_async(key)
            return _entry(*client.get_async(key).get(timeout=HOST_SECONDS))
        return None

    def list(self, prefix: str) -> Mapping[str, Entry]:
        """See ``Engine``."""
        folder = prefix.removesuffix("/")
        with self._asked() as client, suppress(NoNodeError):
            client.sync_async(folder)
            names = client.get_children_async(folder).get(timeout=HOST_SECONDS)
            asked = {f"{prefix}{name}": client.get_async(f"{prefix}{name}") for name in names}
            return {key: _entry(*each.get(timeout=HOST_SECONDS)) for key, each in asked.items()}
        return {}

    def put(
        self, key: str, value: bytes, old: Entry | None, guard: tuple[str, bytes] | None
    ) -> None:
        """See ``Engine``. No node can be made without its folder, which is that of the guard."""
        with self._asked() as client, suppress(NodeExistsError, BadVersionError, NoNodeError):
            if old is None:
                made = client.create_async(key, value, makepath=guard is None)
                made.get(timeout=HOST_SECONDS)
                return
            # A node that was made again counts its versions anew, too.
            there, stat = client.get_async(key).get(timeout=HOST_SECONDS)
            if _entry(there, stat)[:2] == old[:2]:
                client.set_async(key, value, stat.version).get(timeout=HOST_SECONDS)
                return
        raise Changed

    def close(self) -> None:
        """See ``Engine``. What was asked is not sent later. kazoo's threads may take seconds."""
        client, self._client = self._client, None
        if client is not None:
            Thread(target=_end, args=(client,), daemon=True).start()

    @contextmanager
    def _asked(self) -> Iterator[KazooClient]:
        """Give a client with a connection, and say whom ZooKeeper refuses."""
        try:
            yield self._connected()
        except NoAuthError as error:
            user = f"the user {self._user}" if self._user else "those without a user"
            raise Away(f"it refuses {user} at {self._path}") from error

    def _connected(self) -> KazooClient:
        client = self._client
        if client is None or not (client.connected or _is_connecting(client)):
            # A client that lost its connection has seen writes which a restored server may not
            # have; such a server would refuse it for ever.
            self.close()
            client = self._client = KazooClient(**self._options, handler=_Handler(self._tls))
            self._said = ""
            self._live = client.start_async()
        self._live.wait(CONNECT_SECONDS)
        if not client.connected:
            why = f" ({self._said})" if self._said else ""
            raise Away(f"no connection within {CONNECT_SECONDS:g} s{why}")
        return client

    def _keep(self, record: logging.LogRecord) -> bool:
        self._said = one_line(record.getMessage())
        return False


def _is_connecting(client: KazooClient) -> bool:
    """Whether a client goes on to look for its first connection, which may take long."""
    return client.client_state is KeeperState.CONNECTING and not client.last_zxid


class _Handler(SequentialThreadingHandler):  # type: ignore[misc]
    """Connects with *tls*, if that is not None: kazoo's own also trusts whom the system trusts."""

    def __init__(self, tls: ssl.SSLContext | None) -> None:
        super().__init__()
        self._tls = tls

    def create_connection(
        self, address: tuple[str, int], hostname: str, timeout: float, **_: object
    ) -> socket:
        """Return a connection to *address*, whose certificate must be for *hostname*."""
        plain: socket = super().create_connection(address, timeout=timeout)
        if self._tls is None:
            return plain
        return self._tls.wrap_socket(plain, server_hostname=hostname)


def _end(client: KazooClient) -> None:
    with suppress(Exception):
        client.stop()
        client.close()


def _entry(data: bytes, stat: Any) -> Entry:
    return Entry(data, (stat.czxid, stat.version), stat.mtime / 1000)
