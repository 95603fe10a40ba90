"""A program that times one statement, whenever it is told to, in one process or in several at once.

It needs nothing but Python. The first line on standard input is JSON: what ``makers.Maker`` and
``makers.Pace`` have, how many processes, and for how many seconds a turn without a pace lasts. The
answer is "ready", or "missing" and a module. Each further line begins a turn. Its answer is JSON:
nanoseconds for one id, for each burst of each process.
"""

from __future__ import annotations

import json
import multiprocessing
import signal
import sys
import time
import timeit
from collections.abc import Callable
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any
from uuid import SafeUUID

PATIENCE_SECONDS = 60

LEAD_SECONDS = 0.001
"""For each process, the time from the order to the moment at which all begin."""

BATCHES = 50
"""How often the time is looked at in a turn without a pace, at the most."""


def main() -> int:
    """Answer until standard input ends; 1 when an id did not come from a daemon that must."""
    signal.alarm(PATIENCE_SECONDS)
    wanted = json.loads(sys.stdin.readline())
    names: dict[str, Any] = {}
    try:
        exec(wanted["setup"], names)  # noqa: S102  (what to time comes from this folder)
    except ImportError as error:
        _tell(f"missing {error.name or error}")
        return 0
    # No id is made before the fork: libuuid would use a block twice.
    fork = multiprocessing.get_context("fork")
    ends = [fork.Pipe() for _ in range(wanted["processes"])]
    children = [
        (here, fork.Process(target=_serve, args=(there, wanted, names), daemon=True))
        for here, there in ends
    ]
    for _, process in children:
        process.start()
    for child in children:
        _received(*child)
    _tell("ready")
    for _ in sys.stdin:
        signal.alarm(PATIENCE_SECONDS)
        begin = time.perf_counter() + LEAD_SECONDS * len(children)
        for here, _ in children:
            here.send(begin)
        _tell(json.dumps([burst for child in children for burst in _received(*child)]))
    for here, process in children:
        here.send(None)
        process.join()
    return int(any(process.exitcode for _, process in children))


def _received(end: Connection, process: BaseProcess) -> Any:
    """Return what a process sends; exit when it has ended, for a reason that it has told."""
    wait([end, process.sentinel])
    return end.recv() if end.poll() else sys.exit(1)


def _serve(end: Connection, wanted: dict[str, Any], names: dict[str, Any]) -> None:
    """Make a turn at each moment that comes in, until None does."""
    signal.alarm(PATIENCE_SECONDS)
    # The statement's names are at hand. The garbage collector runs, as it does in a program.
    timer = timeit.Timer(wanted["statement"], "import gc; gc.enable()", globals=names)
    # The first call imports or connects.
    timer.timeit(1)
    _must_be_safe(wanted["safe"], names)
    pace, seconds = wanted["pace"], wanted["seconds"]
    turn = _in_bursts(timer, **pace) if pace else _without_rest(timer, seconds)
    end.send("ready")
    while (begin := end.recv()) is not None:
        signal.alarm(PATIENCE_SECONDS)
        time.sleep(max(0, begin - time.perf_counter()))
        end.send([seconds * 1e9 / wanted["ids"] for seconds in turn()])
    _must_be_safe(wanted["safe"], names)


Turn = Callable[[], list[float]]
"""Returns for each burst the seconds of a call."""


def _without_rest(timer: timeit.Timer, seconds: float) -> Turn:
    """Return what makes a turn of so many *seconds*: one burst, whose first call is not timed."""
    number = 1
    # The shortest of three: what else runs must not make all batches short.
    while min(timer.repeat(3, number)) < seconds / BATCHES:
        number *= 2

    def run() -> list[float]:
        end, calls, took = time.perf_counter() + seconds, 0, 0.0
        while time.perf_counter() < end:
            took += timer.timeit(number)
            calls += number
        return [took / calls]

    return run


def _in_bursts(timer: timeit.Timer, *, calls: int, bursts: int, rest: float) -> Turn:
    """Return what makes *bursts*, and rests before each."""

    def burst() -> float:
        time.sleep(rest)
        return timer.timeit(calls) / calls

    def run() -> list[float]:
        # The turns of the other sides came before it: a rest of another length.
        timer.timeit(calls)
        return [burst() for _ in range(bursts)]

    return run


def _must_be_safe(expression: str, names: dict[str, Any]) -> None:
    """Exit when the id that *expression* makes did not come from a daemon."""
    # Then it is not what the row's name says that is compared.
    if expression and eval(expression, names).is_safe is not SafeUUID.safe:  # noqa: S307  (as above)
        sys.exit(f"{expression} made an id that did not come from a daemon")


def _tell(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
