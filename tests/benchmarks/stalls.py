"""``python -m tests.benchmarks.stalls``: the event loop's longest stall under AsyncClient.

A task that sleeps 1 ms at a time measures by how much each sleep was too long, while other tasks
make ids of all kinds: beside a daemon that answers, that was killed, that is there again, and that
is stopped (SIGSTOP). Without any client the same task shows what the machine itself does.
"""

from __future__ import annotations

import argparse
import gc
import os
import signal
import sys
import time
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

import anyio

from tests.rig import Daemon
from uuidd_client import Client, DaemonUnavailable, implementation
from uuidd_client.aio import AsyncClient

TICK_SECONDS = 0.001
BURST = 20
PAUSE_SECONDS = 0.005
KINDS = ["uuid1", "uuid6", "uuid7", "snowflake", "flake", "ulid", "ksuid", "push_id"]

GOAL_MS = 5.0


Task = Callable[["Ticker"], Coroutine[Any, Any, None]]


class Ticker:
    """The *longest* stall, in seconds, and how many ticks there were."""

    def __init__(self) -> None:
        self.longest = 0.0
        self.ticks = 0

    async def run(self) -> None:
        """Measure until this is cancelled."""
        before = time.perf_counter()
        while True:
            await anyio.sleep(TICK_SECONDS)
            now = time.perf_counter()
            self.longest = max(self.longest, now - before - TICK_SECONDS)
            self.ticks += 1
            before = now


async def _draw(ids: AsyncClient, name: str, made: list[int]) -> None:
    """Make ids in bursts until this is cancelled; what cannot be made is left out."""
    while True:
        for _ in range(BURST):
            try:
                await getattr(ids, name)()
                made[0] += 1
            except DaemonUnavailable:
                pass
        await anyio.sleep(PAUSE_SECONDS)


async def _phase(name: str, seconds: float, task: Task) -> None:
    ticker = Ticker()
    with anyio.move_on_after(seconds):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ticker.run)
            tasks.start_soon(task, ticker)
    _say(f"  {name:34} {ticker.longest * 1000:8.2f} ms  in {ticker.ticks} ticks")


async def _main(daemon: Daemon, seconds: float, stopped: float) -> None:
    ids = AsyncClient(Client(daemon.socket))
    made = [0]
    # A full collection of garbage takes some 10 ms with all modules loaded here, whoever causes it.
    gc.freeze()

    async def draw(_: Ticker) -> None:
        async with anyio.create_task_group() as tasks:
            for name in KINDS:
                tasks.start_soon(_draw, ids, name, made)

    async def nothing(_: Ticker) -> None:
        await anyio.sleep_forever()

    async def then(event: Callable[[], object], ticker: Ticker) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(draw, ticker)
            await anyio.sleep(0.5)
            # Its own waiting must not count.
            await anyio.to_thread.run_sync(event)

    await _phase("no client", seconds, nothing)
    await _phase("the first ids", seconds, draw)
    await _phase("healthy", seconds, draw)
    await _phase("the daemon is killed after 0.5 s", seconds, partial(then, daemon.kill))
    await _phase("it is started again after 0.5 s", seconds, partial(then, daemon.start))
    stop = partial(os.kill, daemon.pid, signal.SIGSTOP)
    await _phase("it is stopped after 0.5 s", stopped + 0.5, partial(then, stop))
    go_on = partial(os.kill, daemon.pid, signal.SIGCONT)
    await _phase("it goes on after 0.5 s", seconds, partial(then, go_on))
    _say(f"  {made[0]} ids of {len(KINDS)} kinds")
    await ids.aclose()


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> int:
    """Measure asyncio and trio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=5.0, help="of each phase; default: 5")
    parser.add_argument("--stopped", type=float, default=10.0, help="of SIGSTOP; default: 10")
    given = parser.parse_args()
    _say(f"in {implementation}; load {os.getloadavg()[0]:.1f}; the goal is {GOAL_MS:g} ms")
    for backend in ("asyncio", "trio"):
        _say(backend)
        with Daemon("--worker=5", fresh=True) as daemon:
            anyio.run(_main, daemon, given.seconds, given.stopped, backend=backend)
    return 0


if __name__ == "__main__":
    sys.exit(main())
