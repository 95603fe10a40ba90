"""How long one id takes: ours from the daemon's blocks, against what else Python has."""

from __future__ import annotations

import contextlib
import time
import timeit
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID, SafeUUID

import uuidd_client
from tests.benchmarks import peers
from tests.benchmarks.daemons import no_daemon, ours, util_linux
from tests.benchmarks.place import Missing, Place
from tests.benchmarks.rounds import Side, interleaved, median, ratio
from tests.benchmarks.table import Result, Row

TURN_SECONDS = 0.05
BATCH = 1000
MILLION = 1_000_000

TEXT = 'next(client.iter("v1", form="text"))'

REST_SECONDS = 0.2
"""A clock has 10 million ticks a second, and so many ids; a rest lets it gather a million."""

BURSTS, BURST_REST_SECONDS = 10, 0.01
"""How often what is measured in bursts is made at once in a turn, and the rest before each."""

RATE = "a clock has 10 million ticks a second, 100 ns each"


@dataclass(frozen=True, slots=True)
class Peer:
    """What makes the same by other means: *draw*, found in *module*, as *statement* calls it.

    *ids* is how many a call gives; *at_least* the goal for the ratio.
    """

    name: str
    module: str
    draw: str
    statement: str = "draw()"
    at_least: float | None = None
    ids: int = 1

    def side(self) -> Side:
        """Give what measures it. Raises Missing when it is not installed."""
        return side(self.statement, ids=self.ids, draw=getattr(peers.load(self.module), self.draw))


def uuid1_alone(place: Place, rounds: int) -> Iterator[Result]:
    """Compare uuid1 with Python's where libuuid has no daemon, and locks a file for each."""
    with ours(place), no_daemon(), safe(uuidd_client.uuid1):
        yield from compared(
            "uuid1()",
            side("draw()", draw=uuidd_client.uuid1),
            rounds,
            Peer("stdlib uuid1(), no daemon", "uuid", "uuid1", at_least=20),
            Peer("stdlib uuid4(), no daemon", "uuid", "uuid4"),
        )


def beside_util_linux(place: Place, rounds: int) -> Iterator[Result]:
    """Compare with Python's uuid1, to which util-linux's daemon gives blocks as well."""
    with (
        ours(place) as daemon,
        util_linux(place),
        uuidd_client.Client(daemon.socket, fallback=False) as client,
        safe(uuidd_client.uuid1, client.uuid1, uuid.uuid1),
    ):
        yield from compared(
            "uuid1()",
            side("draw()", draw=uuidd_client.uuid1),
            rounds,
            Peer("stdlib uuid1() with C uuidd", "uuid", "uuid1", at_least=3.5),
            Peer("stdlib uuid4() with C uuidd", "uuid", "uuid4"),
        )
        yield from compared(
            TEXT,
            side("next(drawn)", drawn=client.iter("v1", form="text")),
            rounds,
            Peer("str(stdlib uuid1()) with C uuidd", "uuid", "uuid1", "str(draw())"),
            Peer("str(stdlib uuid4())", "uuid", "uuid4", "str(draw())"),
        )


def one(place: Place, rounds: int) -> Iterator[Result]:
    """Compare with libraries that need no daemon, one id at a time."""
    with (
        ours(place) as daemon,
        uuidd_client.Client(daemon.socket, fallback=False) as client,
        safe(uuidd_client.uuid1, client.uuid1),
    ):
        yield from compared(
            "uuid1()",
            side("draw()", draw=uuidd_client.uuid1),
            rounds,
            Peer("uuid_utils.compat.uuid1()", "uuid_utils.compat", "uuid1", at_least=2.2),
            Peer("uuid_utils.uuid1(), own type", "uuid_utils", "uuid1"),
            Peer("fastuuid.uuid1(), own type", "fastuuid", "uuid1"),
        )
        yield from compared(
            TEXT,
            side("next(drawn)", drawn=client.iter("v1", form="text")),
            rounds,
            Peer("str(uuid_utils.uuid1())", "uuid_utils", "uuid1", "str(draw())", at_least=1.0),
            Peer("str(fastuuid.uuid4())", "fastuuid", "uuid4", "str(draw())"),
        )


def bulk(place: Place, rounds: int) -> Iterator[Result]:
    """Compare a thousand at once, and time a million."""
    uuids = Peer(
        f"fastuuid.uuid4_bulk({BATCH})", "fastuuid", "uuid4_bulk", f"draw({BATCH})", 1.1, BATCH
    )
    texts = replace(
        uuids,
        name=f"fastuuid.uuid4_as_strings_bulk({BATCH})",
        draw="uuid4_as_strings_bulk",
        at_least=4,
    )
    with (
        ours(place) as daemon,
        uuidd_client.Client(daemon.socket, fallback=False) as client,
        safe(client.uuid1, lambda: client.make("v1", BATCH)[-1]),
    ):
        call = f'make("v1", {BATCH})'
        yield from compared(call, side(call, ids=BATCH, make=client.make), rounds, uuids)
        call = f'make("v1", {BATCH}, form="text")'
        sustained = side(call, ids=BATCH, make=client.make)
        yield from compared(call, sustained, rounds, texts, note=RATE)
        bursts = burst(call, calls=20, ids=BATCH, make=client.make)
        note = f"20 at once, then {BURST_REST_SECONDS * 1e3:g} ms of rest: within the rate"
        yield from compared(f"{call}, in bursts", bursts, rounds, texts, note=note)
        (packed,) = interleaved(rounds, lambda: _packed(client))
        note = f"each after {REST_SECONDS:g} s of rest: a clock has 10 million ticks a second"
        name = 'make("v1", 1,000,000, form="bytes")'
        yield Row(name, median(packed), "ns an id", at_most=25, note=note)


def _packed(client: uuidd_client.Client) -> float:
    time.sleep(REST_SECONDS)
    begin = time.perf_counter()
    made = client.make("v1", MILLION, form="bytes")
    seconds = time.perf_counter() - begin
    if len(made) != 16 * MILLION:
        raise RuntimeError(f"{len(made)} bytes are not a million ids")
    return seconds * 1e9 / MILLION


def compared(name: str, mine: Side, rounds: int, *others: Peer, note: str = "") -> Iterator[Result]:
    """Give a row for each of the others, all of one run, and what is missing of them."""
    found: list[tuple[Peer, Side]] = []
    for peer in others:
        try:
            found.append((peer, peer.side()))
        except Missing as missing:
            yield Missing(f"{name} / {peer.name}: {missing}")
    if not found:
        return
    took, *others_took = interleaved(rounds, mine, *(side for _, side in found))
    for (peer, _), theirs in zip(found, others_took, strict=True):
        yield row(f"{name} / {peer.name}", took, theirs, peer.at_least, note)


def row(
    name: str, mine: list[float], theirs: list[float], at_least: float | None, note: str = ""
) -> Row:
    """Give a row that compares what two sides took."""
    return Row(
        name,
        median(mine),
        "ns an id",
        theirs=median(theirs),
        ratio=ratio(theirs, mine),
        at_least=at_least,
        note=note,
    )


def side(statement: str, *, ids: int = 1, **names: Any) -> Side:
    """Give what measures a statement that makes *ids*, in nanoseconds an id.

    Its loop has the names at hand. The garbage collector runs, as it does in a program.
    """
    timer = timeit.Timer(statement, "import gc; gc.enable()", globals=names)
    # The first one imports, or connects.
    timer.timeit(1)
    number = 1
    # The shortest of three, for what else runs must not make all turns short.
    while (seconds := min(timer.repeat(3, number))) < TURN_SECONDS / 10:
        number *= 2
    number = max(1, int(number * TURN_SECONDS / seconds))
    return lambda: timer.timeit(number) * 1e9 / number / ids


def burst(statement: str, *, calls: int, ids: int = 1, **names: Any) -> Side:
    """Give what measures likewise, but so many *calls* at once, with a rest before each time."""
    timer = timeit.Timer(statement, "import gc; gc.enable()", globals=names)

    def run() -> float:
        seconds = 0.0
        for _ in range(BURSTS):
            time.sleep(BURST_REST_SECONDS)
            seconds += timer.timeit(calls)
        return seconds * 1e9 / (BURSTS * calls * ids)

    return run


@contextlib.contextmanager
def safe(*makers: Callable[[], UUID]) -> Iterator[None]:
    """See to it that what each makes comes from a daemon, before and after.

    Raises RuntimeError when it does not: then nothing was compared.
    """
    _must_be_safe(makers)
    yield
    _must_be_safe(makers)


def _must_be_safe(makers: tuple[Callable[[], UUID], ...]) -> None:
    for make in makers:
        if make().is_safe is not SafeUUID.safe:
            raise RuntimeError(f"{make!r} made an id that came from elsewhere than the daemon")
