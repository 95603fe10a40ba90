"""A process that times one statement, whenever it is told to. It needs nothing but Python.

The first line on standard input is JSON: what ``makers.Maker`` and ``makers.Pace`` have. The answer
is "ready", or "missing" and a module. Each further line is answered with nanoseconds for one id.
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
    for _ in sys.stdin:
        signal.alarm(PATIENCE_SECONDS)
        _tell(repr(turn() * 1e9 / wanted["ids"]))
    _must_be_safe(wanted["safe"], names)
    return 0


def _without_rest(timer: timeit.Timer) -> Callable[[], float]:
    """Return what takes the mean seconds of a call, for a turn of about TURN_SECONDS."""
    number = 1
    # The shortest of three: what else runs must not make all turns short.
    while (seconds := min(timer.repeat(3, number))) < TURN_SECONDS / 10:
        number *= 2
    number = max(1, int(number * TURN_SECONDS / seconds))
    return lambda: timer.timeit(number) / number


def _in_bursts(timer: timeit.Timer, *, calls: int, bursts: int, rest: float) -> Callable[[], float]:
    """Return what takes the mean seconds of a call, with a rest before every *calls* of them."""

    def run() -> float:
        seconds = 0.0
        for _ in range(bursts):
            time.sleep(rest)
            seconds += timer.timeit(calls)
        return seconds / (bursts * calls)

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
