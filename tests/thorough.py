"""Run the tests that take long: all of them, or a sample that differs from commit to commit.

A line is printed for each part that has ended, and all of its output if it failed. The exit status
is 1 if a part failed. The parts of a sample begin in an order drawn from the commit, and none
begins when most of the time is used up.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
"""Of the checkout."""

JOBS = 2

SECONDS = 270
"""After so many seconds no part of a sample begins."""

MORE = 0.5
"""For so much of that time parts that have begun may go on. A part cut off then has not failed."""

PART_SECONDS = 3600.0
"""Seconds after which a part of the whole hangs, and has failed."""

MUTATIONS = 15
"""Mutations of a part, in a sample."""

FUZZING_SECONDS = 30
"""After so many seconds a part that fuzzes begins no other run."""

WORLDS = (
    "--ticks 3 --ring 2 --restarts 1 --failures 0",
    "--ticks 2 --ring 3 --restarts 1",
    "--ticks 2 --ring 2 --restarts 2 --failures 0",
    "--ticks 2 --ring 2 --restarts 1 --failures 0 --nodes random given",
    "--ticks 2 --ring 2 --restarts 1 --volatile --failures 0",
    "--ticks 3 --no-utc --steady --restarts 1",
    "--ticks 1 --ring 2 --steady --restarts 1 --failures 0",
)
"""Small hosts of which every state is visited, larger than those of the ordinary run."""

LEASED_WORLDS = (
    "--ticks 3 --holders 1 --restarts 1",
    "--ticks 3 --restarts 0",
    "--ticks 2 --restarts 2",
    "--ticks 2 --lanes 2 --restarts 1",
    "--ticks 2 --ring 2 --restarts 0",
    "--ticks 2 --ring 2 --holders 1 --restarts 1 --failures 1",
)
"""The same with leases."""


class Part(NamedTuple):
    """A command that ends with 0 when all is well."""

    name: str
    command: list[str]


def parts(seed: int, *, whole: bool) -> list[list[Part]]:
    """Return the parts, those of one sort together; all that is random is drawn from *seed*.

    A sample has parts of some mutations each; the *whole* has one part with all of them.
    """
    # A part ends at its first failure. So one that is cut off has none but that of its end.
    pytest = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"]
    files = sorted(
        path.relative_to(ROOT)
        for path in (ROOT / "tests").rglob("test_*.py")
        if "mark.thorough" in path.read_text()
    )
    profile = ["--hypothesis-profile=thorough", f"--hypothesis-seed={seed}"]
    marathons = [Part(str(file), [*pytest, "-m", "thorough", str(file)]) for file in files]
    examples = [
        Part(
            f"more examples: {folder}",
            [*pytest, "-m", "quick", *profile, folder],
        )
        for folder in ("tests/core", "tests/client", "tests/daemon", "tests/fleet")
    ]
    in_python = [
        Part(
            "ids made in Python: tests/system",
            ["env", "UUIDD_EXTENSION=off", *pytest, "tests/system"],
        )
    ]
    draws = [
        Part(
            f"ids in C and in Python, seed {seed}", _module("tests.client.draws", f"--seed={seed}")
        )
    ]
    sanitizers = [Part("the extension with sanitizers", _module("tests.sanitizers"))]
    worlds = [
        Part(f"small world: {bounds}", _module("tests.core.small_world", *bounds.split()))
        for bounds in WORLDS
    ] + [
        Part(
            f"small world with leases: {bounds}",
            _module("tests.core.leased_world", *bounds.split()),
        )
        for bounds in LEASED_WORLDS
    ]
    fuzzing = [
        Part(
            f"fuzzing, seed {seed + number}",
            _module("tests.fuzzing", f"--seconds={FUZZING_SECONDS}", f"--seed={seed + number}"),
        )
        # Each run of a part has the next seed.
        for number in (0, 1000, 2000)
    ]
    mutations = [Part("all mutations", _module("tests.mutations"))]
    if not whole:
        mutations = [
            Part(
                f"{MUTATIONS} mutations, seed {seed + number}",
                _module("tests.mutations", f"--sample={MUTATIONS}", f"--seed={seed + number}"),
            )
            for number in range(5)
        ]
    return [marathons, mutations, examples, fuzzing, worlds, in_python, sanitizers, draws]


def _module(name: str, *arguments: str) -> list[str]:
    return [sys.executable, "-m", name, *arguments]


def in_drawn_order(sorts: list[list[Part]], seed: int) -> Iterator[Part]:
    """Yield all parts, one of each sort in turn, so that a sample has some of each.

    Which sort comes first is drawn too: in a small sample only a few parts come to their end.
    """
    dice = random.Random(seed)
    dice.shuffle(sorts)
    for sort in sorts:
        dice.shuffle(sort)
    for turn in zip_longest(*sorts):
        yield from (part for part in turn if part is not None)


def main() -> int:
    """Run the parts; 0 if all that ran are well."""
    parser = argparse.ArgumentParser(prog="python -m tests.thorough", description=__doc__)
    parser.add_argument("--all", action="store_true", help="run every part, however long it takes")
    parser.add_argument(
        "--seconds",
        type=int,
        default=SECONDS,
        metavar="N",
        help="begin no part of a sample after N seconds; default: %(default)s",
    )
    given = parser.parse_args()
    seed = _seed_of_commit()
    order = list(in_drawn_order(parts(seed, whole=given.all), seed))
    _say(f"seed {seed}; {'all of' if given.all else 'a sample of'} {len(order)} parts")
    outcomes = _run_all(order, None if given.all else given.seconds)
    _say(
        f"of {len(order)} parts {outcomes.count(True)} are ok, {outcomes.count(False)} failed,"
        f" {outcomes.count(None)} did not run to their end"
    )
    return 1 if False in outcomes else 0


def _run_all(order: list[Part], seconds: int | None) -> list[bool | None]:
    """Return of each part whether it is well; None if it was not run, or not to its end.

    After *seconds* no part of a sample begins.
    """
    begun = time.monotonic()

    def run(part: Part) -> bool | None:
        if seconds is None:
            return _is_well(part, PART_SECONDS, cut=False)
        took = time.monotonic() - begun
        if took > seconds:
            return None
        return _is_well(part, seconds * (1 + MORE) - took, cut=True)

    with ThreadPoolExecutor(JOBS) as pool:
        return list(pool.map(run, order))


def _is_well(part: Part, patience: float, *, cut: bool) -> bool | None:
    """Run a part for *patience* seconds at most; one that takes longer is *cut* off, or hangs."""
    begun = time.monotonic()
    process = subprocess.Popen(
        part.command,
        cwd=ROOT,
        env={**os.environ, "CI": "true"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    ok: bool | None
    try:
        output, _ = process.communicate(timeout=patience)
        ok = process.returncode == 0
    except subprocess.TimeoutExpired:
        # As Ctrl-C does, so that daemons, mounts and folders are removed.
        os.killpg(process.pid, signal.SIGINT)
        output, _ = process.communicate()
        ok = None if cut else False
    verdict = {True: "ok", False: "FAILED", None: "cut"}[ok]
    last = output.strip().rpartition("\n")[2]
    _say(f"{verdict:6}  {time.monotonic() - begun:6.1f} s  {part.name}: {last}")
    if ok is False:
        _say(f"{' '.join(part.command)}\n{output}")
    return ok


def _seed_of_commit() -> int:
    found = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return int(found.stdout[:8] or "0", 16)


_saying = threading.Lock()


def _say(text: str) -> None:
    with _saying:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
