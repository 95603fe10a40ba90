"""Requests a second that our daemon answers, against util-linux's, at several loads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.benchmarks import load
from tests.benchmarks.compiling import compiled
from tests.benchmarks.daemons import Running, ours, util_linux
from tests.benchmarks.load import TAKE, TIME_UUID, Measured, Traffic
from tests.benchmarks.place import Place, allow_connections
from tests.benchmarks.rounds import Side, interleaved, median, ratio
from tests.benchmarks.table import Row

CLIENTS = (1, 8, 64)
LOADS = (1, 8, 64, 256, 1000)
TURN_SECONDS = 0.3


def rpc(place: Place, rounds: int) -> Iterator[Row]:
    """Compare takes over connections that stay with what util-linux's daemon does instead."""
    yield from _rows("rpc take / C uuidd op 2", place, rounds, TAKE, (1.0, 1.6, 2.0))


def libuuid(place: Place, rounds: int) -> Iterator[Row]:
    """Compare both daemons in the libuuid dialect, a connection for each request."""
    yield from _rows("libuuid op 2 / C uuidd op 2", place, rounds, TIME_UUID, (0.8, 0.8, 0.8))


def many(place: Place, rounds: int) -> Iterator[Row]:
    """See how the rate keeps up as connections become more."""
    allow_connections(max(LOADS))
    program = compiled(place, "load")
    with ours(place) as mine:
        rates = dict(
            zip(
                LOADS,
                interleaved(
                    rounds, *(_side(program, mine, TAKE, clients, []) for clients in LOADS)
                ),
                strict=True,
            )
        )
    best = max(LOADS, key=lambda clients: median(rates[clients]))
    # With fewer than at its best it waits for callers; only what more of them cost counts.
    worst = min(
        (clients for clients in LOADS if clients >= best),
        key=lambda clients: median(rates[clients]),
    )
    yield Row(
        f"rpc take, {worst:,} connections / the best, {best:,}",
        median(rates[worst]),
        "req/s",
        theirs=median(rates[best]),
        ratio=ratio(rates[worst], rates[best]),
        at_least=0.667,
        note=", ".join(f"{clients:,}: {median(rates[clients]):,.0f}" for clients in LOADS),
    )


def _rows(
    name: str, place: Place, rounds: int, traffic: Traffic, goals: tuple[float, ...]
) -> Iterator[Row]:
    program = compiled(place, "load")
    with ours(place) as mine, util_linux(place) as other:
        for clients, at_least in zip(CLIENTS, goals, strict=True):
            my_turns: list[Turn] = []
            other_turns: list[Turn] = []
            my_rates, other_rates = interleaved(
                rounds,
                _side(program, mine, traffic, clients, my_turns),
                _side(program, other, TIME_UUID, clients, other_turns),
            )
            yield Row(
                f"{name}, {clients} client{'s' if clients > 1 else ''}",
                median(my_rates),
                "req/s",
                theirs=median(other_rates),
                ratio=ratio(my_rates, other_rates),
                at_least=at_least,
                note=f"{_summary(my_turns)} / {_summary(other_turns)}",
            )


@dataclass(frozen=True, slots=True)
class Turn:
    """What the generator measured, and the share of the time that the daemon used a core."""

    load: Measured
    busy: float


def _side(
    program: Path, daemon: Running, traffic: Traffic, clients: int, turns: list[Turn]
) -> Side:
    def run() -> float:
        before = daemon.cpu_seconds()
        measured = load.run(
            program, daemon.socket, traffic, connections=clients, seconds=TURN_SECONDS
        )
        turns.append(Turn(measured, (daemon.cpu_seconds() - before) / TURN_SECONDS))
        return measured.per_second

    return run


def _summary(turns: list[Turn]) -> str:
    """Give the medians of p99, and of how busy daemon and generator were.

    The generator limits nothing while it is the less busy one of the two.
    """
    p99 = median([turn.load.p99 for turn in turns])
    busy = median([turn.busy for turn in turns])
    load_busy = median([turn.load.busy for turn in turns])
    return f"p99 {p99:,.0f} us, cpu {busy:.0%}, load's {load_busy:.0%}"
