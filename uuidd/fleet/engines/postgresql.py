"""PostgreSQL as the engine.

The table ``uuidd_worker`` has a row for each namespace (*n* is -1) and for each register. It is as
safe as a commit is: after a failover to a standby that had not got it, a number may be two hosts'.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import asynccontextmanager, suppress
from typing import Any

from psycopg import errors

from uuidd.fleet.address import Access, Address
from uuidd.fleet.coordinator import Away, Changed, Found, Freed, Version, is_let_go, known_id
from uuidd.fleet.engines.postgresql_session import Connection, PostgresqlSession
from uuidd.fleet.record import (
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


@asynccontextmanager
async def connected(address: Address, access: Access) -> AsyncIterator[PostgresqlCoordinator]:
    """Give the namespace for the time of a block."""
    session = PostgresqlSession(address, access)
    try:
        yield PostgresqlCoordinator(address, session)
    finally:
        session.close()


class PostgresqlCoordinator:
    """The namespace in the table ``uuidd_worker``. See ``Coordinator``."""

    def __init__(self, address: Address, session: PostgresqlSession) -> None:
        self.name = address.name
        self._path = address.path
        self._id: str | None = None
        self._ask = session.ask

    async def meta(self) -> Meta | None:
        """See ``Coordinator``."""

        def ask(connection: Connection) -> str | None:
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

        def ask(connection: Connection) -> None:
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

        def ask(connection: Connection) -> Freed | None:
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
        return f"{self._path}/{known_id(self._id)}"

    def _where(self, number: int) -> str:
        return f"the row of {self._path}, n {number}, in the table uuidd_worker"

    def _found(self, row: tuple[Any, ...]) -> Found:
        number, seq, text, written = row
        return Found(decode_record(text.encode(), self._where(number)), (seq, text), written)
