"""``uuidctl bench``: how fast the daemon answers, and how fast ids are made of its blocks."""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import repeat
from time import perf_counter_ns
from typing import Any, NamedTuple, TextIO

from uuidd.core.ids.kinds import KINDS
from uuidd_client.client import Client
from uuidd_client.command import common
from uuidd_client.errors import NoWorkerId

SECONDS, MOST_SECONDS = 0.25, 60.0
"""How long one measurement takes; the time of each of its round trips is kept, 8 bytes each."""

AT_ONCE = 1000
"""Ids of one call to make."""

BATCH, TRIPS = 1000, 25
"""Ids drawn, and round trips made, between two looks at the clock: a millisecond's worth."""

ROUND_TRIPS = {"utc": "v1", "steady": "v7"}
"""The kind by which round trips for each timeline are measured."""

PER_MILLE = {"p50": 500, "p90": 900, "p99": 990, "p99.9": 999, "max": 1000}

BAR = 30
"""Cells of the progress bar."""

Moved = Callable[[float], None]
"""Is told now and then which share of a measurement is done, 0 to 1."""


class Measurement(NamedTuple):
    """One thing to measure: *measure* takes seconds, and whom to tell how far it is."""

    name: str
    measure: Callable[[float, Moved], None]


class Results(NamedTuple):
    """What was found: percentiles in microseconds by kind, and ids a second by kind and way."""

    trips: dict[str, dict[str, float]]
    rates: dict[str, dict[str, float]]


def add_to(commands: Any) -> None:
    """Add the command to an argparse parser's commands."""
    command = commands.add_parser(
        "bench",
        help="measure how fast the daemon answers and how fast ids are made",
        description="Measure how long the running daemon takes to answer a request, and how many"
        " ids a second this process makes from the daemon's blocks of time.",
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
        help=f"seconds for each measurement, at most {MOST_SECONDS:g} (default: {SECONDS:g})",
    )
    command.add_argument("--json", action="store_true", help="print one JSON object")
    command.set_defaults(do=_do)


def _do(given: argparse.Namespace) -> int:
    kinds = list(dict.fromkeys(given.kind or KINDS))
    # Without a fallback: what is measured is the daemon, or there is an error.
    with (
        common.client(given.socket, fallback=False) as client,
        common.client(given.socket, fallback=False, max_age=0) as single,
    ):
        status = client.status()
        left_out = []
        if given.kind is None and not _has_worker(client):
            kinds.remove("snowflake")
            left_out.append("snowflake")
        results = Results({}, {})
        measurements = [*_trips(kinds, single, results), *_rates(kinds, client, results)]
        with Progress(len(measurements), sys.stderr) as progress:
            for measurement in measurements:
                progress.begin(measurement.name)
                measurement.measure(given.seconds, progress.move)
    about = {name: status.get(name) for name in ("version", "pid")}
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


def _trips(kinds: Sequence[str], client: Client, results: Results) -> Iterator[Measurement]:
    """Give the measurements of round trips for the timelines that *kinds* are on."""
    timelines = {KINDS[kind].timeline for kind in kinds}
    for timeline, kind in ROUND_TRIPS.items():
        if timeline in timelines:

            def measure(seconds: float, moved: Moved, kind: str = kind) -> None:
                taken = timed(client.factory(kind, "uuid"), seconds, moved)
                results.trips[kind] = percentiles(taken)

            yield Measurement(f"round trips of {kind}", measure)


def _rates(kinds: Sequence[str], client: Client, results: Results) -> Iterator[Measurement]:
    """Give the measurements of ids a second: one at a time, and many at once."""
    for kind in kinds:

        def one(seconds: float, moved: Moved, kind: str = kind) -> None:
            draw = client.factory(kind, KINDS[kind].forms[0])

            def batch() -> None:
                for _ in repeat(None, BATCH):
                    draw()

            results.rates[kind] = {"one_by_one": rate(batch, BATCH, seconds, moved)}

        def many(seconds: float, moved: Moved, kind: str = kind) -> None:
            def batch() -> None:
                client.make(kind, AT_ONCE)

            results.rates[kind]["at_once"] = rate(batch, AT_ONCE, seconds, moved)

        yield Measurement(f"{kind}, one at a time", one)
        yield Measurement(f"{kind}, {AT_ONCE} at once", many)


def timed(call: Callable[[], object], seconds: float, moved: Moved) -> array[int]:
    """Give the nanoseconds that each *call* took, of as many as *seconds* hold, 25 at least.

    One call goes before them: it connects, and imports what the others find loaded.
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


def rate(batch: Callable[[], None], size: int, seconds: float, moved: Moved) -> float:
    """Give the ids a second of a *batch* of *size* of them, repeated for *seconds*, once at least.

    One batch goes before: by it the client learns how large a block to ask for.
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
    """Give p50, p90, p99, p99.9 and max in microseconds, and the count.

    Each is a time that was measured: the least that so many of a thousand do not exceed.
    """
    ordered = sorted(nanoseconds)
    count = len(ordered)
    found: dict[str, float] = {"count": count}
    for name, share in PER_MILLE.items():
        found[name] = ordered[-(-share * count // 1000) - 1] / 1000
    return found


def lines(about: Mapping[str, Any], results: Results, left_out: Sequence[str]) -> Iterator[str]:
    """Give the results as people read them, in lines of less than 80 columns."""
    yield f"uuidd {about['version']}, pid {about['pid']}"
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
        yield "One second has room for 10,000,000 ids of all callers, or 4,096,000 Snowflakes."
        yield "A measurement may exceed this, because it also uses time that was still free."
    if "v4" in results.rates:
        yield "v4 is random, and is made in this process without the daemon."


def _microseconds(value: float) -> str:
    return f"{value:,.1f}" if value < 1000 else f"{value:,.0f}"


def _table(head: list[str], rows: list[list[str]]) -> Iterator[str]:
    """Give aligned lines: names at the left, numbers at the right."""
    names, *numbers = (max(map(len, column)) for column in zip(head, *rows, strict=True))
    for name, *cells in (head, *rows):
        found = "".join(f"  {cell:>{width}}" for cell, width in zip(cells, numbers, strict=True))
        yield f"{name:<{names}}{found}"


def _shown(
    about: Mapping[str, Any], seconds: float, results: Results, left_out: Sequence[str]
) -> dict[str, Any]:
    """Give the results as programs read them."""
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


class Progress:
    """A bar in one line of *stream* while the context lasts, if that is a terminal.

    It is drawn without escape sequences, so any terminal shows it; only when it changes, so that
    what is measured is not disturbed; and it is gone at the end, also after an error or Ctrl-C.
    """

    def __init__(self, parts: int, stream: TextIO | None) -> None:
        self._stream = stream if stream is not None and stream.isatty() else None
        self._parts = parts
        self._begun = -1
        self._name = ""
        self._line = ""
        self._widest = 0

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self._show("")

    def begin(self, name: str) -> None:
        """Show that the next of the parts, *name*, begins."""
        self._begun += 1
        self._name = name
        self.move(0)

    def move(self, share: float) -> None:
        """Show which share of the part is done; what is beyond 1 counts as 1."""
        if self._stream is None:
            return
        done = int((self._begun + min(share, 1)) / self._parts * 100)
        bar = "#" * (done * BAR // 100)
        self._show(f"[{bar:.<{BAR}}] {done:3}%  {self._name}"[: _width(self._stream)])

    def _show(self, line: str) -> None:
        if self._stream is None or line == self._line:
            return
        # Noted before it is written: Ctrl-C may come in between, and all has to be cleared then.
        self._line = line
        self._widest = max(self._widest, len(line))
        self._stream.write(f"\r{line:{self._widest}}" + ("" if line else "\r"))
        self._stream.flush()


def _width(stream: TextIO) -> int:
    """Give the columns of a terminal in which a line can be written over: all but the last."""
    try:
        columns = os.get_terminal_size(stream.fileno()).columns
    except (OSError, ValueError):
        columns = 0
    return (columns or 80) - 1


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value <= MOST_SECONDS:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no number of seconds, more than 0 and up to {MOST_SECONDS:g}"
        )
    return value
