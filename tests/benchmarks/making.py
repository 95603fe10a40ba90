"""How long one id takes: ours from the daemon's blocks, and what other libraries for Python need.

Each maker has processes of its own, ``timing.py``; they take turns.
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

Bursts = list[tuple[float, float]]
"""Nanoseconds for an id, for each burst: the mean, and those of the first."""

Wanted = tuple[Checkout, Maker, dict[str, str]]
"""A side: a maker, the checkout whose interpreter runs it, and its environment."""

Started = contextlib.AbstractContextManager[tuple[list[Maker], list[Side[Bursts]], list[Missing]]]
"""Makers whose processes run, what takes a turn of each, and what is missing."""

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
            yield from _rows(space, rounds, makers.WITHOUT_DAEMON)


def beside_util_linux(space: Workspace, rounds: int) -> Iterator[Result]:
    """Compare with Python's uuid1, which gets blocks from util-linux's daemon."""
    if not space.other:
        with util_linux(space):
            yield from _rows(space, rounds, makers.BESIDE_UTIL_LINUX)


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
                started = _started(sides_of(comparison), pace, processes)
                others = f", {processes - 1} others" if processes > 1 else ""
                yield from _few(comparison.mine.name + others, started, rounds, note)


def one(space: Workspace, rounds: int) -> Iterator[Result]:
    """Compare with libraries that need no daemon, one id at a time."""
    return _rows(space, rounds, makers.ONE)


def bulk(space: Workspace, rounds: int) -> Iterator[Result]:
    """Compare a thousand at once, and time a million."""
    return _rows(space, rounds, makers.BULK)


def kinds(space: Workspace, rounds: int) -> Iterator[Result]:
    """Compare the other kinds with the libraries that Python has for each."""
    return _rows(space, rounds, makers.KINDS)


def inspect(space: Workspace, rounds: int) -> Iterator[Result]:
    """Time parsing an id's text, and finding the fields of the most likely reading."""
    return _rows(space, rounds, makers.INSPECT)


def _few(name: str, started: Started, rounds: int, note: str) -> Iterator[Result]:
    """Yield rows for the mean of a burst, and for its first id."""
    with started as (found, sides, missing):
        yield from missing
        busy = [partial(_while_busy, side) for side in sides]
        measured = interleaved(rounds, *sides, *busy)
    for cores, turns in (("", measured[: len(sides)]), (", busy cores", measured[len(sides) :])):
        for figure, index in (("mean", 0), ("first id", 1)):
            mine, *others = ([ns / 1e3 for ns in _figures(turn, index)] for turn in turns)
            for maker, theirs in zip(found[1:], others, strict=True):
                goal = None if index else maker.at_least
                row = f"{name}{cores}, {figure}"
                yield compared(row, maker.name, "us", mine, theirs, goal, note)


def _rows(space: Workspace, rounds: int, comparisons: Sequence[Comparison]) -> Iterator[Result]:
    """Yield a row for each maker that one of ours is compared with, or for ours alone."""
    with _sides(space) as sides_of:
        for comparison in comparisons:
            name, note, wanted = comparison.mine.name, comparison.note, sides_of(comparison)
            with _started(wanted, comparison.pace) as (found, sides, missing):
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
def _started(
    wanted: list[Wanted], pace: Pace | None, processes: int = 1
) -> Iterator[tuple[list[Maker], list[Side[Bursts]], list[Missing]]]:
    """Start processes for each side.

    Raises Missing when the first side is.
    """
    found: list[Maker] = []
    sides: list[Side[Bursts]] = []
    missing: list[Missing] = []
    with contextlib.ExitStack() as stack:
        for checkout, maker, environment in wanted:
            timing = (_timing(checkout, maker, pace, environment) for _ in range(processes))
            try:
                started = [stack.enter_context(process) for process in timing]
            except Missing as error:
                if not found:
                    raise
                missing.append(Missing(f"{found[0].name} / {maker.name}: {error}"))
                continue
            found.append(maker)
            sides.append(partial(_turn, maker, started, pace.rest if pace else 0))
        yield found, sides, missing


@contextlib.contextmanager
def _timing(
    checkout: Checkout, maker: Maker, pace: Pace | None, environment: dict[str, str]
) -> Iterator[subprocess.Popen[str]]:
    """Start a process that times a maker. Raises Missing when its library is not installed."""
    wanted = {**asdict(maker), "pace": asdict(pace) if pace else None}
    command = checkout.command(TIMING)
    with subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            _tell(process, json.dumps(wanted))
            answer = _answer(process, maker)
            if answer != "ready":
                module = answer.removeprefix("missing ")
                name = DISTRIBUTIONS.get(module.partition(".")[0], module)
                raise Missing(f"{name} is not installed (pip install -e '.[bench]')")
            yield process
            process.communicate(timeout=30)
            if process.returncode:
                raise RuntimeError(f"{maker.name} made an id that did not come from a daemon")
        finally:
            process.kill()


def _turn(maker: Maker, processes: list[subprocess.Popen[str]], rest: float) -> Bursts:
    """Return the bursts of a turn of all *processes*, which are spread over the *rest* between."""
    for index, process in enumerate(processes):
        _tell(process, str(rest * index / len(processes)))
    return [burst for process in processes for burst in json.loads(_answer(process, maker))]


def _while_busy(side: Side[Bursts]) -> Bursts:
    """Return the bursts of a turn during which as many loops run as there are cores."""
    with contextlib.ExitStack() as stack:
        for _ in os.sched_getaffinity(0):
            loop = stack.enter_context(subprocess.Popen(THIS.command("-S", "-c", BUSY)))
            stack.callback(loop.kill)
        return side()


def _tell(process: subprocess.Popen[str], line: str) -> None:
    assert process.stdin is not None
    with contextlib.suppress(BrokenPipeError):
        process.stdin.write(line + "\n")
        process.stdin.flush()


def _answer(process: subprocess.Popen[str], maker: Maker) -> str:
    assert process.stdout is not None
    answer = process.stdout.readline().strip()
    if not answer:
        raise RuntimeError(f"{maker.name} cannot be timed; standard error has the reason")
    return answer


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
