"""Target: the whole daemon but its process, over real sockets, with a clock that tests move."""

from __future__ import annotations

import gc
import os
import socket
import warnings
from collections.abc import Callable, Iterator, Sequence
from random import Random

import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.daemon.fakes import Inside, notification, request
from tests.fuzzing import corpus
from tests.fuzzing.caller import Caller
from tests.fuzzing.given_out import GivenOut
from tests.fuzzing.lanes import Lanes
from tests.fuzzing.messages import PARTS
from tests.fuzzing.mutations import Mutations
from tests.fuzzing.scripts import ENDINGS, Ending, Script, fewer, packed, unpacked
from tests.fuzzing.spans import of_messagepack
from tests.fuzzing.target import Target, require
from tests.kinds import TIMED
from uuidd.server.descriptors import bar_descriptors
from uuidd.server.page import Page
from uuidd.server.settings import Limits

ROUNDS, AT_ONCE = 40, 16
"""Rounds in the life of a daemon, and connections of a round, at most."""

OFTEN = 4
"""Rounds after which it is asked for what it has to answer."""

STEP, LONG_STEP, STEPS, IDLE_STEPS = 0.25, 6.0, 1000, 6
"""Seconds that are let pass while somebody waits: short ones first, and long ones when nothing
comes. After so many steps, or so many in which nothing came, it counts as a hang."""

YOUTH = 0.01
"""Seconds that a daemon has lived before the first round."""

WEATHER: dict[int, Callable[[Inside], None]] = {
    1: lambda inside: inside.wall.step(-0.005),
    2: lambda inside: inside.wall.step(-60.0),
    3: lambda inside: inside.wall.step(1.0),
    4: lambda inside: inside.wall.step(3600.0),
    5: lambda inside: setattr(inside.disk, "broken", True),
    6: lambda inside: setattr(inside.disk, "broken", False),
}
"""What may happen to a host before a round, by number."""

PAUSES = {7: 0.05, 8: 1.0, 9: 30.0}
"""Seconds that may pass before a round, by number."""

MAY_HOLD_DESCRIPTORS = 0x80
"""The bit of the variant for a daemon on a kernel that cannot bar passed descriptors."""

GOOD = request("take", "utc", 1, msgid=1) + request("make", "v4", msgid=2)


def handler(data: bytes) -> Sequence[str]:
    """Live through a daemon's life; return what each connection came to."""
    outcomes: list[str] = []
    before = _descriptors()
    page = Page()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        trio.run(_life, data, page, outcomes, clock=MockClock(autojump_threshold=0))
    page.close()
    if _descriptors() > before:
        # What the daemon's end left to Python is closed once it is collected.
        gc.collect()
    # A daemon leaves the last connections that may hold descriptors to the end of its process.
    leaves = bool(unpacked(data)[0] & MAY_HOLD_DESCRIPTORS)
    require(leaves or _descriptors() <= before, "all descriptors are closed at the end")
    return outcomes


def _descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


async def _life(data: bytes, page: Page, outcomes: list[str]) -> None:
    variant, rounds = unpacked(data)
    inside = Inside(
        Limits(connections=3) if variant & 7 == 7 else Limits(),
        worker=5 if variant & 8 else None,
        lost=not variant & 0x70,
        rollback=("slew", "slew", "wait", "refuse")[variant >> 4 & 3],
        page=page,
    )
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.setblocking(False)
        if not variant & MAY_HOLD_DESCRIPTORS:
            bar_descriptors(listener)
        listener.bind("")
        listener.listen(1000)
        acceptor = inside.acceptor(listener)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(inside.saver.run)
            nursery.start_soon(acceptor.run)
            given_out = GivenOut()
            # No daemon is asked in the instant of its start; a clock that stands still there makes
            # leads of nothing.
            await trio.sleep(YOUTH)
            for number, each in enumerate(rounds, 1):
                await _pass(inside, each.weather)
                outcomes += await _round(inside, listener.getsockname(), each.scripts, given_out)
                if number % OFTEN == 0 or number == len(rounds):
                    good = Script(Ending.SHUT, [GOOD])
                    (answer,) = await _round(inside, listener.getsockname(), [good], given_out)
                    require(answer == "answered", "a good request is answered afterwards")
            nursery.cancel_scope.cancel()


async def _pass(inside: Inside, weather: int) -> None:
    if change := WEATHER.get(weather):
        change(inside)
    if seconds := PAUSES.get(weather):
        await trio.sleep(seconds)


async def _round(
    inside: Inside, address: bytes, scripts: Sequence[Script], given_out: GivenOut
) -> list[str]:
    """Let callers talk at the same time; judge what they got, and what moved."""
    lanes = Lanes(inside)
    given_out.begin()
    callers: list[Caller] = []
    try:
        callers.extend(Caller(script, address, inside.limits.request_bytes) for script in scripts)
        for place in range(max((len(script.pieces) for script in scripts), default=0)):
            for caller in callers:
                caller.send(place)
            await _settled(callers)
        for caller in callers:
            caller.end()
        await _wait(callers)
        for caller in callers:
            caller.ping()
        await _wait(callers)
    finally:
        for caller in callers:
            caller.close()
    few = inside.limits.connections < AT_ONCE
    outcomes = [caller.judge(given_out, rejected=few) for caller in callers]
    await _emptied(inside)
    given_out.check(now=inside.wall.now())
    lanes.check(given_out, unread=any(caller.unread for caller in callers))
    return outcomes


async def _settled(callers: Sequence[Caller]) -> bool:
    """Wait until the daemon has done all that takes no time; the answer is whether any came."""
    came = False
    while True:
        await wait_all_tasks_blocked()
        # Not any(), which would leave what comes for others unread.
        if not sum([caller.read() for caller in callers]):
            return came
        came = True


async def _wait(callers: Sequence[Caller]) -> None:
    """Wait until each caller has what it waits for. Raises Broken when one never will."""
    idle = 0
    await _settled(callers)
    for _ in range(STEPS):
        if not any(caller.waits for caller in callers):
            return
        require(idle < IDLE_STEPS, "a connection is answered or closed, it does not hang")
        await trio.sleep(STEP if idle < 4 else LONG_STEP)
        for caller in callers:
            caller.hear()
        idle = 0 if await _settled(callers) else idle + 1
    require(False, "a connection comes to an end")


async def _emptied(inside: Inside) -> None:
    """Wait until the daemon has noticed that all have gone."""
    for _ in range(STEPS // 4):
        await wait_all_tasks_blocked()
        if not inside.admission.open:
            return
        await trio.sleep(STEP)
    require(False, "each connection is counted out")


_RIGHT = [
    *(request("make", kind, count) for kind in TIMED for count in (1, 3)),
    *(request("take", timeline, 1) for timeline in ("utc", "steady")),
    *(request("take", timeline, 1000, True) for timeline in ("utc", "steady")),
    request("take", "utc", 1_000_000, True),
    request("take", "utc", 1_000_000, True, False) * 20,
    request("take", "steady", 1_000_000, True, False),
    request("make", "v7", 1000, False),
    request("take", "utc", 1_000_000),
    request("make", "v1", 1000) * 3,
    corpus.NOTE * 20 + corpus.ONE * 20,
    request("lease"),
    request("lease", msgid=2) * 20,
    notification("in_use") * 20 + request("lease"),
    corpus.STEADY * 10,
    corpus.ONE * 400,
]
"""What is answered: only where much is given out can something be given out twice."""


def _payloads(random: Random) -> Iterator[bytes]:
    seeds = [data for data, _ in (*corpus.REQUESTS, *corpus.ASKS)] + _RIGHT
    dice = random.random
    for payload in Mutations(random, seeds, PARTS, of_messagepack):
        yield payload if dice() < 0.8 else _RIGHT[int(dice() * len(_RIGHT))]


def _inputs(random: Random) -> Iterator[bytes]:
    payloads, dice = _payloads(random), random.random
    while True:
        rounds = []
        for _ in range(ROUNDS):
            scripts = []
            for _ in range(1 if dice() < 0.3 else 1 + int(dice() * AT_ONCE)):
                ending = ENDINGS[int(dice() * len(ENDINGS))] if dice() < 0.5 else Ending.SHUT
                cuts = bytes(int(dice() * 256) for _ in range(int(dice() * 4)))
                if dice() < 0.02:
                    cuts = bytes(range(0, 256, 4))
                scripts.append(bytes([ending, len(cuts)]) + cuts + next(payloads))
            weather = int(dice() * 20)
            # A disk that broke is mended soon.
            rounds.append((6 if weather > 17 else weather, scripts))
        yield packed(int(dice() * 256), rounds)


TARGETS = (
    Target("handler", handler, _inputs, together=1, seconds=20.0, weighed=False, fewer=fewer),
)
