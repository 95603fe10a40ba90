"""``uuidctl bench``: how fast the daemon answers, and how fast this process makes ids."""

from __future__ import annotations

import argparse
import json
import math
import sys
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from itertools import repeat
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, NamedTuple

from uuidd.core.ids.kinds import KINDS
from uuidd_client import extension
from uuidd_client.client import Client
from uuidd_client.command import common
from uuidd_client.command.progress import Progress
from uuidd_client.errors import NoWorkerId

if TYPE_CHECKING:
    from uuidd_client.client import Kind
    from uuidd_client.connection import Connection

SECONDS, MAX_SECONDS = 0.25, 60.0
"""How long one measurement takes. The time of each round trip is kept, in 8 bytes."""

AT_ONCE = 1000
"""Ids of one call of ``make``."""

BATCH, TRIPS = 1000, 25
"""Ids, and round trips, between two readings of the clock: about a millisecond of them."""

ROUND_TRIPS = {"utc": "v1", "steady": "v7"}
"""The kind that stands for each timeline, of which one tick is taken in each round trip."""

PER_MILLE = {"p50": 500, "p90": 900, "p99": 990, "p99.9": 999, "max": 1000}

Moved = Callable[[float], None]
"""Is called now and then with the share of a measurement that is done, 0 to 1."""


class Measurement(NamedTuple):
    """One thing to measure, in the given seconds."""

    name: str
    measure: Callable[[float, Moved], None]


class Results(NamedTuple):
    """Percentiles in microseconds by kind, and ids a second by kind and way."""

    trips: dict[str, dict[str, float]]
    rates: dict[str, dict[str, float]]


def add_to(commands: Any) -> None:
    """Add the command to an argparse parser's commands."""
    command = commands.add_parser(
        "bench",
        help="measure how fast the daemon answers and how fast ids are made",
        description="Measure how long the running daemon takes to answer a request, and how many"
        " ids a second this process makes from the time that the daemon gives it.",
    )
    command.add_argument(
        "-k",
        "--kind",
        nargs="+",
        action="extend",
        choices=tuple(KINDS),
        metavar="KIND",
        help=f"the kinds of ids: {', '.join(KINDS)} (default: all)",
    )
    command.add_argument(
        "--seconds",
        type=_seconds,
        default=SECONDS,
        metavar="S",
        help=f"seconds for each measurement, at most {MAX_SECONDS:g} (default: {SECONDS:g})",
    )
    command.add_argument("--json", action="store_true", help="print one JSON object")
    command.set_defaults(do=_do)


def _do(given: argparse.Namespace) -> int:
    kinds = list(dict.fromkeys(given.kind or KINDS))
    # Without a fallback: either the daemon is measured, or there is an error.
    with (
        common.client(given.socket, fallback=False) as client,
        closing(common.connection(given.socket)) as connection,
    ):
        status = client.status()
        left_out = []
        if given.kind is None and not _has_worker(client):
            kinds.remove("snowflake")
            left_out.append("snowflake")
        results = Results({}, {})
        measurements = list(_measurements(kinds, client, connection, results))
        with Progress(len(measurements), sys.stderr) as progress:
            for measurement in measurements:
                progress.begin(measurement.name)
                measurement.measure(given.seconds, progress.move)
    about = {name: status.get(name) for name in ("version", "pid")}
    about["implementation"] = extension.implementation
    if given.json:
        print(json.dumps(_shown(about, given.seconds, results, left_out), indent=2))
    else:
        print("\n".join(lines(about, results, left_out)))
    return 0


def _has_worker(client: Client) -> bool:
    try:
        client.snowflake()
    except NoWorkerId:
        return False
    return True


def _measurements(
    kinds: Sequence[Kind], client: Client, connection: Connection, results: Results
) -> Iterator[Measurement]:
    """Return the measurements of *kinds*, which put what they find into *results*."""
    # A client with a lease makes no round trips.
    takes: dict[str, Callable[[int], object]] = {
        "utc": connection.take,
        "steady": connection.take_steady,
    }

    def trips(timeline: str, kind: str, seconds: float, moved: Moved) -> None:
        results.trips[kind] = percentiles(timed(partial(takes[timeline], 1), seconds, moved))

    def one_by_one(kind: Kind, seconds: float, moved: Moved) -> None:
        draw = client.factory(kind)

        def batch() -> None:
            for _ in repeat(None, BATCH):
                draw()

        results.rates[kind] = {"one_by_one": rate(batch, BATCH, seconds, moved)}

    def at_once(kind: Kind, seconds: float, moved: Moved) -> None:
        batch = partial(client.make, kind, AT_ONCE)
        results.rates[kind]["at_once"] = rate(batch, AT_ONCE, seconds, moved)

    timelines = {KINDS[kind].timeline for kind in kinds}
    for timeline, kind in ROUND_TRIPS.items():
        if timeline in timelines:
            yield Measurement(f"round trips of {kind}", partial(trips, timeline, kind))
    for kind in kinds:
        yield Measurement(f"{kind}, one at a time", partial(one_by_one, kind))
        yield Measurement(f"{kind}, {AT_ONCE} at once", partial(at_once, kind))


def timed(call: Callable[[], object], seconds: float, moved: Moved) -> array[int]:
    """Return the nanoseconds of each *call* during *seconds*, of 25 calls at least.

    One call goes before them, which connects and imports.
    """
    call()
    taken = array("q")
    took = 0
    begun = perf_counter_ns()
    while took < seconds * 1e9:
        for _ in repeat(None, TRIPS):
            at = perf_counter_ns()
            call()
            taken.append(perf_counter_ns() - at)
        took = perf_counter_ns() - begun
        moved(took / (seconds * 1e9))
    return taken


def rate(batch: Callable[[], object], size: int, seconds: float, moved: Moved) -> float:
    """Return the ids a second of a *batch* of *size* ids, repeated for *seconds*, once at least.

    One batch goes before: from it the client learns how large a block to ask for.
    """
    batch()
    made = took = 0
    begun = perf_counter_ns()
    while took < seconds * 1e9:
        batch()
        made += size
        took = perf_counter_ns() - begun
        moved(took / (seconds * 1e9))
    return made * 1e9 / took


def percentiles(nanoseconds: Sequence[int]) -> dict[str, float]:
    """Return p50, p90, p99, p99.9 and max in microseconds, and the count.

    Each is a measured time: the shortest that this share of the times does not exceed.
    """
    ordered = sorted(nanoseconds)
    count = len(ordered)
    found: dict[str, float] = {"count": count}
    for name, share in PER_MILLE.items():
        found[name] = ordered[-(-share * count // 1000) - 1] / 1000
    return found


def lines(about: Mapping[str, Any], results: Results, left_out: Sequence[str]) -> Iterator[str]:
    """Return the results as a table, in lines of less than 80 columns."""
    language = common.LANGUAGES[about["implementation"]]
    yield f"uuidd {about['version']}, pid {about['pid']}; ids are made in {language}"
    if results.trips:
        yield ""
        yield from _table(
            ["round trip, microseconds", *PER_MILLE],
            [
                [kind, *(_microseconds(found[name]) for name in PER_MILLE)]
                for kind, found in results.trips.items()
            ],
        )
    yield ""
    yield from _table(
        ["ids a second", "one at a time", f"{AT_ONCE} at once"],
        [
            [
                f"{kind} ({KINDS[kind].forms[0]})",
                f"{found['one_by_one']:,.0f}",
                f"{found['at_once']:,.0f}",
            ]
            for kind, found in results.rates.items()
        ],
    )
    yield ""
    for kind in left_out:
        yield f"Left out: {kind}, because the daemon has no worker number (--worker N)."
    if any(KINDS[kind].timeline for kind in results.rates):
        yield "All ids but v4 came from the daemon; the fallback made none."
        yield "A process with a lease has room for 10,000,000 ids of each kind a second."
        yield "All processes share room for 10,000,000 Flakes, or 4,096,000 Snowflakes."
        yield "A measurement may exceed this, because it also uses time that was still free."
    if "v4" in results.rates:
        yield "v4 is random, and is made in this process without the daemon."


def _microseconds(value: float) -> str:
    return f"{value:,.1f}" if value < 1000 else f"{value:,.0f}"


def _table(head: list[str], rows: list[list[str]]) -> Iterator[str]:
    """Return aligned lines: names at the left, numbers at the right."""
    names, *numbers = (max(map(len, column)) for column in zip(head, *rows, strict=True))
    for name, *cells in (head, *rows):
        found = "".join(f"  {cell:>{width}}" for cell, width in zip(cells, numbers, strict=True))
        yield f"{name:<{names}}{found}"


def _shown(
    about: Mapping[str, Any], seconds: float, results: Results, left_out: Sequence[str]
) -> dict[str, Any]:
    """Return the results for JSON."""
    return {
        **about,
        "seconds": seconds,
        "round_trip_microseconds": results.trips,
        "ids_per_second": {
            kind: {
                "form": KINDS[kind].forms[0],
                "source": "daemon" if KINDS[kind].timeline else "process",
                **{way: round(value) for way, value in found.items()},
            }
            for kind, found in results.rates.items()
        },
        "left_out": dict.fromkeys(left_out, "no worker number"),
    }


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value <= MAX_SECONDS:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a number of seconds above 0, {MAX_SECONDS:g} at most"
        )
    return value
