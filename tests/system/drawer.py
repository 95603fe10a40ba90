"""A program that draws ids through our client until its standard input ends.

The words of ``main`` are SOCKET FILE; each id is left in FILE as 16 bytes.
"""

from __future__ import annotations

import select
import sys
from pathlib import Path

from uuidd_client import Client


def main(words: list[str]) -> None:
    """Draw, with a line on standard output once the first id is there."""
    socket, path = words
    # Blocks are given up fast, so that many are asked for, right after each step of the clock.
    client = Client(socket, fallback=False, max_age=0.005, timeout=5)
    with Path(path).open("wb") as file:
        file.write(client.uuid1().bytes)
        sys.stdout.write("drawing\n")
        sys.stdout.flush()
        while not select.select([sys.stdin], [], [], 0)[0]:
            file.write(client.make("v1", 50, form="bytes"))
