"""The whole daemon but its process, over real sockets, with a clock that tests move."""

from __future__ import annotations

import gc
import logging
import math
import os
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.daemon.fakes import Inside, notification, request
from tests.fuzzing import FEW, corpus
from tests.fuzzing.caller import Caller, Ending, Script
from tests.fuzzing.changes import Changes, of_messagepack
from tests.fuzzing.given_out import GivenOut, Lanes
from tests.fuzzing.messages import PARTS
from tests.fuzzing.watching import in_time_and_room
from tests.kinds import TIMED
from uuidd.server.descriptors import bar_descriptors
from uuidd.server.page import Page
from uuidd.server.settings import Limits

SECONDS = 20.0
"""Of the processor, for one life."""

PATIENCE = 20.0
"""Seconds for which smaller lives are looked for that fail. hypothesis would take minutes."""

ROUNDS, AT_ONCE = 6, 8
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

GOOD = request("take", "utc", 1, msgid=1) + request("make", "v4", msgid=2)


@dataclass(frozen=True, slots=True)
class Host:
    """What the daemon is started with."""

    few: bool = False
    """Whether there may be only three connections at once."""
    worker: int | None = None
    lost: bool = False
    rollback: str = "slew"
    bars: bool = True
    """Whether the kernel can bar passed descriptors."""


@dataclass(frozen=True, slots=True)
class Round:
    """What happens to the host, and then what callers do at the same time."""

    weather: int
    scripts: list[Script]


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


def _script(ending: Ending, payload: bytes, cuts: list[int]) -> Script:
    places = sorted(cut * len(payload) // 256 for cut in cuts)
    pieces = [payload[begin:end] for begin, end in pairwise([0, *places, len(payload)])]
    return Script(ending, [piece for piece in pieces if piece])


_SEEDS = [data for data, _ in (*corpus.REQUESTS, *corpus.ASKS)]

_CHANGED = Changes([each for each in _SEEDS + _RIGHT if len(each) < 256], PARTS, of_messagepack)

_SCRIPTS = st.builds(
    _script,
    st.sampled_from(Ending),
    # Right ones that are long take long, so they come up less often.
    st.one_of(*[_CHANGED.messages] * 4, st.sampled_from(_RIGHT)),
    st.lists(st.integers(0, 255), max_size=3),
)

_HOSTS = st.builds(
    Host,
    few=st.sampled_from([False] * 7 + [True]),
    worker=st.sampled_from([None, 5]),
    lost=st.sampled_from([False] * 7 + [True]),
    rollback=st.sampled_from(["slew", "slew", "wait", "refuse"]),
    bars=st.booleans(),
)

# A disk that broke is mended soon.
_ROUNDS = st.builds(
    Round, st.sampled_from([0] * 10 + [*range(10), 6, 6]), st.lists(_SCRIPTS, max_size=AT_ONCE)
)


KEPT = [
    # Replies longer than the socket takes at once, and then no request: they are sent whole.
    (
        [Script(Ending.SHUT, [b"\x94\x00\x00\xa4make\x92\xa2v1\xcd\x03\xe8\x00"])],
        "MalformedError+answered",
    ),
    # The same with the begin of another dialect after it.
    (
        [Script(Ending.SHUT, [b"\x94\x00\x00\xa4make\x92\xa2v1\xcd\x03\xe8\x02"])],
        "MalformedError+answered",
    ),
    # A notification that has to wait, on a connection that stays.
    ([None] * 4 + [Script(Ending.STAY, [b"\x93\x02\xa4make\x91\xa2v1"])], "unanswered"),
    # One byte after another, of both dialects.
    ([Script(Ending.SHUT, [b"\x04", b"\x0a", b"\0", b"\0", b"\0"])], "libuuid"),
]
"""The callers of a daemon whose state was lost, one in each round, and what comes of the last."""


@pytest.fixture(autouse=True)
def few_to_collect() -> Iterator[None]:
    """Let the garbage collector look only at what the lives of the test leave."""
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.mark.parametrize(("callers", "outcome"), KEPT)
def test_what_is_kept_of_lives_comes_to_what_it_should(
    callers: list[Script | None], outcome: str
) -> None:
    rounds = [Round(0, [script] if script else []) for script in callers]
    assert live(Host(lost=True), rounds) == [outcome]


def test_callers_of_a_daemon_get_what_they_should(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, logger="uuidd")
    outcomes = set()
    failed: list[tuple[Host, list[Round]]] = []
    ends = math.inf

    @settings(FEW, max_examples=FEW.max_examples // 2)
    @given(_HOSTS, st.lists(_ROUNDS, min_size=1, max_size=ROUNDS))
    def get_what_they_should(host: Host, rounds: list[Round]) -> None:
        nonlocal ends
        if time.monotonic() > ends and (host, rounds) not in failed:
            # Smaller lives that fail were looked for long enough.
            return
        try:
            with in_time_and_room(SECONDS):
                outcomes.update(live(host, rounds))
        except Exception:
            failed.append((host, rounds))
            ends = min(ends, time.monotonic() + PATIENCE)
            raise

    get_what_they_should()
    # Callers that are all refused would prove little.
    assert "answered" in outcomes


def live(host: Host, rounds: Sequence[Round]) -> list[str]:
    """Live through a daemon's life; return what each connection came to."""
    outcomes: list[str] = []
    before = _descriptors()
    page = Page()
    trio.run(_life, host, rounds, page, outcomes, clock=MockClock(autojump_threshold=0))
    page.close()
    if _descriptors() > before:
        # What the daemon's end left to Python is closed once it is collected.
        gc.collect()
    # A daemon leaves the last connections that may hold descriptors to the end of its process.
    assert not host.bars or _descriptors() <= before, "all descriptors are closed at the end"
    return outcomes


def _descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


async def _life(host: Host, rounds: Sequence[Round], page: Page, outcomes: list[str]) -> None:
    inside = Inside(
        Limits(connections=3) if host.few else Limits(),
        worker=host.worker,
        lost=host.lost,
        rollback=host.rollback,
        page=page,
    )
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.setblocking(False)
        if host.bars:
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
                if change := WEATHER.get(each.weather):
                    change(inside)
                if seconds := PAUSES.get(each.weather):
                    await trio.sleep(seconds)
                outcomes += await _round(inside, listener.getsockname(), each.scripts, given_out)
                if number % OFTEN == 0 or number == len(rounds):
                    good = Script(Ending.SHUT, [GOOD])
                    (answer,) = await _round(inside, listener.getsockname(), [good], given_out)
                    assert answer == "answered", "a good request is answered afterwards"
            nursery.cancel_scope.cancel()


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
    """Wait until each caller has what it waits for. Fails if one never will."""
    idle = 0
    await _settled(callers)
    for _ in range(STEPS):
        if not any(caller.waits for caller in callers):
            return
        assert idle < IDLE_STEPS, "a connection is answered or closed, it does not hang"
        await trio.sleep(STEP if idle < 4 else LONG_STEP)
        for caller in callers:
            caller.hear()
        idle = 0 if await _settled(callers) else idle + 1
    raise AssertionError("a connection comes to an end")


async def _emptied(inside: Inside) -> None:
    """Wait until the daemon has noticed that all have gone."""
    for _ in range(STEPS // 4):
        await wait_all_tasks_blocked()
        if not inside.admission.open:
            return
        await trio.sleep(STEP)
    raise AssertionError("each connection is counted out")
