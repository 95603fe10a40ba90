"""How long one id takes: ours from the daemon's blocks, and what other libraries for Python need.

Each maker has a process of its own, ``timing.py``; they take turns.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
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
)
from tests.benchmarks.workspace import THIS, Checkout, Workspace

TIMING = Path(__file__).with_name("timing.py")

DISTRIBUTIONS = {
    "uuid_utils": "uuid_utils",
    "fastuuid": "fastuuid",
    "uuid6": "uuid6",
    "c_uuid_v7": "c-uuid-v7",
    "ulid": "python-ulid",
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
    """Compare programs that make a few ids, and rest until they make the next few."""
    with contextlib.nullcontext() if space.other else util_linux(space):
        yield from _rows(space, rounds, makers.NOW_AND_THEN)


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


def _rows(space: Workspace, rounds: int, comparisons: Sequence[Comparison]) -> Iterator[Result]:
    worker = f"--worker={WORKER}"
    with contextlib.ExitStack() as stack:
        mine = stack.enter_context(ours(space, worker)).environment
        if space.other is None:
            for comparison in comparisons:
                others = [(THIS, maker, mine) for maker in comparison.others]
                yield from _compared(comparison, rounds, [(THIS, comparison.mine, mine), *others])
            return
        other = stack.enter_context(ours(space, worker, checkout=space.other)).environment
        for comparison in comparisons:
            before = replace(comparison.mine, name=OTHER_CHECKOUT)
            sides = [(THIS, comparison.mine, mine), (space.other, before, other)]
            yield from _compared(comparison, rounds, sides)


def _compared(
    comparison: Comparison, rounds: int, sides: list[tuple[Checkout, Maker, dict[str, str]]]
) -> Iterator[Result]:
    """Yield a row for each maker after the first, or for that alone, and what is missing."""
    name, found = comparison.mine.name, list[tuple[Maker, Side[float]]]()
    with contextlib.ExitStack() as processes:
        for checkout, maker, environment in sides:
            try:
                timed = _timed(checkout, maker, comparison.pace, environment)
                found.append((maker, processes.enter_context(timed)))
            except Missing as missing:
                if not found:
                    raise
                yield Missing(f"{name} / {maker.name}: {missing}")
        if comparison.others and not found[1:]:
            return
        mine, *others = interleaved(rounds, *(side for _, side in found))
    for (maker, _), theirs in zip(found[1:], others, strict=True):
        yield compared(
            name, maker.name, "ns an id", mine, theirs, maker.at_least, note=comparison.note
        )
    if not comparison.others and len(sides) == 1:
        yield alone(name, "ns an id", mine, comparison.at_most, note=comparison.note)


@contextlib.contextmanager
def _timed(
    checkout: Checkout, maker: Maker, pace: Pace | None, environment: dict[str, str]
) -> Iterator[Side[float]]:
    """Start the process that times a maker. Raises Missing when its library is not installed."""
    wanted = {**asdict(maker), "pace": asdict(pace) if pace else None}
    command = checkout.command(TIMING)
    with subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        try:
            answer = _told(process, json.dumps(wanted), maker)
            if answer != "ready":
                module = answer.removeprefix("missing ")
                name = DISTRIBUTIONS.get(module.partition(".")[0], module)
                raise Missing(f"{name} is not installed (pip install -e '.[bench]')")
            yield lambda: float(_told(process, "", maker))
            process.stdin.close()
            if process.wait(timeout=30):
                raise RuntimeError(f"{maker.name} made an id that did not come from a daemon")
        finally:
            process.kill()


def _told(process: subprocess.Popen[str], line: str, maker: Maker) -> str:
    """Send a line to the process, and return its answer."""
    assert process.stdin is not None
    assert process.stdout is not None
    with contextlib.suppress(BrokenPipeError):
        process.stdin.write(line + "\n")
        process.stdin.flush()
    answer = process.stdout.readline().strip()
    if not answer:
        raise RuntimeError(f"{maker.name} cannot be timed; standard error has the reason")
    return answer


def versions() -> dict[str, str]:
    """Return the version of each library that is installed."""
    found = {}
    for name in DISTRIBUTIONS.values():
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found
