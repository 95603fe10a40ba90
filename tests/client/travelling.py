"""A program that draws while its clock is frozen, in another year, and after that.

Run as ``python -m tests.client.travelling TOOL SOCKET``, with freezegun, time-machine or "ticking"
(time-machine again, whose clock goes on) as the tool; prints JSON.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from typing import Any

import freezegun
import time_machine

from tests.judge import v7_tick
from uuidd.core.ids import kinds
from uuidd_client import Client
from uuidd_client.system import SYSTEM_CLOCK

KINDS: Any = [kind for kind in kinds.KINDS if kind != "snowflake"]
EACH = 100
BACK_THEN = datetime(2015, 1, 14, tzinfo=UTC)
TO_COME = datetime(2040, 1, 14, tzinfo=UTC)

TOOLS: dict[str, Callable[[datetime], AbstractContextManager[Any]]] = {
    "freezegun": lambda time: freezegun.freeze_time(time),
    "time-machine": lambda time: time_machine.travel(time, tick=False),
    "ticking": lambda time: time_machine.travel(time, tick=True),
}


def main(tool: str, socket: str) -> None:
    client = Client(socket, timeout=10)
    longest = 0.0
    found: dict[str, list[Any]] = {kind: [] for kind in KINDS}

    def draw() -> None:
        nonlocal longest
        for kind in KINDS:
            ids = client.iter(kind)
            for _ in range(EACH):
                begun = SYSTEM_CLOCK.elapsed()
                found[kind].append(next(ids))
                longest = max(longest, SYSTEM_CLOCK.elapsed() - begun)
            found[kind] += client.make(kind, EACH)

    draw()
    lags = []
    for then in (BACK_THEN, TO_COME):
        with TOOLS[tool](then):
            draw()
            # Twice, for a clock that stands still is known the second time.
            draw()
            lags.append(SYSTEM_CLOCK.utc_tick() - v7_tick(client.uuid7().int))
        draw()
        lags.append(SYSTEM_CLOCK.utc_tick() - v7_tick(client.uuid7().int))
    told = {
        "again": sum(len(ids) - len(set(ids)) for ids in found.values()),
        "drawn": sum(map(len, found.values())),
        "longest": longest,
        "lags": lags,
    }
    sys.stdout.write(json.dumps(told))


if __name__ == "__main__":
    # Of the missing daemon.
    warnings.simplefilter("ignore")
    main(sys.argv[1], sys.argv[2])
