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
from pathlib import Path
from tempfile import TemporaryDirectory

import msgpack
import trio

from tests.fleet.proxy import Proxy
from tests.fleet.servers import KINDS, AnyEngine, access_to, power_cut, running
from tests.fleet.spans import Seen
from tests.rig import Daemon
from tests.system.fake_time import FakeTime
from uuidd.core.ids.ticks import TICKS_PER_SECOND, UNIX_EPOCH
from uuidd.fleet.address import Access, parse
from uuidd.fleet.engines import Away, Changed
from uuidd.fleet.record import Meta, Record
from uuidd.fleet.registers import connect

OFFSETS = (0.0, -4.0, 2.5, 0.0, 5.0)
"""Of the hosts' clocks, in seconds; there are as many hosts."""

NUMBERS = 3
WINDOW, HOLD = "2s", "2s"
PAUSE_SECONDS = 0.01
"""Between two blocks that one caller takes."""


class Host:
    """A daemon with a clock of its own, which reaches the engine through a proxy."""

    def __init__(self, index: int, daemon: Daemon, proxy: Proxy, seen: Seen) -> None:
        self.name = f"host {index}"
        self.daemon = daemon
        self.proxy = proxy
        self._seen = seen

    async def take(self) -> None:
        """Take blocks for Snowflakes until cancelled."""
        while True:
            with suppress(OSError, trio.BrokenResourceError, EOFError), trio.move_on_after(5):
                async with await trio.open_unix_socket(self.daemon.socket) as stream:
                    await self._take(stream)
            await trio.sleep(0.05)

    async def _take(self, stream: trio.SocketStream) -> None:
        unpacker = msgpack.Unpacker()
        request = msgpack.packb([0, 1, "take", ["snowflake", 500]])
        while True:
            await stream.send_all(request)
            answer = None
            while answer is None:
                data = await stream.receive_some(65536)
                if not data:
                    raise EOFError
                unpacker.feed(data)
                answer = next(iter(unpacker), None)
            _, _, error, result = answer
            if error is None and result["worker"] is not None:
                first, count = result["first"], result["count"]
                self._seen.use(result["worker"], first, first + count, self.name)
                self._seen.counts["blocks"] += 1
            elif error is not None:
                self._seen.refusals[str(error)[:150]] += 1
            await trio.sleep(PAUSE_SECONDS)

    async def in_thread(self, what: Callable[[], object]) -> None:
        """Do what blocks, such as a start."""
        await trio.to_thread.run_sync(what)

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
        await self.in_thread(self.daemon.kill)
        await trio.sleep(dice.uniform(0, 3))
        await self.in_thread(self.daemon.start)

    async def _lose_state(self, _: random.Random) -> None:
        await self.in_thread(self.daemon.kill)
        shutil.rmtree(self.daemon.state)
        self.daemon.state.mkdir()
        await self.in_thread(self.daemon.start)

    async def _restart(self, _: random.Random) -> None:
        await self.in_thread(self.daemon.stop)
        await self.in_thread(self.daemon.start)

    async def _hold(self, dice: random.Random) -> None:
        self.proxy.hold()
        await trio.sleep(dice.uniform(0.3, 5))
        self.proxy.deliver()

    async def _hold_and_crash(self, dice: random.Random) -> None:
        """What the daemon wrote is delivered after its end, to the engine of its successor."""
        self.proxy.hold()
        await trio.sleep(dice.uniform(0.5, 2))
        await self.in_thread(self.daemon.kill)
        await self.in_thread(self.daemon.start)
        await trio.sleep(dice.uniform(0, 3))
        self.proxy.deliver()

    async def _cut(self, dice: random.Random) -> None:
        self.proxy.hold()
        await trio.sleep(dice.uniform(0, 1))
        await self.proxy.cut()
        await trio.sleep(dice.uniform(0, 2))
        self.proxy.deliver()


async def steal(url: str, access: Access, dice: random.Random, seen: Seen) -> None:
    """Take numbers from live hosts, use them whole, and let most of them go again."""
    async with connect(parse(url), access) as engine:
        while True:
            await trio.sleep(dice.uniform(0.3, 1.5))
            number = dice.randrange(NUMBERS)
            claim = Record(secrets.token_hex(8), 0, held=True, host="thief")
            begin = 0
            try:
                await engine.meta()
                found = await engine.read(number)
                if found is None:
                    continue
                begin = found.record.until
                until = max(begin, _now()) + int(dice.uniform(0.1, 1) * TICKS_PER_SECOND)
                claim = Record(claim.claim, until, held=True, host="thief")
                found = await engine.write(number, claim, found)
            except (Away, Changed):
                # If it was done all the same, the ticks are nobody's.
                continue
            seen.use(number, begin, claim.until, "thief")
            seen.counts["stolen"] += 1
            if dice.random() < 0.8:
                with suppress(Away, Changed):
                    free = Record(claim.claim, claim.until, held=False, host="thief")
                    await engine.write(number, free, found)


async def break_nodes(engine: AnyEngine, dice: random.Random, seen: Seen) -> None:
    """Kill one node of the engine after the other, and start it again."""
    while True:
        await trio.sleep(dice.uniform(3, 8))
        node = dice.choice(list(engine.nodes.running))
        await trio.to_thread.run_sync(power_cut, engine, node)
        seen.counts["fault:node"] += 1
        await trio.sleep(dice.uniform(0.2, 1.5))
        await trio.to_thread.run_sync(engine.start, node)


def _now() -> int:
    return UNIX_EPOCH + time.time_ns() // 100


async def _chaos(engine: AnyEngine, folder: Path, seconds: float, seed: int) -> Seen:
    seen, dice = Seen(), random.Random(seed)
    url = engine.url("uuidd/prod")
    access = access_to(engine, folder)
    options = [f"--worker-secret={access.secret}"] if access.secret else []
    async with connect(parse(url), access) as coordinator:
        await coordinator.meta()
        meta = Meta(secrets.token_hex(8), 1288834974657, 0, NUMBERS - 1)
        await coordinator.create(meta, {})
    hosts: list[Host] = []
    try:
        with trio.move_on_after(seconds):
            async with trio.open_nursery() as nursery:
                for index, offset in enumerate(OFFSETS):
                    proxy = Proxy([port for _, port in parse(url).hosts])
                    await nursery.start(proxy.run)
                    own = url
                    for (_, port), through in zip(parse(url).hosts, proxy.ports, strict=True):
                        own = own.replace(f"127.0.0.1:{port}", f"127.0.0.1:{through}")
                    place = folder / f"host-{index}"
                    place.mkdir()
                    clock = FakeTime(place)
                    clock.set(offset)
                    daemon = Daemon(
                        f"--worker={own}",
                        f"--worker-window={WINDOW}",
                        f"--worker-hold={HOLD}",
                        *options,
                        environment=clock.environment if offset else {},
                        fresh=True,
                    )
                    host = Host(index, daemon, proxy, seen)
                    hosts.append(host)
                    await host.in_thread(daemon.start)
                    nursery.start_soon(host.take)
                    nursery.start_soon(host.disturb, random.Random(dice.random()))
                nursery.start_soon(steal, url, access, random.Random(dice.random()), seen)
                nursery.start_soon(break_nodes, engine, random.Random(dice.random()), seen)
    finally:
        for host in hosts:
            with suppress(OSError):
                os.kill(host.daemon.pid, signal.SIGCONT)
            host.daemon.__exit__()
            for line in host.daemon.lines:
                for word in ("claimed", "resumed", "taken", "released"):
                    if word in line:
                        seen.counts[f"log:{word}"] += 1
    return seen


def run(name: str, seconds: float, seed: int, *, say: Callable[[str], object] = str) -> Seen:
    """Return what was seen in so many seconds of chaos with the engine *name*."""
    with running(KINDS[name]) as engine, TemporaryDirectory(prefix="uuidd-", dir="/tmp") as path:
        seen = trio.run(_chaos, engine, Path(path), seconds, seed)
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
