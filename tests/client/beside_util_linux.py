"""A program that draws ids from util-linux's uuidd, in mounts of its own, and tells how it went.

Run as ``python -m tests.client.beside_util_linux UUIDD``; prints JSON.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from uuid import SafeUUID

from uuidd_client import Client, DaemonUnavailable
from uuidd_client.connection import Connection, Stream

COUNT = 200_000
PATIENCE = 20.0
SOCKET = Path("/run/uuidd/request")


def opened(path: str) -> list[float]:
    """Return the list to which each opening of a connection to *path* will be added."""
    times: list[float] = []
    original = Connection._open

    def note(self: Connection) -> Stream:
        assert self.path == path
        times.append(time.monotonic())
        return original(self)

    Connection._open = note  # type: ignore[method-assign]
    return times


def drawn() -> dict[str, Any]:
    """Draw, and tell what came."""
    openings = opened(str(SOCKET))
    client = Client(fallback=False)
    ids = client.make("v1", COUNT)
    by_many = len(openings)
    ids += [client.uuid1() for _ in range(COUNT)]
    by_one = len(openings) - by_many
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


def main(uuidd: str) -> None:
    """Start util-linux's uuidd, draw, and end it."""
    os.environ.pop("UUIDD_SOCKET", None)
    with subprocess.Popen([uuidd, "-F", "-P", "-s", str(SOCKET)]) as process:
        try:
            end = time.monotonic() + PATIENCE
            while not _answers():
                assert time.monotonic() < end
                assert process.poll() is None
                time.sleep(0.01)
            sys.stdout.write(json.dumps(drawn()))
        finally:
            process.send_signal(signal.SIGKILL)


def _answers() -> bool:
    try:
        Client(SOCKET, fallback=False).uuid1()
    except DaemonUnavailable:
        return False
    return True


if __name__ == "__main__":
    main(sys.argv[1])
