"""Hosts with the daemon's own keeper, which share few numbers of an engine that fails in all ways.

A step is a name of STEPS, a host's index, and seconds. Time is trio's mock clock. What was given
out with each number is in ``World.seen``.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import trio

from tests.daemon.fleet import Engine, timelines_of
from tests.fleet.spans import Seen
from uuidd.core.ids.ticks import TICKS_PER_SECOND, UNIX_EPOCH
from uuidd.core.timeline.outcomes import NeedsSave, NoneFree, NoNumber
from uuidd.core.timeline.state import State
from uuidd.core.timeline.timelines import Reading
from uuidd.fleet.address import Fleet, parse
from uuidd.fleet.keeper import Keeper
from uuidd.fleet.record import Holder

NUMBERS = (3, 4)
OFFSETS = (0.0, -4.0, 2.5)
"""Of the hosts' clocks, in seconds; there are as many hosts."""

WINDOW, HOLD, REACH = 20, 10, 4
"""In seconds; the last is how far ahead a save reaches."""

FLEET = Fleet(parse("folder:///fleet"), WINDOW, HOLD, *NUMBERS)

TICKS = 10 * TICKS_PER_SECOND
"""In a block, at most, so that few of the past ticks are left out."""


class Host:
    """A host whose clock is *offset* seconds wrong; *saved* is its state, None before the first."""

    def __init__(self, engine: Engine, index: int, seen: Seen) -> None:
        self._engine = engine
        self._name = f"host {index}"
        self._offset = int(OFFSETS[index] * TICKS_PER_SECOND)
        self._seen = seen
        self._starts = 0
        self.saved: State | None = None
        self.saves = True
        self.up: trio.CancelScope | None = None

    def start(self, nursery: trio.Nursery) -> None:
        """Start as the daemon does, with the state that was saved."""
        self._starts += 1
        self._timelines = timelines_of(FLEET, self._read(), self.saved)
        self._keeper = Keeper(
            *(FLEET, self._timelines, self._read, self.save, self._saved),
            Holder(self._name),
            connect=self._engine.connected,
            random=Random(self._starts),
        )
        self._save(REACH)
        self.up = trio.CancelScope()
        nursery.start_soon(self._run, self._keeper, self.up)

    def crash(self) -> None:
        """End without a word."""
        assert self.up is not None
        self.up.cancel()
        self.up = None

    async def stop(self) -> None:
        """End as the daemon does; the last save fails unless *saves*."""
        await self._keeper.prepare_stop()
        self._timelines.close()
        saved = self.saves
        if saved:
            self._save(0)
        await self._keeper.release(saved=saved)
        self.crash()

    def save(self) -> None:
        """Save the state, if saves succeed."""
        if self.saves:
            self._save(REACH)

    def take(self, *, fenced: bool) -> None:
        """Take ticks for Snowflakes, if there are any, or for another steady kind: there are."""
        # A second look, because the first one may need a save.
        for _ in range(2):
            try:
                block = self._timelines.take_steady(TICKS, at=self._read(), fenced=fenced)
                break
            except NeedsSave:
                self._save(REACH)
            except (NoNumber, NoneFree):
                assert fenced
                return
        else:
            raise AssertionError("a save gives no ticks")
        if block.worker is not None:
            end = block.first + block.count
            self._seen.use(block.worker, block.first, end, f"{self._name}, {self._starts}")

    def _save(self, reach: float) -> None:
        ticks = int(reach * TICKS_PER_SECOND)
        state = self._timelines.begin_save(at=self._read(), reach=ticks, bare_reach=ticks)
        self._timelines.end_save(state, completed=True)
        self.saved = state

    async def _saved(self) -> None:
        await trio.sleep(0.01)
        self.save()

    async def _run(self, keeper: Keeper, up: trio.CancelScope) -> None:
        with up:
            await keeper.run()

    def _read(self) -> Reading:
        elapsed = int(trio.current_time() * TICKS_PER_SECOND)
        return Reading(UNIX_EPOCH + 18 * 10**15 + elapsed + self._offset, elapsed)


class World:
    """The engine, the hosts, and what was seen of them."""

    def __init__(self) -> None:
        self.seen = Seen()
        self.engine = Engine()
        self.hosts = [Host(self.engine, index, self.seen) for index in range(len(OFFSETS))]

    async def run(self, steps: list[tuple[str, int, float]]) -> Seen:
        """Do the *steps*, with some time before each; return what was seen."""
        async with trio.open_nursery() as nursery:
            for host in self.hosts:
                host.start(nursery)
            for name, index, seconds in steps:
                await trio.sleep(0.02)
                if name == "sleep":
                    await trio.sleep(seconds)
                elif name == "take":
                    await self._take()
                elif name in ENGINE:
                    ENGINE[name](self.engine)
                else:
                    await self._do(name, self.hosts[index], nursery)
            nursery.cancel_scope.cancel()
        return self.seen

    async def _do(self, name: str, host: Host, nursery: trio.Nursery) -> None:
        match name, host.up is not None:
            case "start", False:
                host.start(nursery)
            case "lose the state", False:
                host.saved = None
            case "crash", True:
                host.crash()
            case "stop", True:
                await host.stop()
            case "saves", True:
                host.saves = not host.saves

    async def _take(self) -> None:
        """Take from all hosts, for Snowflakes and for another kind in turn."""
        for fenced in (True, False):
            for host in self.hosts:
                if host.up is not None:
                    host.take(fenced=fenced)
            await trio.sleep(0.01)


def _deliver(engine: Engine) -> None:
    """Do what was delayed, if the register is as its writer has read it."""
    for number, record, found in engine.late:
        if engine.kept.get(number) is found:
            engine.replace(number, record)
    engine.late.clear()


def _mend(engine: Engine) -> None:
    """End all that is wrong, but not what is delayed."""
    engine.away = ""
    engine.losing = engine.delaying = engine.hanging = False


def _change(name: str, wrong: object = True) -> Callable[[Engine], None]:
    right = type(wrong)()
    return lambda engine: setattr(engine, name, right if getattr(engine, name) else wrong)


ENGINE: dict[str, Callable[[Engine], None]] = {
    **{name: _change(name) for name in ("losing", "delaying", "hanging")},
    "away": _change("away", "no route"),
    "deliver": _deliver,
    "mend": _mend,
}
"""What can become of the engine; most last until they come again."""

STEPS = ("take", "sleep", "start", "crash", "stop", "saves", "lose the state", *ENGINE)
