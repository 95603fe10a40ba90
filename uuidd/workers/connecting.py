"""Connects to the engine that a URL names, and imports only that engine."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from uuidd.workers.address import Access, Address, AddressError, check
from uuidd.workers.coordinator import Coordinator


@asynccontextmanager
async def connect(address: Address, access: Access) -> AsyncIterator[Coordinator]:
    """Give the namespace at *address*, for the time of a block, also while the engine is away.

    Raises AddressError as ``check`` does. Call it in the process that goes on with the namespace,
    as its user, and after the last fork.
    """
    check(address, access)
    if address.engine == "folder":
        from uuidd.workers.folder import FolderCoordinator

        yield FolderCoordinator(address)
        return
    raise AddressError(f"{address.name} cannot be asked by this version of uuidd")
