"""The connection to PostgreSQL, by psycopg in a thread, which one host after another may serve."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

import psycopg
import trio
from psycopg import errors
from psycopg.conninfo import make_conninfo

from uuidd.fleet.address import Access, Address, AddressError, secret
from uuidd.fleet.asking import HOST_SECONDS, check_network, in_time
from uuidd.fleet.coordinator import ATTEMPT_SECONDS, Away, Changed, one_line

Connection = psycopg.Connection[tuple[Any, ...]]
_Answer = TypeVar("_Answer")


class PostgresqlSession:
    """A connection to one of the hosts of *address*; after an error, to the next one."""

    def __init__(self, address: Address, access: Access) -> None:
        self._options = _options(address, access)
        self._hosts: list[dict[str, Any]] = [
            {"host": host, "port": port} for host, port in address.hosts
        ] or [{}]
        self._is_remote = bool(address.hosts)
        self._connection: Connection | None = None

    def close(self) -> None:
        """End the connection."""
        if self._connection is not None:
            self._connection.close()

    async def ask(self, ask: Callable[[Connection], _Answer]) -> _Answer:
        """Return what *ask* returns, with psycopg's errors as those of ``Coordinator``.

        A connection is used once more only if it had no error. When the time is over the thread is
        left alone, but its connection is cut, so that it ends.
        """
        used: list[Connection] = []
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

        if self._is_remote:
            check_network()
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

    def _connect(self) -> Connection:
        connection = psycopg.connect(
            # A pooler between two transactions keeps no prepared statements.
            **{**self._options, **self._hosts[0], "prepare_threshold": None}
        )
        milliseconds = int(ATTEMPT_SECONDS * 1000)
        # A commit that the server may forget is none.
        connection.execute("SET synchronous_commit = on")
        connection.execute(f"SET statement_timeout = {milliseconds}")
        return connection


def check_query(address: Address) -> None:
    """Check that libpq knows the parameters of the URL. Raises AddressError."""
    try:
        make_conninfo(**dict(address.query))
    except psycopg.Error as error:
        raise AddressError(f"{address.url!r:.200}: {one_line(error)}") from None


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


def _cut(connection: Connection) -> None:
    """Let a thread that waits for the server get an error at once."""
    with (
        suppress(OSError, psycopg.Error),
        socket.socket(fileno=os.dup(connection.fileno())) as other,
    ):
        other.shutdown(socket.SHUT_RDWR)
