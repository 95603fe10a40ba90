"""A program that draws ids through our client, and notes when it asked for each and had it.

The words of ``main`` are KIND SOCKET MAX_AGE ROUNDS MANY FILE; it waits for a line on standard
input. Each id is left in FILE as 16 bytes, and after them, in nanoseconds, UTC and the monotonic
clock before the draw, the monotonic clock and UTC after it.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from struct import Struct
from typing import Any

from uuidd_client import Client

ENTRY = Struct("=16s4q")

FEW = 12
"""Ids of a round that come after MANY at once, by which the next block is large: it gets old."""

PAUSE = 0.015
"""Seconds between the few: together longer than the default max_age."""


def main(words: list[str]) -> None:
    """Draw in rounds, once the line has come."""
    kind: Any
    kind, socket, max_age, rounds, many, path = words
    client = Client(socket, fallback=False, max_age=float(max_age), timeout=20)
    draw_one = client.factory(kind, "bytes")
    left = bytearray()

    def draw() -> None:
        asked, asked_ns = time.time_ns(), time.monotonic_ns()
        id = draw_one()
        had_ns, had = time.monotonic_ns(), time.time_ns()
        left.extend(ENTRY.pack(id, asked, asked_ns, had_ns, had))

    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    for _ in range(int(rounds)):
        for _ in range(int(many)):
            draw()
        for _ in range(FEW):
            time.sleep(PAUSE)
            draw()
    Path(path).write_bytes(left)
