"""How long one id takes: ours, and what other libraries for Python need.

Each maker has a program of its own, ``timing.py``; they take turns.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from importlib import metadata
from itertools import chain, product
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
)
from tests.benchmarks.workspace import THIS, Checkout, Workspace
from uuidd_client import implementation

TIMING = Path(__file__).with_name("timing.py")
TURN_SECONDS = 0.05

UNIT = "ns an id"

Bursts = list[float]
"""Nanoseconds for an id, of each burst."""

Wanted = tuple[Checkout, Maker, dict[str, str]]
"""A side: a maker, the checkout whose interpreter runs it, and its environment."""

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
    """Compare programs that make a few ids, and rest until they make the next few."""
    with contextlib.nullcontext() if space.other else util_linux(space):
        # Each turn waits for its bursts, which takes long.
        yield from rows(makers.FEW, space, (rounds + 1) // 2)


def rows(comparisons: Sequence[Comparison], space: Workspace, rounds: int) -> Iterator[Result]:
    """Yield a row for each maker that one of ours is compared with, or for ours alone."""
    worker = f"--worker={WORKER}"
    with contextlib.ExitStack() as stack:
        mine = stack.enter_context(ours(space, worker)).environment
        before = mine
        if space.other:
            before = stack.enter_context(ours(space, worker, checkout=space.other)).environment
        for comparison in comparisons:
            yield from _compared(comparison, space, rounds, mine, before)


def _compared(
    comparison: Comparison,
    space: Workspace,
    rounds: int,
    mine: dict[str, str],
    before: dict[str, str],
) -> Iterator[Result]:
    """Yield the rows of one comparison; *mine* and *before* are environments.

    Ours stands beside each other maker. Beside one with a goal, ours without its C extension does
    so too.
    """
    own, others = [comparison.mine], comparison.others
    if space.other:
        others = (replace(comparison.mine, name=OTHER_CHECKOUT),)
    elif implementation == "c" and any(maker.at_least for maker in others):
        own.append(makers.in_python(comparison.mine))
    wanted = [(THIS, maker, mine) for maker in own]
    wanted += [(space.other or THIS, maker, before) for maker in others]
    with started(wanted, comparison.pace) as (sides, missing):
        yield from missing
        turns = interleaved(rounds, *sides.values())
    taken = {maker: [*chain(*measured)] for maker, measured in zip(sides, turns, strict=True)}
    for one, other in product(own, filter(taken.get, others)):
        if one is comparison.mine or other.at_least:
            goal = other.at_least if one is comparison.mine else None
            yield compared(one.name, other.name, UNIT, taken[one], taken[other], goal)
    if not others:
        yield alone(own[0].name, UNIT, taken[own[0]], comparison.at_most)


@contextlib.contextmanager
def started(
    wanted: list[Wanted],
    pace: Pace | None = None,
    *,
    processes: int = 1,
    seconds: float = TURN_SECONDS,
) -> Iterator[tuple[dict[Maker, Side[Bursts]], list[Missing]]]:
    """Start *processes* for each side. Without a pace, a turn lasts for *seconds*.

    Yields what makes a turn of each maker whose library is installed, and what is missing.
    """
    sides: dict[Maker, Side[Bursts]] = {}
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
                timed = _timed(checkout, maker.name, what, environment)
                sides[maker] = stack.enter_context(timed)
            except Missing as error:
                missing.append(Missing(f"{wanted[0][1].name} / {maker.name}: {error}"))
        yield sides, missing


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


def versions() -> dict[str, str]:
    """Return the version of each library that is installed."""
    found = {}
    for name in DISTRIBUTIONS.values():
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found
