"""Many hosts of a fleet in one process, each with a keeper and a connection of its own.

``python -m tests.fleet.crowd etcd --hosts 300`` starts them at once, and prints how long it takes
until all have a number, and how often they write while they hold it.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from random import Random

import trio

from tests.daemon.fakes import Inside
from tests.fleet.servers import KINDS, AnyEngine, access_to, running
from uuidd.clock import Clock
from uuidd.core.ids.snowflake import TWITTER_EPOCH
from uuidd.core.timeline.fence import Fence
from uuidd.core.timeline.steady import Steady
from uuidd.core.timeline.timelines import Timelines
from uuidd.fleet import engines
from uuidd.fleet.address import Access, Address, Fleet, parse
from uuidd.fleet.keeper import Keeper
from uuidd.fleet.record import Found, Holder, Meta, Record
from uuidd.fleet.registers import Registers, connect

START_SECONDS = 60.0
"""In which all hosts must have a number, on a busy machine."""


@dataclass(slots=True)
class Crowd:
    """What was seen of so many *hosts*, which all had a number after so many *seconds*."""

    hosts: int
    seconds: float
    numbers: list[int]
    writes_to_claim: int
    writes_per_second: float

    def report(self) -> str:
        """Return all of it as text."""
        return (
            f"{self.hosts} hosts: {len(set(self.numbers))} numbers within {self.seconds:.2f} s,"
            f" {self.writes_to_claim} writes; then {self.writes_per_second:.2f} writes a second"
        )


class Counted(Registers):
    """Registers whose writes are counted, those of all hosts together."""

    writes = 0

    async def write(self, number: int, record: Record, found: Found | None) -> Found:
        """See ``Registers``."""
        Counted.writes += 1
        return await super().write(number, record, found)


@asynccontextmanager
async def _counted(address: Address, access: Access) -> AsyncIterator[Registers]:
    engine = engines.opened(address, access)
    try:
        yield Counted(engine, address)
    finally:
        engine.close()


def _keeper(url: str, access: Access, index: int, window: float) -> tuple[Keeper, Fence]:
    clock = Clock()
    at = clock.read()
    steady = Steady(None, now=at.now, elapsed=at.elapsed)
    timelines = Timelines(Inside().timeline, steady, fence=Fence(), epoch=TWITTER_EPOCH)
    keeper = Keeper(
        Fleet(parse(url), access, window, window, 0, 1023),
        TWITTER_EPOCH,
        timelines,
        clock.read,
        lambda: None,
        trio.lowlevel.checkpoint,
        Holder(f"host-{index}"),
        connect=_counted,
        random=Random(index),
    )
    return keeper, timelines.fence


async def _start(url: str, access: Access, hosts: int, window: float, seconds: float) -> Crowd:
    async with connect(parse(url), access) as engine:
        await engine.meta()
        await engine.create(Meta("0123456789abcdef", TWITTER_EPOCH), {})
    made = [_keeper(url, access, index, window) for index in range(hosts)]
    Counted.writes = 0
    async with trio.open_nursery() as nursery:
        begun = time.monotonic()
        for keeper, _ in made:
            nursery.start_soon(keeper.run)
        with trio.fail_after(START_SECONDS):
            for keeper, fence in made:
                while fence.number is None:
                    await keeper.renewed()
        took = time.monotonic() - begun
        claimed, Counted.writes = Counted.writes, 0
        await trio.sleep(seconds)
        rate = Counted.writes / seconds if seconds else 0.0
        numbers = [fence.number for _, fence in made if fence.number is not None]
        nursery.cancel_scope.cancel()
    return Crowd(hosts, took, numbers, claimed, rate)


def run(engine: AnyEngine, hosts: int, *, window: float, seconds: float) -> Crowd:
    """Return what is seen when so many hosts start at once, and then hold for so many seconds."""
    return trio.run(
        _start, engine.url("uuidd/crowd"), access_to(engine, engine.folder), hosts, window, seconds
    )


def main() -> int:
    """Run it, and print what was seen."""
    parser = argparse.ArgumentParser(prog="python -m tests.fleet.crowd", description=__doc__)
    parser.add_argument("engine", choices=KINDS)
    parser.add_argument("--hosts", type=int, default=300)
    parser.add_argument("--window", type=float, default=600, help="of the hosts, in seconds")
    parser.add_argument("--seconds", type=float, default=0, help="to hold the numbers")
    given = parser.parse_args()
    with running(KINDS[given.engine]) as engine:
        crowd = run(engine, given.hosts, window=given.window, seconds=given.seconds)
    sys.stdout.write(crowd.report() + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
