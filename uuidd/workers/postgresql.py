"""PostgreSQL as the engine, by psycopg in a thread of its own.

The table ``uuidd_worker`` has a row for each namespace (*n* is -1) and for each register. It is as
safe as a commit is: after a failover to a standby that had not got it, a number may be two hosts'.
"""

from __future__ import annotations

import os
import socket
from collections.abc import AsyncIterator, Callable, Mapping
from collections.abc import Set as AbstractSet
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeVar

import psycopg
import trio
from psycopg import errors
from psycopg.conninfo import make_conninfo

from uuidd.workers.address import Access, Address, AddressError, secret
from uuidd.workers.asking import HOST_SECONDS, in_time
from uuidd.workers.coordinator import (
    ATTEMPT_SECONDS,
    Away,
    Changed,
    Found,
    Freed,
    Version,
    is_let_go,
    one_line,
)
from uuidd.workers.record import (
    NUMBERS,
    Meta,
    Record,
    UnreadableError,
    decode_meta,
    decode_record,
    encode,
)

META = -1
"""The number of a namespace's own row. That of the row for ``freed`` is -2."""

LISTEN_SECONDS = 2.0
"""How often a host that waits for a number looks itself; a pooler may keep notices from it."""

_TABLE = """CREATE TABLE IF NOT EXISTS uuidd_worker (
    namespace text, n integer, seq bigint NOT NULL, record json NOT NULL,
    written timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (namespace, n))"""
_SELECT = (
    "SELECT n, seq, record::text, extract(epoch FROM written)::float8 FROM uuidd_worker"
    " WHERE namespace = %s"
)
_INSERT = """INSERT INTO uuidd_worker (namespace, n, seq, record)
    SELECT %s, %s, 1, %s::json
    WHERE EXISTS (SELECT FROM uuidd_worker
                  WHERE namespace = %s AND n = -1 AND record->>'id' = %s)
    ON CONFLICT DO NOTHING RETURNING seq"""
# The record too, and not its count alone, for a restored database may come to a count once more.
_UPDATE = """UPDATE uuidd_worker SET seq = seq + 1, record = %s::json, written = now()
    WHERE namespace = %s AND n = %s AND seq = %s AND record::text = %s
      AND EXISTS (SELECT FROM uuidd_worker
                  WHERE namespace = %s AND n = -1 AND record->>'id' = %s)
    RETURNING seq"""

_FREE = """WITH told AS (
        INSERT INTO uuidd_worker (namespace, n, seq, record) VALUES (%s, -2, 1, %s::json)
        ON CONFLICT (namespace, n)
        DO UPDATE SET seq = uuidd_worker.seq + 1, record = excluded.record, written = now()
        RETURNING seq)
    SELECT pg_notify('uuidd_worker', %s) FROM told"""

_Answer = TypeVar("_Answer")
_Connection = psycopg.Connection[tuple[Any, ...]]


@asynccontextmanager
async def connected(address: Address, access: Access) -> AsyncIterator[PostgresqlCoordinator]:
    """Give the namespace for the time of a block."""
    coordinator = PostgresqlCoordinator(address, access)
    try:
        yield coordinator
    finally:
        coordinator.close()


class PostgresqlCoordinator:
    """The namespace in the table ``uuidd_worker``. See ``Coordinator``."""

    def __init__(self, address: Address, access: Access) -> None:
        self.name = address.name
        self._path = address.path
        self._id: str | None = None
        self._options = _options(address, access)
        self._hosts: list[dict[str, Any]] = [
            {"host": host, "port": port} for host, port in address.hosts
        ] or [{}]
        self._connection: _Connection | None = None

    def close(self) -> None:
        """End the connection."""
        if self._connection is not None:
            self._connection.close()

    async def meta(self) -> Meta | None:
        """See ``Coordinator``."""

        def ask(connection: _Connection) -> str | None:
            try:
                row = connection.execute(_SELECT + " AND n = -1", (self._path,)).fetchone()
            except errors.UndefinedTable:
                return None
            return None if row is None else str(row[2])

        text = await self._ask(ask)
        meta = None if text is None else decode_meta(text.encode(), self._where(META))
        self._id = None if meta is None else meta.id
        return meta

    async def create(self, meta: Meta, registers: Mapping[int, Record]) -> None:
        """See ``Coordinator``."""
        own = f"{self._path}/{meta.id}"
        rows = [(own, number, encode(record).decode()) for number, record in registers.items()]
        first = (self._path, META, encode(meta).decode())

        def ask(connection: _Connection) -> None:
            with suppress(errors.UniqueViolation):  # another makes it at the same time
                connection.execute(_TABLE)
            with connection.transaction(), connection.cursor() as cursor:
                cursor.executemany(
                    "INSERT INTO uuidd_worker (namespace, n, seq, record) VALUES (%s, %s, 1, %s)",
                    [first, *rows],
                )

        await self._ask(ask)

    async def taken(self) -> AbstractSet[int]:
        """See ``Coordinator``."""
        own = self._own()
        query = "SELECT n FROM uuidd_worker WHERE namespace = %s AND n BETWEEN 0 AND %s"
        rows = await self._ask(lambda each: each.execute(query, (own, NUMBERS - 1)).fetchall())
        return {int(number) for (number,) in rows}

    async def registers(self) -> Mapping[int, Found | str]:
        """See ``Coordinator``."""
        own = self._own()
        query = _SELECT + " AND n BETWEEN 0 AND %s ORDER BY n"
        rows = await self._ask(lambda each: each.execute(query, (own, NUMBERS - 1)).fetchall())
        found: dict[int, Found | str] = {}
        for row in rows:
            try:
                found[row[0]] = self._found(row)
            except UnreadableError as error:
                found[row[0]] = str(error)
        return found

    async def read(self, number: int) -> Found | None:
        """See ``Coordinator``."""
        own = self._own()
        query = _SELECT + " AND n = %s"
        row = await self._ask(lambda each: each.execute(query, (own, number)).fetchone())
        return None if row is None else self._found(row)

    async def write(self, number: int, record: Record, version: Version | None) -> Version:
        """See ``Coordinator``."""
        own, data = self._own(), encode(record).decode()
        there = (self._path, self._id)
        if version is None:
            query, values = _INSERT, [own, number, data, *there]
        else:
            seq, text = version
            query, values = _UPDATE, [data, own, number, seq, text, *there]
        row = await self._ask(lambda each: each.execute(query, values).fetchone())
        if row is None:
            raise Changed
        if is_let_go(record):
            with suppress(Away):
                await self._ask(lambda each: each.execute(_FREE, (own, str(number), own)))
        return row[0], data

    async def freed(self, after: int | None) -> Freed:
        """See ``Coordinator``."""
        own = self._own()

        def ask(connection: _Connection) -> Freed | None:
            connection.execute("LISTEN uuidd_worker")
            row = connection.execute(_SELECT + " AND n = -2", (own,)).fetchone()
            freed = Freed(0, None) if row is None else Freed(row[1], int(row[2]))
            if freed.count != after:
                return freed
            list(connection.notifies(timeout=LISTEN_SECONDS, stop_after=1))
            return None

        while (freed := await self._ask(ask)) is None:
            pass
        return freed

    def _own(self) -> str:
        if self._id is None:
            raise RuntimeError("the namespace is asked for first, and must be there")
        return f"{self._path}/{self._id}"

    def _where(self, number: int) -> str:
        return f"the row of {self._path}, n {number}, in the table uuidd_worker"

    def _found(self, row: tuple[Any, ...]) -> Found:
        number, seq, text, written = row
        return Found(decode_record(text.encode(), self._where(number)), (seq, text), written)

    async def _ask(self, ask: Callable[[_Connection], _Answer]) -> _Answer:
        """Return what *ask* returns, with psycopg's errors as those of ``Coordinator``.

        A connection is used once more only if it had no error. When the time is over the thread is
        left alone, but its connection is cut, so that it ends.
        """
        used: list[_Connection] = []
        abandoned = False

        def work() -> _Answer:
            connection = used[0] if used else self._connect()
            used[:] = [connection]
            whole = False
            try:
                if abandoned:
                    raise Away("too late")
                answer = ask(connection)
                whole = not abandoned
                return answer
            finally:
                if not whole:
                    connection.close()

        async def ask_in_thread() -> _Answer:
            return await trio.to_thread.run_sync(work, abandon_on_cancel=True)

        if self._connection is not None:
            used, self._connection = [self._connection], None
        try:
            answer = await in_time(ask_in_thread)
        except errors.UniqueViolation:
            raise Changed from None
        except (psycopg.Error, UnicodeError, OSError) as error:
            self._hosts.append(self._hosts.pop(0))
            raise Away(f"{type(error).__name__}: {one_line(error)}") from error
        except (Away, trio.Cancelled):
            abandoned = True
            self._hosts.append(self._hosts.pop(0))
            for each in used:
                _cut(each)
            raise
        self._connection = used[0]
        return answer

    def _connect(self) -> _Connection:
        connection = psycopg.connect(
            # A pooler between two transactions keeps no prepared statements.
            **{**self._options, **self._hosts[0], "prepare_threshold": None}
        )
        milliseconds = int(ATTEMPT_SECONDS * 1000)
        # A commit that the server may forget is none.
        connection.execute("SET synchronous_commit = on")
        connection.execute(f"SET statement_timeout = {milliseconds}")
        return connection


def _options(address: Address, access: Access) -> dict[str, Any]:
    """Return what libpq is given for each host."""
    files = {"sslrootcert": access.ca, "sslcert": access.cert, "sslkey": access.key}
    options: dict[str, Any] = {
        "sslmode": "prefer" if access.ca is None else "verify-full",
        **dict(address.query),
        "dbname": address.database,
        "user": access.user or address.user or None,
        "password": secret(access) or None,
        "autocommit": True,
        "application_name": "uuidd",
        "target_session_attrs": "read-write",
        "connect_timeout": int(HOST_SECONDS),
        "tcp_user_timeout": int(ATTEMPT_SECONDS * 1000),
        **{name: str(path) for name, path in files.items() if path is not None},
    }
    return {name: value for name, value in options.items() if value is not None}


def check_query(address: Address) -> None:
    """Check that libpq knows the parameters of the URL. Raises AddressError."""
    try:
        make_conninfo(**dict(address.query))
    except psycopg.Error as error:
        raise AddressError(f"{address.url!r:.200}: {one_line(error)}") from None


def _cut(connection: _Connection) -> None:
    """Let a thread that waits for the server get an error at once."""
    with (
        suppress(OSError, psycopg.Error),
        socket.socket(fileno=os.dup(connection.fileno())) as other,
    ):
        other.shutdown(socket.SHUT_RDWR)
