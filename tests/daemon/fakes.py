"""A daemon's inside without its outside: a clock that tests move, a disk that tests break."""

from __future__ import annotations

import array
import contextlib
import errno
import os
import random
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Generator
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import msgpack
import trio

from tests.core.draws import Draws
from uuidd.clock import Clock
from uuidd.clones import ClockSets, KernelLog, NoSignal, VmClock
from uuidd.core.ids.ticks import TICKS_PER_SECOND, UNIX_EPOCH
from uuidd.core.timeline.generation import BLOCK_LANES, Generation
from uuidd.core.timeline.outcomes import MAX_BLOCK, Block, SteadyBlock
from uuidd.core.timeline.page import Lease
from uuidd.core.timeline.state import Node, State
from uuidd.core.timeline.timelines import Reading, Timelines
from uuidd.core.wire import methods
from uuidd.core.wire.rpc import Response
from uuidd.fleet.keeper import Keeper
from uuidd.server.acceptor import Acceptor
from uuidd.server.assembly import Assembly, timelines_from
from uuidd.server.entropy import Entropy
from uuidd.server.fairness import Pause
from uuidd.server.page import Page
from uuidd.server.saver import FIRST_REACH, Saver
from uuidd.server.settings import Limits, Settings
from uuidd.server.trust import Quality

Result = TypeVar("Result")

BEGIN = 1_800_000_000
"""The Unix second at which the fake clocks begin."""

HOUR = 3600.0

GOOD = Quality(synchronised=True, max_error=0.001)
"""A clock as time daemons keep it."""

UID = 1000
"""The uid of a client, when any uid will do."""


class TickingClock:
    """A monotonic clock that goes on by *step* seconds at each look, and else when *now* is set."""

    def __init__(self, step: float = 0.0) -> None:
        self.now = 0.0
        self._step = step

    def __call__(self) -> float:
        """Return the time after a step."""
        self.now += self._step
        return self.now


class Wall:
    """UTC that goes with trio's clock, and can be stepped or stopped."""

    def __init__(self) -> None:
        self._begun = trio.current_time()
        self._offset = 0.0
        self._stopped: int | None = None

    def utc(self) -> int:
        """Return the nanoseconds since 1970."""
        if self._stopped is not None:
            return self._stopped
        return BEGIN * 10**9 + round((self._elapsed() + self._offset) * 1e9)

    def boottime(self) -> int:
        """Return the nanoseconds that have passed."""
        return round(self._elapsed() * 1e9)

    def now(self) -> int:
        """Return the current tick of UTC."""
        return self.utc() // 100 + UNIX_EPOCH

    def step(self, seconds: float) -> None:
        """Set UTC forward, or back when negative."""
        self._offset += seconds

    def stop(self) -> None:
        """Let UTC stand still from here on."""
        self._stopped = self.utc()

    def _elapsed(self) -> float:
        return trio.current_time() - self._begun


class Disk:
    """Saves states when it can, and notes when each save began and what was kept.

    While *gate* is an event every save waits for it; while *broken*, every save fails. *kept_one*
    is called at the very end of each that succeeds.
    """

    def __init__(self) -> None:
        self.begun: list[float] = []
        self.kept: list[State] = []
        self.gate: trio.Event | None = None
        self.broken = False
        self.moved = ""
        self.checks = 0
        self.kept_one: Callable[[], object] = lambda: None
        self.at_once = 0
        self.most_at_once = 0

    async def save(self, state: State) -> None:
        """Keep *state*. Raises OSError while broken."""
        self.begun.append(trio.current_time())
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            if self.gate is not None:
                await self.gate.wait()
            await trio.lowlevel.checkpoint()
            if self.moved:
                raise OSError(self.moved)
            if self.broken:
                raise OSError(errno.ENOSPC, "No space left on device")
            self.kept.append(state)
            self.kept_one()
        finally:
            self.at_once -= 1

    def check(self) -> str:
        """Return why the state is not where it was, as the store does."""
        self.checks += 1
        return self.moved

    @property
    def pauses(self) -> list[float]:
        """The seconds from each save's begin to the next one's."""
        return [later - sooner for sooner, later in zip(self.begun, self.begun[1:], strict=False)]


def no_signal() -> Any:
    """Open none of the signals of a clone. Raises NoSignal."""
    raise NoSignal("none here")


class Inside(Assembly):
    """A daemon's parts on a host whose clock, disk and entropy tests move and break.

    For *ahead* seconds no request needs a save. *chosen* are settings. The others are as in
    ``timelines_from`` and ``Assembly``.
    """

    def __init__(
        self,
        limits: Limits | None = None,
        *,
        ahead: float = 0.0,
        own_uid: int = 0,
        lost: bool = False,
        node: Node | None = None,
        page: Page | None = None,
        quality: Quality = GOOD,
        keeper: Callable[[Timelines, Callable[[], Reading], Saver], Keeper] | None = None,
        unreachable: Callable[[], str] = str,
        vmclock: Callable[[], VmClock] = no_signal,
        log: Callable[[], KernelLog] = no_signal,
        sets: Callable[[], ClockSets] = no_signal,
        **chosen: Any,
    ) -> None:
        self.quality = quality
        self.wall = Wall()
        self.disk = Disk()
        self.libuuid_clock_seq: int | None = None
        settings = Settings(None, Path("/none"), limits=limits or Limits(), **chosen)
        clock = partial(Clock, utc=self.wall.utc, boottime=self.wall.boottime)
        at = clock().read()
        timelines = timelines_from(
            None,
            settings,
            # A second ago, so that short blocks have some room from the first test step on.
            at._replace(now=at.now - TICKS_PER_SECOND),
            machine="host",
            random=Draws(),
            node=node,
            lost=lost,
            page=page,
            avoid=lambda: self.libuuid_clock_seq,
            ask=lambda: self.quality,
        )
        self.timeline, self.steady = timelines.utc, timelines.steady
        self.timeline.new_openings()
        first = timelines.begin_save(at=at, reach=int(FIRST_REACH * TICKS_PER_SECOND), bare_reach=0)
        timelines.end_save(first, completed=True)
        super().__init__(
            settings,
            timelines,
            clock=partial(clock, since=at),
            save=self.disk.save,
            unusable=self.disk.check,
            page=page,
            own_uid=own_uid,
            keeper=keeper,
            unreachable=unreachable,
            ask=lambda: self.quality,
            entropy=Entropy(random.Random(1).randbytes, lambda: 0.0),
            vmclock=vmclock,
            log=log,
            sets=sets,
        )
        if ahead:
            self.save_ahead(ahead)

    def save_ahead(self, seconds: float = 10) -> None:
        """Let a horizon so far ahead be saved, for both timelines, as if that had taken no time."""
        reach = int(seconds * TICKS_PER_SECOND)
        for _ in range(2):
            state = self.timelines.begin_save(at=self.clock.read(), reach=reach, bare_reach=reach)
            self.timelines.end_save(state, completed=True)

    def use_up(self) -> None:
        """Take all ticks that are free for whole blocks of utc."""
        for _ in range(BLOCK_LANES - 1):
            self.take(MAX_BLOCK, whole=True)

    def standing(self) -> tuple[Any, ...]:
        """Return all that changes when something is given out."""
        volatile = self.timeline.volatile
        return self.steady.next, self.lanes, volatile, self.timeline.openings

    @contextlib.asynccontextmanager
    async def needing_a_save(self, *, broken: bool = False) -> AsyncIterator[trio.Event]:
        """Let the saver run meanwhile, after an idle hour: the next request needs a save.

        Until the event that is entered is set, saves hang; if *broken*, they fail instead.
        """
        gate = trio.Event()
        async with self.saving():
            await trio.sleep(HOUR)
            self.disk.broken = broken
            if not broken:
                self.disk.gate = gate
            yield gate

    @property
    def open(self) -> Generation:
        """The open generation of the stored node."""
        assert self.timeline.open is not None
        return self.timeline.open

    @property
    def lanes(self) -> list[int]:
        """The ``next`` of each lane."""
        return [lane.next for lane in self.open.lanes]

    def take(self, count: int = 1, *, whole: bool = False) -> Block:
        """Take at once, as a request that need not wait."""
        block = at_once(self.allocator.take("utc", count, whole, uid=UID))
        assert isinstance(block, Block)
        return block

    async def take_waiting(
        self, count: int = 1, *, whole: bool = False, wait: bool = True
    ) -> Block:
        """Take as a request that may have to wait."""
        block = await awaited(self.allocator.take("utc", count, whole, wait, uid=UID))
        assert isinstance(block, Block)
        return block

    def take_steady(self, count: int = 1, *, whole: bool = False) -> SteadyBlock:
        """Take of the steady timeline, at once."""
        block = at_once(self.allocator.take("steady", count, whole, uid=UID))
        assert isinstance(block, SteadyBlock)
        return block

    async def take_steady_waiting(self, count: int = 1, *, whole: bool = False) -> SteadyBlock:
        """Take of the steady timeline, as a request that may have to wait."""
        block = await awaited(self.allocator.take("steady", count, whole, uid=UID))
        assert isinstance(block, SteadyBlock)
        return block

    async def use(self, seconds: float, *, every: float = 0.05) -> list[Block]:
        """Take one tick again and again for so long, and return the blocks."""
        end = trio.current_time() + seconds
        blocks = []
        while trio.current_time() < end:
            blocks.append(await self.take_waiting(1, whole=False))
            await trio.sleep(every)
        return blocks

    def saving(self) -> AbstractAsyncContextManager[None]:
        """Let the saver run meanwhile."""
        return meanwhile(self.saver.run)

    @contextlib.asynccontextmanager
    async def talking(
        self, monotonic: Callable[[], float] = time.monotonic, **changed: Any
    ) -> AsyncIterator[Peer]:
        """Enter the client's end of a connection that is served, under limits *changed* by name."""
        for name, value in changed.items():
            setattr(self.limits, name, value)
        theirs, ours = socket.socketpair()
        with socket.socket(socket.AF_UNIX) as listener:
            listener.setblocking(False)
            listener.bind("")
            listener.listen()
            acceptor = Acceptor(listener, self.service, self.admission, monotonic)
            async with Peer(theirs) as peer, meanwhile(acceptor.run):
                await trio.testing.wait_all_tasks_blocked()
                acceptor.admit(ours, UID)
                yield peer


@contextlib.asynccontextmanager
async def meanwhile(*tasks: Callable[[], Awaitable[object]]) -> AsyncIterator[None]:
    """Let tasks run meanwhile; they are ended as by a crash."""
    async with trio.open_nursery() as nursery:
        for task in tasks:
            nursery.start_soon(task)
        yield
        nursery.cancel_scope.cancel()


async def awaited(answer: Generator[Pause, None, Result]) -> Result:
    """Return what an answer comes to, after all that it waits for."""
    while True:
        try:
            pause = next(answer)
        except StopIteration as end:
            result: Result = end.value
            return result
        await (pause or trio.lowlevel.checkpoint)()


def at_once(answer: Generator[Pause, None, Result]) -> Result:
    """Return what an answer comes to. Raises MustPause if it has to wait."""
    try:
        next(answer)
    except StopIteration as end:
        result: Result = end.value
        return result
    raise MustPause


class MustPause(Exception):
    """An answer has to wait, and has given out nothing."""


class Peer:
    """A caller's end of a connection.

    *passed* are the descriptors that came, each with the bytes that came with it; they are closed
    at the end.
    """

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.passed: list[tuple[int, bytes]] = []
        self._stream = trio.SocketStream(trio.socket.from_stdlib_socket(sock))
        self._unpacker = msgpack.Unpacker()

    async def __aenter__(self) -> Peer:
        return self

    async def __aexit__(self, *_: object) -> None:
        for fd, _data in self.passed:
            os.close(fd)
        await trio.aclose_forcefully(self._stream)

    async def send(self, data: bytes) -> None:
        """Send bytes."""
        await self._stream.send_all(data)

    async def end_sending(self) -> None:
        """Tell the other side that no more comes."""
        await self._stream.send_eof()

    async def receive(self, count: int) -> bytes:
        """Return exactly *count* bytes."""
        data = b""
        while len(data) < count:
            more = await self._some(count - len(data))
            assert more, f"closed after {data!r}"
            data += more
        return data

    async def rest(self) -> bytes:
        """Return all bytes until the other side closes in an orderly way."""
        data = b""
        while more := await self._some(65536):
            data += more
        return data

    async def ended(self) -> None:
        """Wait until the other side has closed, in an orderly way or not."""
        with contextlib.suppress(trio.BrokenResourceError):
            assert await self._some(1) == b""

    async def _some(self, most: int) -> bytes:
        # A daemon that neither answers nor closes fails a test, rather than hang it.
        with trio.fail_after(2 * HOUR):
            try:
                data, control, *_ = await self._stream.socket.recvmsg(most, socket.CMSG_SPACE(64))
            except OSError as error:
                raise trio.BrokenResourceError from error
        for _level, _kind, payload in control:
            self.passed += [(fd, data) for fd in array.array("i", payload)]
        return data

    async def reply(self) -> Response:
        """Return the next rpc response."""
        while True:
            try:
                kind, msgid, error, result = self._unpacker.unpack()
            except msgpack.OutOfData:
                more = await self._some(65536)
                assert more, "closed without a reply"
                self._unpacker.feed(more)
            else:
                assert kind == 1
                return Response(msgid, error, result)

    async def replies(self, count: int) -> list[Response]:
        """Return the next *count* rpc responses."""
        return [await self.reply() for _ in range(count)]

    async def call(self, method: str, *params: Any, msgid: int = 1) -> Response:
        """Send a request in rpc, and return the response."""
        await self.send(request(method, *params, msgid=msgid))
        return await self.reply()

    async def lease(self) -> Lease:
        """Return the lease that the daemon grants."""
        reply = await self.call("lease")
        assert reply.error is None, reply.error
        return methods.unpack_lease(reply.result)


def request(method: str, *params: Any, msgid: int = 1) -> bytes:
    """Return the bytes of an rpc request."""
    return message(0, msgid, method, list(params))


def notification(method: Any, *params: Any) -> bytes:
    """Return the bytes of an rpc notification."""
    return message(2, method, list(params))


def message(*items: Any) -> bytes:
    """Return the bytes of an array."""
    packed: bytes = msgpack.packb(items)
    return packed
