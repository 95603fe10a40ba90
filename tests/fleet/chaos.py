"""Real daemons that compete for few numbers of a real engine while all kinds of faults happen.

``python -m tests.fleet.chaos etcd --seconds 60 --seed 1`` prints what was seen. Each block that a
daemon gave out is kept. Another task takes numbers from live hosts, as a host with a wrong clock
might, and uses all ticks up to its *until*: these are kept too. At the end no two of these spans
may overlap for one number.
"""

from __future__ import annotations

import argparse
import os
import random
import secrets
import shutil
import signal
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import trio

from tests.fleet.fleets import Fleet
from tests.fleet.proxy import Proxy
from tests.fleet.servers import KINDS, Server, running
from tests.fleet.spans import Seen
from tests.rig import Daemon
from tests.system.fake_time import FakeTime
from uuidd.core.ids.ticks import TICKS_PER_SECOND, UNIX_EPOCH
from uuidd.fleet.address import parse
from uuidd.fleet.engines import Away, Changed
from uuidd.fleet.record import Record

OFFSETS = (0.0, -4.0, 2.5, 0.0, 5.0)
"""Of the hosts' clocks, in seconds; there are as many hosts."""

LOW, HIGH = 3, 5
"""The numbers of the fleet."""

PAUSE_SECONDS = 0.01
"""Between two blocks that one caller takes."""


class Host:
    """A daemon with a clock of its own, which reaches the engine through a proxy."""

    def __init__(self, index: int, fleet: Fleet, proxy: Proxy, place: Path, seen: Seen) -> None:
        clock = FakeTime(place)
        clock.set(OFFSETS[index])
        own = fleet.url
        for (_, port), through in zip(parse(own).hosts, proxy.ports, strict=True):
            own = own.replace(f"127.0.0.1:{port}", f"127.0.0.1:{through}")
        self.daemon = Daemon(
            f"--worker={own}",
            *fleet.options[1:],
            environment=clock.environment if OFFSETS[index] else {},
            fresh=True,
        )
        self._name = f"host {index}"
        self._proxy = proxy
        self._seen = seen
        self._over = False

    def end(self) -> None:
        """End the daemon, and note what it said."""
        self._over = True
        with suppress(OSError):
            os.kill(self.daemon.pid, signal.SIGCONT)
        self.daemon.__exit__()
        for line in self.daemon.lines:
            for word in ("claimed", "resumed", "taken", "released"):
                self._seen.counts[f"log:{word}"] += word in line

    def take(self) -> None:
        """Take blocks for Snowflakes until the end."""
        while not self._over:
            with suppress(OSError, EOFError), self.daemon.connect() as connection:
                while True:
                    _, _, error, block = connection.ask("take", "snowflake", 500)
                    if error is not None:
                        self._seen.refusals[str(error)[:150]] += 1
                    elif block["worker"] is not None:
                        end = block["first"] + block["count"]
                        self._seen.use(block["worker"], block["first"], end, self._name)
                        self._seen.counts["blocks"] += 1
                    time.sleep(PAUSE_SECONDS)
            time.sleep(0.05)

    async def disturb(self, dice: random.Random) -> None:
        """Let one fault after the other happen to this host."""
        faults: list[Callable[[random.Random], Awaitable[None]]] = [
            self._pause,
            self._crash,
            self._lose_state,
            self._restart,
            self._hold,
            self._hold_and_crash,
            self._cut,
        ]
        while True:
            await trio.sleep(dice.uniform(0.3, 3))
            fault = dice.choice(faults)
            self._seen.counts[f"fault:{fault.__name__.strip('_')}"] += 1
            await fault(dice)

    async def _pause(self, dice: random.Random) -> None:
        os.kill(self.daemon.pid, signal.SIGSTOP)
        try:
            await trio.sleep(dice.uniform(0.3, 6))
        finally:
            os.kill(self.daemon.pid, signal.SIGCONT)

    async def _crash(self, dice: random.Random) -> None:
        await trio.to_thread.run_sync(self.daemon.kill)
        await trio.sleep(dice.uniform(0, 3))
        await trio.to_thread.run_sync(self.daemon.start)

    async def _lose_state(self, _: random.Random) -> None:
        await trio.to_thread.run_sync(self.daemon.kill)
        shutil.rmtree(self.daemon.state)
        self.daemon.state.mkdir()
        await trio.to_thread.run_sync(self.daemon.start)

    async def _restart(self, _: random.Random) -> None:
        await trio.to_thread.run_sync(self.daemon.stop)
        await trio.to_thread.run_sync(self.daemon.start)

    async def _hold(self, dice: random.Random) -> None:
        self._proxy.hold()
        await trio.sleep(dice.uniform(0.3, 5))
        self._proxy.deliver()

    async def _hold_and_crash(self, dice: random.Random) -> None:
        """What the daemon wrote is delivered after its end, to the engine of its successor."""
        self._proxy.hold()
        await trio.sleep(dice.uniform(0.5, 2))
        await trio.to_thread.run_sync(self.daemon.kill)
        await trio.to_thread.run_sync(self.daemon.start)
        await trio.sleep(dice.uniform(0, 3))
        self._proxy.deliver()

    async def _cut(self, dice: random.Random) -> None:
        self._proxy.hold()
        await trio.sleep(dice.uniform(0, 1))
        await self._proxy.cut()
        await trio.sleep(dice.uniform(0, 2))
        self._proxy.deliver()


async def steal(fleet: Fleet, dice: random.Random, seen: Seen) -> None:
    """Take numbers from live hosts, use them whole, and let most of them go again."""
    async with fleet.connect() as registers:
        while True:
            await trio.sleep(dice.uniform(0.3, 1.5))
            number = dice.randint(LOW, HIGH)
            # If a write without an answer is done all the same, the ticks are nobody's.
            with suppress(Away, Changed):
                await registers.meta()
                found = await registers.read(number)
                if found is None:
                    continue
                begin, now = found.until, UNIX_EPOCH + time.time_ns() // 100
                until = max(begin, now) + int(dice.uniform(0.1, 1) * TICKS_PER_SECOND)
                claim = Record(secrets.token_hex(8), until, held=True, host="thief")
                await registers.write(number, claim, found)
                seen.use(number, begin, until, "thief")
                seen.counts["stolen"] += 1
                found = await registers.read(number)
                if found is not None and found == claim and dice.random() < 0.8:
                    await registers.write(number, replace(claim, held=False), found)


async def break_nodes(engine: Server, dice: random.Random, seen: Seen) -> None:
    """Kill one node of the engine after the other, and start it again."""
    while True:
        await trio.sleep(dice.uniform(3, 8))
        node = dice.choice(list(engine.running))
        await trio.to_thread.run_sync(engine.power_cut, node)
        seen.counts["fault:node"] += 1
        await trio.sleep(dice.uniform(0.2, 1.5))
        await trio.to_thread.run_sync(engine.start, node)


async def _chaos(engine: Server, folder: Path, seconds: float, fleet: Fleet, seed: int) -> Seen:
    seen, dice = Seen(), random.Random(seed)
    hosts: list[Host] = []
    try:
        with trio.move_on_after(seconds):
            async with trio.open_nursery() as nursery:
                for index in range(len(OFFSETS)):
                    proxy = Proxy([port for _, port in parse(fleet.url).hosts])
                    await nursery.start(proxy.run)
                    place = folder / f"host-{index}"
                    place.mkdir()
                    host = Host(index, fleet, proxy, place, seen)
                    hosts.append(host)
                    await trio.to_thread.run_sync(host.daemon.start)
                    nursery.start_soon(
                        partial(trio.to_thread.run_sync, host.take, abandon_on_cancel=True)
                    )
                    nursery.start_soon(host.disturb, random.Random(dice.random()))
                nursery.start_soon(steal, fleet, random.Random(dice.random()), seen)
                nursery.start_soon(break_nodes, engine, random.Random(dice.random()), seen)
    finally:
        for host in hosts:
            host.end()
    return seen


def run(name: str, seconds: float, seed: int, *, say: Callable[[str], object] = str) -> Seen:
    """Return what was seen in so many seconds of chaos with the engine *name*."""
    with running(KINDS[name]) as engine, TemporaryDirectory(prefix="uuidd-", dir="/tmp") as path:
        fleet = Fleet(engine, Path(path), HIGH)
        seen = trio.run(_chaos, engine, Path(path), seconds, fleet, seed)
    for line, count in seen.refusals.most_common(8):
        say(f"{count:6}  {line}")
    say(seen.report())
    return seen


def main() -> int:
    """Run it, and print what was seen; 1 if two spans overlap."""
    parser = argparse.ArgumentParser(prog="python -m tests.fleet.chaos", description=__doc__)
    parser.add_argument("engine", choices=KINDS)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    seen = run(
        given.engine, given.seconds, given.seed, say=lambda line: sys.stdout.write(f"{line}\n")
    )
    for line in seen.overlaps[:20]:
        sys.stdout.write(f"{line}\n")
    return 1 if seen.overlaps else 0


if __name__ == "__main__":
    sys.exit(main())
