"""A program whose processes draw v1 UUIDs side by side, as fast as they can.

Run as ``drawing.py stdlib|ours PROCESSES SECONDS CLOCK``; prints ids a second in all, the node of
the last id, and the share of the time by which CLOCK went on: with a daemon's CPU clock, its share
of a core. The first and the last id of each process must be safe. It draws none before it forks,
because libuuid would then use a block twice.
"""

from __future__ import annotations

import os
import signal
import sys
import time
import uuid
from collections.abc import Callable
from itertools import repeat
from uuid import UUID, SafeUUID

BATCH = 500
PATIENCE_SECONDS = 60


def main() -> int:
    """Fork, start all at once, and add up; 1 when an id was not safe."""
    name, processes, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    clocks = time.CLOCK_MONOTONIC, int(sys.argv[4])
    signal.alarm(PATIENCE_SECONDS)
    draw = _maker(name)
    go_read, go_write = os.pipe()
    told_read, told_write = os.pipe()
    children = []
    for _ in range(processes):
        child = os.fork()
        if not child:
            os.close(go_write)
            _draw(draw, seconds, go_read, told_write)
        children.append(child)
    os.close(told_write)
    # Each sends one byte when it is ready, and one line when it is done.
    for _ in range(processes):
        os.read(told_read, 1)
    begun = [time.clock_gettime(clock) for clock in clocks]
    os.close(go_write)
    with open(told_read) as told:
        lines = told.read().split("\n")[:-1]
    took, used = (time.clock_gettime(clock) - at for clock, at in zip(clocks, begun, strict=True))
    failed = [child for child in children if os.waitpid(child, 0)[1]]
    if failed or len(lines) != processes:
        sys.stderr.write(f"{len(failed)} of {processes} processes failed, or drew what is unsafe\n")
        return 1
    per_second = sum(float(line.split()[0]) for line in lines)
    sys.stdout.write(f"{per_second} {lines[-1].split()[1]} {used / took}\n")
    return 0


def _maker(name: str) -> Callable[[], UUID]:
    """Return what draws. Only ours imports our client, so that the other does not pay for it."""
    if name == "stdlib":
        return uuid.uuid1
    import uuidd_client

    return uuidd_client.uuid1


def _draw(draw: Callable[[], UUID], seconds: float, go: int, told: int) -> None:
    """Draw in a child, and end it."""
    signal.alarm(PATIENCE_SECONDS)
    first = draw()
    os.write(told, b".")
    os.read(go, 1)
    begin = time.perf_counter()
    end, made = begin + seconds, 0
    while (now := time.perf_counter()) < end:
        for _ in repeat(None, BATCH):
            draw()
        made += BATCH
    last = draw()
    if not first.is_safe is last.is_safe is SafeUUID.safe:
        os._exit(1)
    os.write(told, f"{made / (now - begin)} {last.node:012x}\n".encode())
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main())
