"""A fleet of real daemons in an engine, and what they say of their numbers."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import trio

from tests.fleet.servers import Server
from tests.rig import Daemon, until
from uuidd.core.ids.snowflake import TWITTER_EPOCH
from uuidd.fleet.engines import Away, Changed
from uuidd.fleet.record import Meta
from uuidd.fleet.registers import Registers, connect

_Answer = TypeVar("_Answer")

SECONDS = 30.0
"""For what follows soon, on a busy machine."""


class Fleet:
    """A namespace with the numbers 3 to *high* in an engine, and the options of its daemons."""

    def __init__(self, engine: Server, folder: Path, high: int = 3) -> None:
        self.address = engine.address(f"uuidd/{secrets.token_hex(4)}", folder)
        self.url, files = self.address.url, self.address.files
        self.access_options = [f"--worker-{name}={path}" for name, path in files.items()]
        self.options = [f"--worker={self.url}", "--worker-window=2s", "--worker-hold=2s"]
        self.options += self.access_options
        trio.run(self._make, high)

    def connect(self) -> AbstractAsyncContextManager[Registers]:
        """Connect to the namespace."""
        return connect(self.address)

    async def _make(self, high: int) -> None:
        async with self.connect() as engine:
            await engine.create(Meta(secrets.token_hex(8), TWITTER_EPOCH, 3, high), {})

    def steal(self, number: int) -> None:
        """Take a number from a live host, as one with a wrong clock might."""

        async def write() -> None:
            async with self.connect() as engine:
                await engine.meta()
                found = await engine.read(number)
                assert found is not None
                taken = replace(found, claim="0" * 16, host="thief")
                await engine.write(number, taken, found)

        trio.run(write)


def told(daemon: Daemon) -> dict[str, Any]:
    """Return what status says of the worker number."""
    found: dict[str, Any] = daemon.call("status")["worker"]
    return found


def reaches(daemon: Daemon, **said: object) -> dict[str, Any]:
    """Return what status says of the number once it says this."""

    def found() -> dict[str, Any] | None:
        status = told(daemon)
        return status if said.items() <= status.items() else None

    return until(found, SECONDS, instead=lambda: daemon.lines) or {}


def renews(daemon: Daemon, times: int = 2) -> None:
    """Wait for so many renewals that begin from now on."""
    end = told(daemon)["renewals"] + times
    until(lambda: told(daemon)["renewals"] >= end, SECONDS, instead=lambda: daemon.lines)


def take(daemon: Daemon) -> tuple[int, int, int]:
    """Return the number and the ticks of a block for Snowflakes, once there is one."""
    with daemon.connect() as connection:
        found = until(
            lambda: connection.ask("take", "snowflake", 100)[3],
            SECONDS,
            instead=lambda: daemon.lines,
        )
    return found["worker"], found["first"], found["first"] + found["count"]


def refused(daemon: Daemon) -> str:
    """Return why there is no Snowflake, once there is none; there is another steady kind."""
    with daemon.connect() as connection:
        why = until(lambda: connection.ask("take", "snowflake", 1)[2], SECONDS)
        assert connection.call("take", "steady", 1)["count"] == 1
    return str(why)


async def answered(ask: Callable[[], Awaitable[_Answer | None]]) -> _Answer:
    """Return the first answer that is one, and is not None."""
    with trio.fail_after(SECONDS):
        while True:
            with suppress(Away, Changed):
                if (found := await ask()) is not None:
                    return found
