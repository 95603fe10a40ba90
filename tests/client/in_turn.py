"""A program that draws an id of the kind that each line of its input names, none made ahead."""

from __future__ import annotations

import sys
from typing import Any

from uuidd_client import Client

if __name__ == "__main__":
    client = Client(sys.argv[1], fallback=False, max_age=0, timeout=10)
    kind: Any
    for line in sys.stdin:
        kind = line.strip()
        sys.stdout.write(f"{next(client.iter(kind, form='text'))}\n")
        sys.stdout.flush()
