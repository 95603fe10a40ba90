"""A program that passes a baton to another and back: the ids that it has drawn last.

The words of ``main`` are SOCKET ROUNDS FIRST. The baton comes on descriptor 3, and goes on 4.
"""

from __future__ import annotations

import os
import sys
from uuid import UUID

from uuidd_client import Client

COMES, GOES = 3, 4


def main(words: list[str]) -> None:
    """Draw a v1 and a v7 each time that the baton comes; print how often both were later."""
    path, rounds, first = words
    client = Client(path, fallback=False, max_age=0, timeout=20)
    v1, v7 = client.uuid1(), client.uuid7()
    # The second request is one for a lease.
    for _ in range(5):
        v1, v7 = client.uuid1(), client.uuid7()
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    if first == "True":
        os.write(GOES, v1.bytes + v7.bytes)
    # Each line is a go for so many rounds.
    for _ in sys.stdin:
        rose = 0
        for _ in range(int(rounds)):
            baton = os.read(COMES, 32)
            v1, v7 = client.uuid1(), client.uuid7()
            rose += v1.time > UUID(bytes=baton[:16]).time and v7.bytes > baton[16:]
            os.write(GOES, v1.bytes + v7.bytes)
        sys.stdout.write(f"{rose}\n")
        sys.stdout.flush()
