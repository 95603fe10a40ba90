"""How long one id takes: ours, and what other libraries for Python need.

Each maker has a program of its own, ``timing.py``; they take turns.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import timeit
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

from tests.benchmarks import makers
from tests.benchmarks.daemons import no_daemon, ours, util_linux
from tests.benchmarks.makers import WORKER, Comparison, Maker, Pace
from tests.benchmarks.rows import (
    OTHER_CHECKOUT,
    Missing,
    Result,
    Side,
    alone,
    compared,
    interleaved,
    median,
)
from tests.benchmarks.workspace import THIS, Checkout, Workspace

TIMING = Path(__file__).with_name("timing.py")
TURN_SECONDS = 0.05

Bursts = list[tuple[float, float]]
"""Nanoseconds for an id, for each burst: the mean, and those of the first."""

Wanted = tuple[Checkout, Maker, dict[str, str]]
"""A side: a maker, the checkout whose interpreter runs it, and its environment."""

Running = tuple[list[Maker], list[Side[Bursts]], list[Missing]]
"""The makers whose programs run, what makes a turn of each, and what is missing."""

# It ends also when nobody ends it.
BUSY = "import signal; signal.alarm(60)\nwhile True: pass"

DISTRIBUTIONS = {
    "uuid_utils": "uuid_utils",
    "fastuuid": "fastuuid",
    "uuid6": "uuid6",
    "c_uuid_v7": "c-uuid-v7",
    "ulid": "python-ulid",
    "fastuuid7": "fastuuid7",
    "ksuid": "svix-ksuid",
    "snowflake": "snowflake-id",
}
"""By the name under which each is imported; the extra ``bench`` has them all."""


def without_daemon(space: Workspace, rounds: int) -> Iterator[Result]:
    """Compare uuid1 with Python's where libuuid has no daemon, and locks a file for each id."""
    # Another checkout is compared in "one", with the same maker.
    if not space.other:
        with no_daemon():
            yield from rows(makers.WITHOUT_DAEMON, space, rounds)


def beside_util_linux(space: Workspace, rounds: int) -> Iterator[Result]:
    """Compare with Python's uuid1, which gets blocks from util-linux's daemon."""
    if not space.other:
        with util_linux(space):
            yield from rows(makers.BESIDE_UTIL_LINUX, space, rounds)


def now_and_then(space: Workspace, rounds: int) -> Iterator[Result]:
    """Compare programs that make a few ids, and rest until they make the next few.

    One program runs alone, or beside others; the cores are quiet, or busy with other work.
    """
    # Each turn waits for its bursts, which takes long.
    rounds = (rounds + 1) // 2
    cost = median(timeit.repeat("pass", number=1, repeat=1000)) * 1e6
    note = f"the timer takes {cost:.2f} us of a first id, and {2 * cost:.2f} us of a burst"
    with (
        contextlib.nullcontext() if space.other else util_linux(space),
        _sides(space) as sides_of,
    ):
        for processes, pace in makers.FEW.items():
            for comparison in makers.NOW_AND_THEN:
                others = f", {processes - 1} others" if processes > 1 else ""
                with started(sides_of(comparison), pace, processes=processes) as running:
                    yield from _few(comparison.mine.name + others, running, rounds, note)


def _few(name: str, running: Running, rounds: int, note: str) -> Iterator[Result]:
    """Yield rows for the mean of a burst, and for its first id."""
    found, sides, missing = running
    yield from missing
    measured = interleaved(rounds, *sides, *(partial(_while_busy, side) for side in sides))
    for cores, turns in (("", measured[: len(sides)]), (", busy cores", measured[len(sides) :])):
        for figure, index in (("mean", 0), ("first id", 1)):
            mine, *others = ([ns / 1e3 for ns in _figures(turn, index)] for turn in turns)
            for maker, theirs in zip(found[1:], others, strict=True):
                goal = None if index else maker.at_least
                row = f"{name}{cores}, {figure}"
                yield compared(row, maker.name, "us", mine, theirs, goal, note)


def rows(comparisons: Sequence[Comparison], space: Workspace, rounds: int) -> Iterator[Result]:
    """Yield a row for each maker that one of ours is compared with, or for ours alone."""
    with _sides(space) as sides_of:
        for comparison in comparisons:
            name, note, wanted = comparison.mine.name, comparison.note, sides_of(comparison)
            with started(wanted, comparison.pace) as (found, sides, missing):
                yield from missing
                if len(found) == 1 < len(wanted):
                    continue
                mine, *others = (_figures(turns, 0) for turns in interleaved(rounds, *sides))
            for maker, theirs in zip(found[1:], others, strict=True):
                yield compared(name, maker.name, "ns an id", mine, theirs, maker.at_least, note)
            if not others:
                yield alone(name, "ns an id", mine, comparison.at_most, note)


@contextlib.contextmanager
def _sides(space: Workspace) -> Iterator[Callable[[Comparison], list[Wanted]]]:
    """Run daemons, and yield what returns the sides of a comparison, ours first."""
    worker = f"--worker={WORKER}"
    with contextlib.ExitStack() as stack:
        mine = stack.enter_context(ours(space, worker)).environment
        if space.other is None:
            yield lambda comparison: [
                (THIS, maker, mine) for maker in (comparison.mine, *comparison.others)
            ]
            return
        before = space.other, stack.enter_context(ours(space, worker, checkout=space.other))
        yield lambda comparison: [
            (THIS, comparison.mine, mine),
            (before[0], replace(comparison.mine, name=OTHER_CHECKOUT), before[1].environment),
        ]


@contextlib.contextmanager
def started(
    wanted: list[Wanted],
    pace: Pace | None = None,
    *,
    processes: int = 1,
    seconds: float = TURN_SECONDS,
) -> Iterator[Running]:
    """Start *processes* for each side. Without a pace, a turn lasts for *seconds*.

    Raises Missing when the first side is.
    """
    found: list[Maker] = []
    sides: list[Side[Bursts]] = []
    missing: list[Missing] = []
    with contextlib.ExitStack() as stack:
        for checkout, maker, environment in wanted:
            what = {
                **asdict(maker),
                "pace": asdict(pace) if pace else None,
                "processes": processes,
                "seconds": seconds,
            }
            try:
                side = stack.enter_context(_timed(checkout, maker.name, what, environment))
            except Missing as error:
                if not found:
                    raise
                missing.append(Missing(f"{found[0].name} / {maker.name}: {error}"))
                continue
            found.append(maker)
            sides.append(side)
        yield found, sides, missing


@contextlib.contextmanager
def _timed(
    checkout: Checkout, name: str, what: dict[str, Any], environment: dict[str, str]
) -> Iterator[Side[Bursts]]:
    """Start the program that times a maker. Raises Missing when its library is not installed."""
    with subprocess.Popen(
        checkout.command(TIMING),
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            answer = _told(process, json.dumps(what), name)
            if answer != "ready":
                module = answer.removeprefix("missing ")
                library = DISTRIBUTIONS.get(module.partition(".")[0], module)
                raise Missing(f"{library} is not installed (pip install -e '.[bench]')")
            yield lambda: json.loads(_told(process, "", name))
            process.communicate(timeout=30)
            if process.returncode:
                raise RuntimeError(f"{name} made an id that did not come from a daemon")
        finally:
            process.kill()


def _told(process: subprocess.Popen[str], line: str, name: str) -> str:
    """Send a line to the program, and return its answer."""
    assert process.stdin is not None
    assert process.stdout is not None
    with contextlib.suppress(BrokenPipeError):
        process.stdin.write(line + "\n")
        process.stdin.flush()
    answer = process.stdout.readline().strip()
    if not answer:
        raise RuntimeError(f"{name} cannot be timed; standard error has the reason")
    return answer


def _while_busy(side: Side[Bursts]) -> Bursts:
    """Return the bursts of a turn during which as many loops run as there are cores."""
    with contextlib.ExitStack() as stack:
        for _ in os.sched_getaffinity(0):
            loop = stack.enter_context(subprocess.Popen(THIS.command("-S", "-c", BUSY)))
            stack.callback(loop.kill)
        return side()


def _figures(turns: list[Bursts], index: int) -> list[float]:
    """Return one figure of each burst."""
    return [burst[index] for turn in turns for burst in turn]


def versions() -> dict[str, str]:
    """Return the version of each library that is installed."""
    found = {}
    for name in DISTRIBUTIONS.values():
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found
