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
from itertools import product
from pathlib import Path
from typing import Any

from tests.benchmarks import makers
from tests.benchmarks.daemons import no_daemon, ours, util_linux
from tests.benchmarks.makers import WORKER, Comparison, Maker, Pace
from tests.benchmarks.rows import (
    OTHER_CHECKOUT,
    Missing,
    Result,
    Row,
    Side,
    alone,
    compared,
    interleaved,
    median,
)
from tests.benchmarks.workspace import THIS, Checkout, Workspace
from uuidd_client import implementation

TIMING = Path(__file__).with_name("timing.py")
TURN_SECONDS = 0.05

Bursts = list[tuple[float, float]]
"""Nanoseconds for an id, for each burst: the mean, and those of the first."""

Wanted = tuple[Checkout, Maker, dict[str, str]]
"""A side: a maker, the checkout whose interpreter runs it, and its environment."""

Sides = tuple[list[Wanted], list[Wanted]]
"""Ours, once for each implementation that is compared, and the others."""

Running = tuple[list[Maker], list[Side[Bursts]], list[Missing]]
"""The makers whose programs run, what makes a turn of each, and what is missing."""

# It ends also when nobody ends it.
BUSY = "import signal; signal.alarm(60)\nwhile True: pass"

DISTRIBUTIONS = {
    "uuid_utils": "uuid_utils",
    "fastuuid": "fastuuid",
    "uuid6": "uuid6",
    "c_uuid_v7": "c-uuid-v7",
    "fastuuid7": "fastuuid7",
    "fastuuidv7": "fastuuidv7",
    "lastuuid": "lastuuid",
    "uuid7_rs": "uuid7-rs",
    "ulid": "python-ulid",
    "ulid_transform": "ulid-transform",
    "pyulid": "ulid-python",
    "ksuid": "svix-ksuid",
    "cyksuid": "cyksuid",
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
                beside = f", {processes - 1} others" if processes > 1 else ""
                mine, others = sides_of(comparison)
                if processes > 1:
                    del mine[1:]
                with started([*mine, *others], pace, processes=processes) as running:
                    yield from _few(len(mine), beside, running, rounds, note)


def _few(count: int, beside: str, running: Running, rounds: int, note: str) -> Iterator[Result]:
    """Yield rows for the mean of a burst, and for its first id; the first *count* are ours."""
    found, sides, missing = running
    yield from missing
    measured = interleaved(rounds, *sides, *(partial(_while_busy, side) for side in sides))
    for cores, turns in (("", measured[: len(sides)]), (", busy cores", measured[len(sides) :])):
        for figure, index in (("mean", 0), ("first id", 1)):
            taken = [[ns / 1e3 for ns in _figures(turn, index)] for turn in turns]
            name = f"{{}}{beside}{cores}, {figure}"
            yield from _beside(count, found, taken, "us", note, name, goals=not index)


def rows(comparisons: Sequence[Comparison], space: Workspace, rounds: int) -> Iterator[Result]:
    """Yield a row for each maker that one of ours is compared with, or for ours alone."""
    unit = "ns an id"
    with _sides(space) as sides_of:
        for comparison in comparisons:
            mine, others = sides_of(comparison)
            with started([*mine, *others], comparison.pace) as (found, sides, missing):
                yield from missing
                if others and len(found) == len(mine):
                    continue
                taken = [_figures(turns, 0) for turns in interleaved(rounds, *sides)]
            yield from _beside(len(mine), found, taken, unit, comparison.note)
            if not others:
                yield alone(found[0].name, unit, taken[0], comparison.at_most, comparison.note)


def _beside(
    count: int,
    found: list[Maker],
    taken: list[list[float]],
    unit: str,
    note: str,
    name: str = "{}",
    *,
    goals: bool = True,
) -> Iterator[Row]:
    """Yield rows for ours, which are the first *count*, beside the others.

    The first of ours has one beside each of them, and another implementation where there is a goal.
    """
    for mine, other in product(range(count), range(count, len(found))):
        maker = found[other]
        if mine and not (goals and maker.has_goal):
            continue
        faster = maker.in_c is not None and implementation == "c" and not mine
        goal = maker.in_c if faster else maker.at_least
        yield compared(
            name.format(found[mine].name),
            maker.name,
            unit,
            taken[mine],
            taken[other],
            goal if goals else None,
            note,
        )


@contextlib.contextmanager
def _sides(space: Workspace) -> Iterator[Callable[[Comparison], Sides]]:
    """Run daemons, and yield what returns the sides of a comparison."""
    worker = f"--worker={WORKER}"
    with contextlib.ExitStack() as stack:
        environment = stack.enter_context(ours(space, worker)).environment
        if space.other is None:
            yield lambda comparison: (
                [(THIS, maker, environment) for maker in _each_implementation(comparison)],
                [(THIS, maker, environment) for maker in comparison.others],
            )
            return
        before = stack.enter_context(ours(space, worker, checkout=space.other)).environment
        other = space.other
        yield lambda comparison: (
            [(THIS, comparison.mine, environment)],
            [(other, replace(comparison.mine, name=OTHER_CHECKOUT), before)],
        )


def _each_implementation(comparison: Comparison) -> list[Maker]:
    """Return our maker and, if it is in C and there is a goal, the same in Python."""
    both = implementation == "c" and any(maker.has_goal for maker in comparison.others)
    return [comparison.mine, *([makers.in_python(comparison.mine)] if both else [])]


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
