"""Many hosts of a fleet in one process, each with a keeper and a connection of its own.

``python -m tests.fleet.crowd etcd --hosts 300`` starts them at once, and prints how long it takes
until all have a number, and how often they renew while they hold it.
"""

from __future__ import annotations

import argparse
import sys
import time
from random import Random
from typing import NamedTuple

import trio

from tests.daemon.fleet import timelines_of
from tests.fleet.servers import KINDS, Server, running
from uuidd.clock import Clock
from uuidd.core.ids.snowflake import TWITTER_EPOCH
from uuidd.core.timeline.fence import Fence
from uuidd.fleet.address import Fleet
from uuidd.fleet.keeper import Keeper
from uuidd.fleet.record import Holder, Meta
from uuidd.fleet.registers import connect

START_SECONDS = 60.0
"""In which all hosts must have a number, on a busy machine."""


class Crowd(NamedTuple):
    """The numbers of all hosts, and in how many *seconds* of the wall and the processor."""

    numbers: list[int]
    seconds: float
    cpu_seconds: float
    renewals_per_second: float

    def report(self) -> str:
        """Return all of it as text."""
        return (
            f"{len(self.numbers)} hosts: {len(set(self.numbers))} numbers within"
            f" {self.seconds:.2f} s, {self.cpu_seconds:.2f} s of the processor;"
            f" then {self.renewals_per_second:.2f} renewals a second"
        )


def _keeper(fleet: Fleet, index: int) -> tuple[Keeper, Fence]:
    clock = Clock()
    timelines = timelines_of(fleet, clock.read())
    keeper = Keeper(
        *(fleet, timelines, clock.read, lambda: None, trio.lowlevel.checkpoint),
        Holder(f"host-{index}"),
        random=Random(index),
    )
    return keeper, timelines.fence


async def _start(fleet: Fleet, hosts: int, seconds: float) -> Crowd:
    async with connect(fleet.address) as registers:
        await registers.create(Meta("0123456789abcdef", TWITTER_EPOCH), {})
    made = [_keeper(fleet, index) for index in range(hosts)]
    async with trio.open_nursery() as nursery:
        begun, cpu = time.monotonic(), time.process_time()
        for keeper, _ in made:
            nursery.start_soon(keeper.run)
        with trio.fail_after(START_SECONDS):
            for keeper, fence in made:
                while fence.number is None:
                    await keeper.renewed()
        took, cpu = time.monotonic() - begun, time.process_time() - cpu
        await trio.sleep(seconds)
        renewals = sum(keeper.standing.renewals for keeper, _ in made)
        numbers = [fence.number for _, fence in made if fence.number is not None]
        nursery.cancel_scope.cancel()
    return Crowd(numbers, took, cpu, renewals / seconds if seconds else 0.0)


def run(engine: Server, hosts: int, *, window: float = 600, seconds: float = 0) -> Crowd:
    """Return what is seen when so many hosts start at once, and then hold for so many seconds."""
    address = engine.address("uuidd/crowd", engine.folder)
    return trio.run(_start, Fleet(address, window, window, 0, 1023), hosts, seconds)


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
