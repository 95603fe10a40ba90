"""A program that draws ids from util-linux's uuidd, in mounts of its own, and tells how it went.

Run as ``python -m tests.client.beside_util_linux UUIDD``; prints JSON.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import SafeUUID

from tests.rig import until
from uuidd_client import Client, DaemonUnavailable

COUNT = 200_000
SOCKET = Path("/run/uuidd/request")


def drawn() -> dict[str, Any]:
    client = Client(fallback=False)
    ids = client.make("v1", COUNT)
    by_many = client.stats().blocks
    ids += [client.uuid1() for _ in range(COUNT)]
    by_one = client.stats().blocks - by_many
    try:
        client.status()
        status = "given"
    except DaemonUnavailable as unavailable:
        status = str(unavailable)
    return {
        "distinct": len(set(ids)),
        "safe": sum(id.is_safe is SafeUUID.safe for id in ids),
        "by_many": by_many,
        "by_one": by_one,
        "status": status,
    }


def answers() -> bool:
    with suppress(DaemonUnavailable):
        return bool(Client(SOCKET, fallback=False).uuid1())
    return False


def main(uuidd: str) -> None:
    os.environ.pop("UUIDD_SOCKET", None)
    with subprocess.Popen([uuidd, "-F", "-P", "-s", str(SOCKET)]) as process:
        try:
            until(answers)
            sys.stdout.write(json.dumps(drawn()))
        finally:
            process.kill()


if __name__ == "__main__":
    main(sys.argv[1])
