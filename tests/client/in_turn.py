"""A program that draws one id for each line of its standard input, each a round trip."""

from __future__ import annotations

import sys

from uuidd_client import Client

if __name__ == "__main__":
    client = Client(sys.argv[1], fallback=False, max_age=0, timeout=10)
    for _ in sys.stdin:
        sys.stdout.write(f"{client.uuid6()}\n")
        sys.stdout.flush()
