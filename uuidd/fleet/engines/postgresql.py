"""PostgreSQL as the engine, by psycopg.

The table ``uuidd_worker`` has a row for each key. It is as safe as a commit is: after a failover to
a standby that had not got it, a number may be two hosts'.
"""

from __future__ import annotations

import os
import socket
import ssl
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, TypeVar

import psycopg
from psycopg import errors
from psycopg.conninfo import make_conninfo

from uuidd.fleet.address import Address
from uuidd.fleet.engines import ATTEMPT_SECONDS, HOST_SECONDS, Changed, Entry, one_line
from uuidd.refused import Refused

_TABLE = """CREATE TABLE IF NOT EXISTS uuidd_worker (
    key text PRIMARY KEY, seq bigint NOT NULL, record json NOT NULL,
    written timestamptz NOT NULL DEFAULT now())"""
_SELECT = "SELECT key, seq, record::text, extract(epoch FROM written)::float8 FROM uuidd_worker"
_GUARD = """(%(guard)s::text IS NULL OR EXISTS (
    SELECT FROM uuidd_worker WHERE key = %(guard)s AND record::text = %(guarded)s))"""
_INSERT = "INSERT INTO uuidd_worker (key, seq, record) SELECT %(key)s, 1, %(new)s::json"
_UPDATE = """UPDATE uuidd_worker SET record = %(new)s::json, seq = seq + 1, written = now()
    WHERE key = %(key)s AND seq = %(seq)s AND record::text = %(old)s"""

Connection = psycopg.Connection[tuple[Any, ...]]
_Answer = TypeVar("_Answer")


class Postgresql:
    """The rows at a host of *address*: the first one that serves, and after an error another."""

    def __init__(self, address: Address, password: str) -> None:
        self._options = _options(address, password)
        self._hosts = list(address.hosts)
        self._connection: Connection | None = None
        self._asking = False

    def get(self, key: str) -> Entry | None:
        """See ``Engine``."""
        return self._entries(f"{_SELECT} WHERE key = %s", key).get(key)

    def list(self, prefix: str) -> Mapping[str, Entry]:
        """See ``Engine``."""
        return self._entries(f"{_SELECT} WHERE starts_with(key, %s)", prefix)

    def put(
        self, key: str, value: bytes, old: Entry | None, guard: tuple[str, bytes] | None
    ) -> None:
        """See ``Engine``."""
        guarding, guarded = guard or (None, b"")
        values = {"key": key, "new": value.decode(), "guard": guarding, "guarded": guarded.decode()}
        query = f"{_INSERT} WHERE {_GUARD} ON CONFLICT DO NOTHING"
        if old is not None:
            query = f"{_UPDATE} AND {_GUARD}"
            values |= {"seq": old.version, "old": old.value.decode()}

        def ask(connection: Connection) -> int:
            if guard is None:
                with suppress(errors.UniqueViolation):  # another makes it at the same time
                    connection.execute(_TABLE)
            return connection.execute(query.encode(), values).rowcount

        if self._ask(ask) == 0:
            raise Changed

    def close(self) -> None:
        """See ``Engine``. A thread that waits for the server gets an error at once."""
        connection = self._connection
        if connection is None:
            return
        if not self._asking:
            self._connection = None
            connection.close()
            return
        with (
            suppress(OSError, psycopg.Error),
            socket.socket(fileno=os.dup(connection.fileno())) as other,
        ):
            other.shutdown(socket.SHUT_RDWR)

    def _entries(self, query: str, value: str) -> dict[str, Entry]:
        def ask(connection: Connection) -> list[tuple[Any, ...]]:
            try:
                return connection.execute(query.encode(), (value,)).fetchall()
            except errors.UndefinedTable:
                return []

        rows = self._ask(ask)
        return {key: Entry(text.encode(), seq, at) for key, seq, text, at in rows}

    def _ask(self, ask: Callable[[Connection], _Answer]) -> _Answer:
        """Return what *ask* returns. A connection is used once more only if it had no error."""
        self._asking = True
        try:
            if self._connection is None:
                self._connection = self._connect()
            return ask(self._connection)
        except Exception:
            # The next connection begins at another host, for one that hangs takes long.
            self._hosts = [*self._hosts[1:], *self._hosts[:1]]
            if self._connection is not None:
                self._connection.close()
                self._connection = None
            raise
        finally:
            self._asking = False

    def _connect(self) -> Connection:
        options = self._options
        if self._hosts:
            hosts, ports = zip(*self._hosts, strict=True)
            options = {**options, "host": ",".join(hosts), "port": ",".join(map(str, ports))}
        # A pooler between two transactions keeps no prepared statements.
        connection = psycopg.connect(**{**options, "prepare_threshold": None})
        # The next connection begins at the host that serves, for those before it may hang.
        serves = connection.info.host, connection.info.port
        self._hosts.sort(key=lambda each: each != serves)
        # A commit that the server may forget is none.
        connection.execute("SET synchronous_commit = on")
        connection.execute(b"SET statement_timeout = %d" % int(ATTEMPT_SECONDS * 1000))
        return connection


def check_query(address: Address) -> None:
    """Check that libpq knows the parameters of the URL. Raises Refused."""
    try:
        make_conninfo(**dict(address.query))
    except psycopg.Error as error:
        raise Refused(f"{address.url!r:.200}: {one_line(error)}") from None


def _options(address: Address, password: str) -> dict[str, Any]:
    """Return what libpq is given for each host."""
    files = {"sslrootcert": "ca", "sslcert": "cert", "sslkey": "key"}
    query = dict(address.query)
    verifies = query.get("sslmode", "").startswith("verify-")
    options: dict[str, Any] = {
        "sslmode": "verify-full" if "ca" in address.files else "prefer",
        # Those of the system; libpq's default is a file of its user.
        "sslrootcert": ssl.get_default_verify_paths().cafile if verifies else None,
        **query,
        "dbname": address.database,
        "user": address.user or None,
        "password": password or None,
        "autocommit": True,
        "application_name": "uuidd",
        "target_session_attrs": "read-write",
        "connect_timeout": int(HOST_SECONDS),
        "tcp_user_timeout": int(ATTEMPT_SECONDS * 1000),
        **{name: str(address.files[own]) for name, own in files.items() if own in address.files},
    }
    return {name: value for name, value in options.items() if value is not None}
