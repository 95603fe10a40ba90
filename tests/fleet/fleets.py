"""A fleet of real daemons in an engine, and what they say of their numbers."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import trio

from tests.fleet.servers import AnyEngine, access_to
from tests.rig import Daemon, until
from uuidd.core.ids.snowflake import TWITTER_EPOCH
from uuidd.fleet.address import Access, parse
from uuidd.fleet.engines import Away, Changed
from uuidd.fleet.record import Found, Meta, Record
from uuidd.fleet.registers import Registers, connect

SECONDS = 30.0
"""For what follows soon, on a busy machine."""


class Fleet:
    """A namespace with the numbers 3 to *high* in an engine, and the options of its daemons."""

    def __init__(self, engine: AnyEngine, folder: Path, high: int) -> None:
        self.engine = engine
        self.url = engine.url(f"uuidd/{secrets.token_hex(4)}")
        self._access: Access = access_to(engine, folder)
        self.namespace = parse(self.url).path.strip("/")
        self.options = [f"--worker={self.url}", "--worker-window=2s", "--worker-hold=2s"]
        self.access_options = (
            [f"--worker-secret={self._access.secret}"] if self._access.secret else []
        )
        self.options += self.access_options
        trio.run(self._make, high)

    def connect(self) -> AbstractAsyncContextManager[Registers]:
        """Connect to the namespace."""
        return connect(parse(self.url), self._access)

    async def _make(self, high: int) -> None:
        async with self.connect() as engine:
            await engine.meta()
            await engine.create(Meta(secrets.token_hex(8), TWITTER_EPOCH, 3, high), {})

    def steal(self, number: int) -> None:
        """Take a number from a live host, as one with a wrong clock might."""

        async def write() -> None:
            async with self.connect() as engine:
                await engine.meta()
                found = await engine.read(number)
                assert found is not None
                taken: Record = replace(found.record, claim="0" * 16, host="thief")
                await engine.write(number, taken, found)

        trio.run(write)


def told(daemon: Daemon) -> dict[str, Any]:
    """Return what status says of the worker number."""
    found: dict[str, Any] = daemon.call("status")["worker"]
    return found


def reaches(daemon: Daemon, state: str) -> dict[str, Any]:
    """Return what status says once the number is in that *state*."""
    until(lambda: told(daemon)["state"] == state, SECONDS, instead=lambda: daemon.lines)
    return told(daemon)


def renews(daemon: Daemon) -> None:
    """Wait for two renewals that begin from now on."""
    before = told(daemon)["renewals"]
    until(lambda: told(daemon)["renewals"] >= before + 2, SECONDS, instead=lambda: daemon.lines)


def take(daemon: Daemon) -> tuple[int, int, int]:
    """Return the number and the ticks of a block for Snowflakes, once there is one."""
    with daemon.connect() as connection:

        def block() -> Any:
            _, _, _, result = connection.ask("take", "snowflake", 100)
            return result

        found = until(block, SECONDS, instead=lambda: daemon.lines)
    return found["worker"], found["first"], found["first"] + found["count"]


async def answered(ask: Callable[[], Awaitable[Found | None]]) -> Found | None:
    """Return the first answer that is one."""
    with trio.fail_after(SECONDS):
        while True:
            with suppress(Away, Changed):
                return await ask()
