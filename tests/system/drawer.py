"""A program that draws ids through our client until its standard input ends.

Run as ``python -m tests.system.drawer SOCKET FILE``; each id is left in FILE as 16 bytes.
"""

from __future__ import annotations

import select
import sys
from pathlib import Path

from uuidd_client import Client


def main(socket: str, path: Path) -> None:
    """Draw, with a line on standard output once the first id is there."""
    # Blocks are given up fast, so that many are asked for, right after each step of the clock.
    client = Client(socket, fallback=False, max_age=0.005, timeout=5)
    with path.open("wb") as file:
        file.write(client.uuid1().bytes)
        sys.stdout.write("drawing\n")
        sys.stdout.flush()
        while not select.select([sys.stdin], [], [], 0)[0]:
            file.write(client.make("v1", 50, form="bytes"))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
