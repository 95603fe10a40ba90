"""How long one id takes: ours from the daemon's blocks, against Python's own through libuuid."""

from __future__ import annotations

import statistics
import timeit
import uuid
from collections.abc import Iterator
from typing import Any
from uuid import SafeUUID

import uuidd_client
from tests.benchmarks.daemons import no_daemon, ours, util_linux
from tests.benchmarks.place import Place
from tests.benchmarks.rounds import Side, interleaved, ratio
from tests.benchmarks.table import Row

TURN_SECONDS = 0.05
BATCH = 1000


def uuid1(place: Place, rounds: int) -> Iterator[Row]:
    """Compare uuid1 with Python's, to which util-linux's daemon gives blocks as well."""
    with ours(place), util_linux(place):
        _must_be_safe(uuid.uuid1())
        yield _uuid1("uuid1() / stdlib with C uuidd", rounds, at_least=3)


def uuid1_alone(place: Place, rounds: int) -> Iterator[Row]:
    """Compare uuid1 with Python's where libuuid has no daemon, and locks a file for each."""
    with ours(place), no_daemon():
        yield _uuid1("uuid1() / stdlib, no daemon", rounds, at_least=15)


def _uuid1(name: str, rounds: int, *, at_least: float) -> Row:
    _must_be_safe(uuidd_client.uuid1())
    mine, theirs = interleaved(
        rounds,
        side("uuid1()", uuid1=uuidd_client.uuid1),
        side("uuid1()", uuid1=uuid.uuid1),
    )
    _must_be_safe(uuidd_client.uuid1())
    return row(name, mine, theirs, at_least)


def text(place: Place, rounds: int) -> Iterator[Row]:
    """Compare ids as text, one at a time and a thousand at once, with Python's str(uuid1())."""
    with ours(place) as daemon, util_linux(place), uuidd_client.Client(daemon.socket) as client:
        _must_be_safe(client.uuid1())
        _must_be_safe(uuid.uuid1())
        single, many, theirs = interleaved(
            rounds,
            side("next(ids)", ids=client.iter("v1", form="text")),
            side(f'make("v1", {BATCH}, form="text")', ids=BATCH, make=client.make),
            side("str(uuid1())", uuid1=uuid.uuid1),
        )
        yield row("text, next(iter) / str(stdlib)", single, theirs, 8)
        yield row(f"text, make({BATCH}) / str(stdlib)", many, theirs, 8)


def row(name: str, mine: list[float], theirs: list[float], at_least: float) -> Row:
    """Give a row that compares two sides, from their measurements."""
    return Row(
        name,
        statistics.median(mine),
        "ns an id",
        theirs=statistics.median(theirs),
        ratio=ratio(theirs, mine),
        at_least=at_least,
    )


def side(statement: str, *, ids: Any = 1, **names: Any) -> Side:
    """Give what measures a statement, in nanoseconds an id; its loop has the names at hand.

    The garbage collector runs, as it does in a program.
    """
    made = ids if isinstance(ids, int) else 1
    timer = timeit.Timer(statement, "import gc; gc.enable()", globals={"ids": ids, **names})
    # The first one imports, or connects.
    timer.timeit(1)
    number = 1
    while (seconds := timer.timeit(number)) < TURN_SECONDS / 10:
        number *= 2
    number = max(1, int(number * TURN_SECONDS / seconds))
    return lambda: timer.timeit(number) * 1e9 / number / made


def _must_be_safe(made: uuid.UUID) -> None:
    if made.is_safe is not SafeUUID.safe:
        raise RuntimeError("an id came from elsewhere than the daemon: this compares nothing")
