"""A storm: many processes draw ids while the daemon is killed again and again.

Run in a private mount namespace as ``python -m tests.system.storm FOLDER``; what was drawn is left
in FOLDER, for ``test_storm`` to look at.
"""

from __future__ import annotations

import json
import os
import random
import sys
import threading
import traceback
import uuid
import warnings
from collections.abc import Callable
from pathlib import Path

from tests.rig import Daemon
from uuidd_client import Client
from uuidd_client.clocks import utc_tick

SOCKET = Path("/run/uuidd/request")
KILLS = 20
SHARES = KILLS + 1
PARTS = 5
"""Parts of a share; a drawer tells of each that it has drawn."""

BACK = 1.1
"""Seconds after which every client asks the daemon again."""


def draw(path: Path, make: Callable[[], uuid.UUID], count: int, go: int, tell: int) -> None:
    """Draw *count* ids in shares, one for each byte that comes from *go*; leave them in *path*.

    An id is left as its 16 bytes, and one more that says whether it is marked safe.
    """
    part = -(-count // (SHARES * PARTS))
    with path.open("wb") as file:
        drawn = 0
        while drawn < count:
            os.read(go, 1)
            for _ in range(PARTS):
                some = [make() for _ in range(min(part, count - drawn))]
                drawn += len(some)
                os.write(tell, b".")
                file.write(
                    b"".join(
                        each.bytes + bytes([each.is_safe is uuid.SafeUUID.safe]) for each in some
                    )
                )


def start(path: Path, make: Callable[[], uuid.UUID], count: int, tell: int) -> tuple[int, int]:
    """Start a process that draws; give its pid, and where to write a byte for each share."""
    read_go, write_go = os.pipe()
    pid = os.fork()
    if pid:
        os.close(read_go)
        return pid, write_go
    try:
        warnings.simplefilter("ignore", RuntimeWarning)
        draw(path, make, count, read_go, tell)
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        os._exit(1)


def main(folder: Path) -> None:
    """Let 8 processes draw by our client, 4 by the standard library, and kill the daemon."""
    dice = random.Random(20)
    begin = utc_tick()
    read_tell, write_tell = os.pipe()
    with Daemon(socket=SOCKET) as daemon:
        drawers = [
            start(folder / f"client-{number}", Client(SOCKET).uuid1, 250_000, write_tell)
            for number in range(8)
        ] + [
            start(folder / f"stdlib-{number}", uuid.uuid1, 100_000, write_tell)
            for number in range(4)
        ]
        os.close(write_tell)
        a_share = len(drawers) * PARTS

        def give() -> None:
            for _, go in drawers:
                os.write(go, b".")

        parts = 0
        kills = []
        for kill in range(KILLS):
            give()
            # Somewhere in this share: what is left of it is drawn while the daemon is down.
            due = kill * a_share + dice.randrange(1, a_share)
            while parts < due:
                parts += len(os.read(read_tell, due - parts))
            daemon.kill()
            kills.append(parts)
            daemon.start()
            # A client asks again once a second. Without a pause nearly all would be drawn without
            # the daemon: true to life, but a weaker test of it.
            threading.Event().wait(BACK)
        give()
        failed = sum(os.waitpid(pid, 0)[1] != 0 for pid, _ in drawers)
        daemon.stop()
        node = json.loads((daemon.state / "state").read_text().split("\n", 1)[1])["node"]
        record = {
            "begin": begin,
            "end": utc_tick(),
            "node": node,
            "failed": failed,
            "kills": kills,
            "parts": SHARES * a_share,
            "log": daemon.lines,
        }
    (folder / "record.json").write_text(json.dumps(record))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
