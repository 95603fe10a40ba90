"""A process that times one statement, whenever it is told to. It needs nothing but Python.

The first line on standard input is JSON: what ``makers.Maker`` and ``makers.Pace`` have. The answer
is "ready", or "missing" and a module. Each further line is a delay in seconds before a turn. The
answer is JSON: nanoseconds for one id, for each burst the mean, and the time of the first call.
"""

from __future__ import annotations

import json
import signal
import sys
import time
import timeit
from collections.abc import Callable
from typing import Any
from uuid import SafeUUID

PATIENCE_SECONDS = 60
TURN_SECONDS = 0.05


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
    # The statement's names are at hand. The garbage collector runs, as it does in a program.
    timer = timeit.Timer(wanted["statement"], "import gc; gc.enable()", globals=names)
    # The first call imports or connects.
    timer.timeit(1)
    _must_be_safe(wanted["safe"], names)
    turn = _in_bursts(timer, **wanted["pace"]) if wanted["pace"] else _without_rest(timer)
    _tell("ready")
    for line in sys.stdin:
        signal.alarm(PATIENCE_SECONDS)
        time.sleep(float(line))
        _tell(json.dumps([[s * 1e9 / wanted["ids"] for s in burst] for burst in turn()]))
    _must_be_safe(wanted["safe"], names)
    return 0


Turn = Callable[[], list[tuple[float, float]]]
"""Returns for each burst the seconds of a call: the mean, and the first."""


def _without_rest(timer: timeit.Timer) -> Turn:
    """Return what makes a turn of about TURN_SECONDS: one burst, whose first call is not timed."""
    number = 1
    # The shortest of three: what else runs must not make all turns short.
    while (seconds := min(timer.repeat(3, number))) < TURN_SECONDS / 10:
        number *= 2
    number = max(1, int(number * TURN_SECONDS / seconds))
    return lambda: [(mean := timer.timeit(number) / number, mean)]


def _in_bursts(timer: timeit.Timer, *, calls: int, bursts: int, rest: float) -> Turn:
    """Return what makes *bursts*, and rests before each."""

    def burst() -> tuple[float, float]:
        time.sleep(rest)
        first = timer.timeit(1)
        return (first + timer.timeit(calls - 1)) / calls, first

    def run() -> list[tuple[float, float]]:
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
