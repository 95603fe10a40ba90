"""A fleet without servers: an engine in memory that tests break, and hosts with a keeper each."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any

import trio

from tests.core.draws import Draws
from tests.daemon.fakes import BEGIN, Inside, meanwhile
from uuidd.core.ids.snowflake import TWITTER_EPOCH
from uuidd.core.ids.ticks import TICKS_PER_SECOND, UNIX_EPOCH
from uuidd.core.timeline.fence import Claim, Kept
from uuidd.core.timeline.outcomes import SteadyBlock
from uuidd.core.timeline.state import State
from uuidd.core.timeline.timelines import Reading, Timelines
from uuidd.fleet.address import Address, Fleet, parse
from uuidd.fleet.engines import ATTEMPT_SECONDS, Away, Changed
from uuidd.fleet.keeper import Keeper
from uuidd.fleet.record import Holder, Meta, Record
from uuidd.fleet.registers import Registers
from uuidd.server.assembly import timelines_from
from uuidd.server.settings import Settings

META = Meta("0123456789abcdef", TWITTER_EPOCH)
WINDOW, HOLD = 600, 300
"""Of the hosts, in seconds."""

NOW = UNIX_EPOCH + BEGIN * TICKS_PER_SECOND
"""The tick at which the clock of a test's first host begins."""


@dataclass
class Engine(Registers):
    """The registers of a fleet in memory, which all hosts of a test share.

    An answer takes *slow* seconds. While *away* says why, no question is answered; while *hanging*,
    none for three seconds. While *broken* is an error, each question raises it. Writes are done and
    not answered while *losing*, and only noted in *late* while *delaying*. *looks* counts those at
    all registers.
    """

    found: Meta | None = META
    kept: dict[int, Record] = field(default_factory=dict)
    slow: float = 0.0
    away: str = ""
    hanging: bool = False
    broken: Exception | None = None
    losing: bool = False
    delaying: bool = False
    late: list[tuple[int, Record, Record | None]] = field(default_factory=list)
    questions: int = 0
    looks: int = 0
    writes: int = 0
    rests: int = 0
    name: str = "the engine"

    @contextlib.asynccontextmanager
    async def connected(self, address: Address) -> AsyncIterator[Engine]:
        """Give this engine to a keeper."""
        yield self

    async def _asked(self) -> None:
        self.questions += 1
        await trio.sleep(self.slow)
        if self.broken is not None:
            raise self.broken
        if self.hanging:
            await trio.sleep(ATTEMPT_SECONDS)
            raise Away(f"no answer within {ATTEMPT_SECONDS:g} s")
        if self.away:
            raise Away(self.away)

    async def meta(self) -> Meta | None:
        """See ``Registers``."""
        await self._asked()
        return self.found

    async def all(self) -> Mapping[int, Record | str]:
        """See ``Registers``."""
        await self._asked()
        self.looks += 1
        return dict(self.kept)

    async def read(self, number: int) -> Record | None:
        """See ``Registers``."""
        await self._asked()
        return self.kept.get(number)

    async def write(self, number: int, record: Record, found: Record | None) -> None:
        """See ``Registers``."""
        if self.delaying:
            self.late.append((number, record, found))
            raise Away("no answer")
        await self._asked()
        if self.kept.get(number) is not found:
            raise Changed
        self.replace(number, record)
        if self.losing:
            raise Away("the answer was lost")

    def rest(self) -> None:
        """See ``Registers``."""
        self.rests += 1

    def replace(self, number: int, record: Record) -> None:
        """Do a write."""
        self.writes += 1
        # Another object, also if it is equal: what was read before is not what is there now.
        self.kept[number] = replace(record)

    def change(self, number: int, **fields: Any) -> None:
        """Change some fields of a register, as another host does."""
        self.replace(number, replace(self.kept[number], **fields))

    def let_go(self, number: int) -> None:
        """Let a number go, as its holder does, which has used little of it."""
        self.change(number, until=5, held=False)

    def steal(self, number: int, host: str = "thief") -> None:
        """Let another host take a number, whoever has it."""
        self.change(number, claim="f" * 16, host=host)


def timelines_of(fleet: Fleet, at: Reading, loaded: State | None = None) -> Timelines:
    """Return the timelines of a daemon of *fleet* that starts with the state *loaded*."""
    settings = Settings(None, Path("/none"), fleet=fleet)
    return timelines_from(loaded, settings, at, machine="here", random=Draws())


class Host:
    """A host that is to have one of the numbers *low* to *high*, with what its state has.

    *how* is as in ``Inside``. While *saving* is an event, a save for which the host waits is over
    when it is set; *kept* is what such a save holds of the number.
    """

    def __init__(
        self,
        engine: Engine,
        name: str = "db1",
        *,
        low: int = 0,
        high: int = 1023,
        claim: Claim | None = None,
        had: int | None = None,
        seed: int = 7,
        **how: Any,
    ) -> None:
        self.saves = 0
        self.saving: trio.Event | None = None
        self.kept: Kept = None

        def keeper(timelines: Timelines, read: Callable[[], Reading], _: object) -> Keeper:
            timelines.fence.had = had
            if claim is not None:
                timelines.fence.keep(claim)
            return Keeper(
                Fleet(parse("folder:///fleet"), WINDOW, HOLD, low, high),
                *(timelines, read, self._save, self._saved, Holder(name)),
                connect=engine.connected,
                random=Random(seed),
            )

        self.inside = Inside(keeper=keeper, **how)

    @property
    def keeper(self) -> Keeper:
        """What keeps the number."""
        assert self.inside.keeper is not None
        return self.inside.keeper

    @property
    def number(self) -> int | None:
        """The number that the host has."""
        return self.inside.timelines.fence.number

    @property
    def claim(self) -> Claim:
        """The claim that it has."""
        claim = self.inside.timelines.fence.claim
        assert claim is not None
        return claim

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run the host's keeper; it is ended as by a crash."""
        async with meanwhile(self.keeper.run):
            await trio.sleep(1)
            yield

    async def stop(self, *, saved: bool = True) -> None:
        """Stop in order, as the daemon does."""
        await self.keeper.prepare_stop()
        self.inside.timelines.close()
        await self.keeper.release(saved=saved)

    def take(self, *, fenced: bool = True) -> SteadyBlock:
        """Take a tick for a Snowflake, or for another steady kind."""
        self.inside.save_ahead()
        at = self.inside.clock.read()
        return self.inside.timelines.take_steady(1, at=at, fenced=fenced)

    def _save(self) -> None:
        self.saves += 1

    async def _saved(self) -> None:
        self.saves += 1
        self.kept = self.inside.timelines.fence.kept
        if self.saving is not None:
            await self.saving.wait()
