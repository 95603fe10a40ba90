"""Connects to the engine that a URL names, and imports only that engine."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from uuidd import installing
from uuidd.fleet import address as addresses
from uuidd.fleet.address import Access, Address, AddressError
from uuidd.fleet.coordinator import Coordinator


def check(address: Address, access: Access, *, unseen: Path | None = None) -> None:
    """Check that the engine's extra is installed, and that the files can be used.

    Raises AddressError. Asks no engine. Files in the folder *unseen* are not looked at.
    """
    addresses.check(address, access, unseen=unseen)
    files = [path for path in (access.ca, access.cert, access.key) if path is not None]
    if files and all(path.parent != unseen for path in files):
        from uuidd.fleet.asking import tls_context

        tls_context(access)
    if address.engine == "postgresql":
        try:
            from uuidd.fleet.engines.postgresql_session import check_query
        except ImportError as error:  # psycopg without the library of PostgreSQL
            raise AddressError(
                f"psycopg cannot be used: {error}; install it with {installing('postgresql')}"
            ) from error
        check_query(address)


@asynccontextmanager
async def connect(address: Address, access: Access) -> AsyncIterator[Coordinator]:
    """Give the namespace at *address*, for the time of a block, also while the engine is away.

    Raises AddressError as ``check`` does. Call it in the process that goes on with the namespace,
    as its user, and after the last fork.
    """
    check(address, access)
    match address.engine:
        case "zookeeper":
            from uuidd.fleet.engines.zookeeper import connected as zookeeper

            async with zookeeper(address, access) as coordinator:
                yield coordinator
        case "etcd":
            from uuidd.fleet.engines.etcd import connected as etcd

            async with etcd(address, access) as coordinator:
                yield coordinator
        case "postgresql":
            from uuidd.fleet.engines.postgresql import connected as postgresql

            async with postgresql(address, access) as coordinator:
                yield coordinator
        case _:
            from uuidd.fleet.engines.folder import FolderCoordinator

            yield FolderCoordinator(address)
