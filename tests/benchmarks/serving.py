"""Requests a second that our daemon answers, against util-linux's, at several loads."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.benchmarks import load
from tests.benchmarks.daemons import Running, ours, util_linux
from tests.benchmarks.load import Measured, Traffic
from tests.benchmarks.place import Place
from tests.benchmarks.rounds import Side, interleaved, ratio
from tests.benchmarks.table import Row
from uuidd.core.wire import libuuid as libuuid_wire
from uuidd.core.wire import rpc as rpc_wire
from uuidd.core.wire.libuuid import Op

CLIENTS = (1, 8, 64)
TURN_SECONDS = 0.5

TAKE = Traffic(
    rpc_wire.call(1, "take", ["utc", 1]),
    # A response, to request 1, without an error, a map of 4.
    reply=bytes([0x94, rpc_wire.RESPONSE, 1, 0xC0, 0x84]),
    anew=False,
)
TIME_UUID = Traffic(libuuid_wire.request(Op.TIME_UUID), reply=bytes([16, 0, 0, 0]), anew=True)
"""util-linux's daemon closes after each reply, so its callers have to connect anew."""


def rpc(place: Place, rounds: int) -> Iterator[Row]:
    """Compare takes over connections that stay with what util-linux's daemon does instead."""
    yield from _rows("rpc take / C uuidd op 2", place, rounds, TAKE, at_least=0.7)


def libuuid(place: Place, rounds: int) -> Iterator[Row]:
    """Compare both daemons in the libuuid dialect."""
    yield from _rows("libuuid op 2 / C uuidd op 2", place, rounds, TIME_UUID, at_least=None)


def _rows(
    name: str, place: Place, rounds: int, traffic: Traffic, *, at_least: float | None
) -> Iterator[Row]:
    program = load.compiled(place)
    with ours(place) as mine, util_linux(place) as other:
        for clients in CLIENTS:
            my_turns: list[Turn] = []
            other_turns: list[Turn] = []
            my_rates, other_rates = interleaved(
                rounds,
                _side(program, mine, traffic, clients, my_turns),
                _side(program, other, TIME_UUID, clients, other_turns),
            )
            yield Row(
                f"{name}, {clients} client{'s' if clients > 1 else ''}",
                statistics.median(my_rates),
                "req/s",
                theirs=statistics.median(other_rates),
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
    p99 = statistics.median(turn.load.p99 for turn in turns)
    busy = statistics.median(turn.busy for turn in turns)
    load_busy = statistics.median(turn.load.busy for turn in turns)
    return f"p99 {p99:,.0f} us, cpu {busy:.0%}, load's {load_busy:.0%}"
