"""A storm: many processes draw ids while the daemon is killed again and again.

Run in a private mount namespace as ``python -m tests.system.storm FOLDER KILLS``; what was drawn is
left in FOLDER, for ``test_storm`` to look at.
"""

from __future__ import annotations

import json
import os
import random
import select
import sys
import threading
import traceback
import uuid
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tests.rig import PATIENCE, Daemon
from uuidd_client import Client
from uuidd_client.source import utc_tick

SOCKET = Path("/run/uuidd/request")
PARTS = 5
"""Parts of a share; a drawer tells of each that it has drawn."""

CLIENT_SHARE, STDLIB_SHARE = 12_000, 5_000
"""Ids that a process draws by our client, or by the standard library, in a share."""

BACK = 1.1
"""Seconds after which every client asks the daemon again."""


def draw(
    path: Path, make: Callable[[], uuid.UUID], share: int, shares: int, go: int, *, tell: int
) -> None:
    """Draw *shares* times *share* ids, each time when a byte comes from *go*; leave them in *path*.

    An id is left as its 16 bytes, and one more that says whether it is marked safe.
    """
    with path.open("wb") as file:
        for _ in range(shares):
            os.read(go, 1)
            for _ in range(PARTS):
                some = [make() for _ in range(share // PARTS)]
                os.write(tell, b".")
                file.write(
                    b"".join(
                        each.bytes + bytes([each.is_safe is uuid.SafeUUID.safe]) for each in some
                    )
                )


def start(run: Callable[[int], None]) -> tuple[int, int]:
    """Start a process that draws as *run* says; give its pid, and where to write bytes to it.

    *run* draws a share for each byte that it reads from the descriptor that it is given.
    """
    read_go, write_go = os.pipe()
    pid = os.fork()
    if pid:
        os.close(read_go)
        return pid, write_go
    try:
        warnings.simplefilter("ignore", RuntimeWarning)
        run(read_go)
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        os._exit(1)


def kill_through(
    daemon: Daemon,
    gos: list[int],
    tell: int,
    kills: int,
    between: Callable[[int], None] = lambda _: None,
) -> list[int]:
    """Let drawers draw a share each, and kill the daemon in its midst; *kills* times, and one more.

    *gos* is where to write a byte for each share, *tell* where drawers tell of each part. *between*
    is called with each kill's number, when half of the drawers' parts up to it have been drawn.
    Gives how many parts had been drawn at each kill.
    """
    dice = random.Random(20)
    a_share = len(gos) * PARTS
    parts = 0
    found = []
    for kill in range(kills):
        for go in gos:
            os.write(go, b".")
        # Somewhere in this share: what is left of it is drawn while the daemon is down.
        due = kill * a_share + dice.randrange(2, a_share)
        half = (parts + due) // 2
        while parts < half:
            parts += _told(tell, half - parts)
        between(kill)
        while parts < due:
            parts += _told(tell, due - parts)
        daemon.kill()
        found.append(parts)
        daemon.start()
        # A client asks again once a second. Without a pause nearly all would be drawn without the
        # daemon: true to life, but a weaker test of it.
        threading.Event().wait(BACK)
    for go in gos:
        os.write(go, b".")
    return found


def _told(tell: int, most: int) -> int:
    """Return how many more parts have been drawn, when some have. Fails if that does not come."""
    # A part takes well under a second, also of eight drawers on a machine that is busy.
    readable, _, _ = select.select([tell], [], [], 3 * PATIENCE)
    told = os.read(tell, most) if readable else b""
    assert told, "a drawer has ended early, or hangs: see what it said on standard error"
    return len(told)


def main(folder: Path, kills: int) -> None:
    """Let 8 processes draw by our client, 4 by the standard library, and kill the daemon."""
    begin = utc_tick()
    read_tell, write_tell = os.pipe()
    with Daemon(socket=SOCKET) as daemon:
        makers = [("client", number, Client(SOCKET).uuid1, CLIENT_SHARE) for number in range(8)]
        makers += [("stdlib", number, uuid.uuid1, STDLIB_SHARE) for number in range(4)]
        drawers = [
            start(
                partial(draw, folder / f"{name}-{number}", make, share, kills + 1, tell=write_tell)
            )
            for name, number, make, share in makers
        ]
        os.close(write_tell)
        killed = kill_through(daemon, [go for _, go in drawers], read_tell, kills)
        failed = sum(os.waitpid(pid, 0)[1] != 0 for pid, _ in drawers)
        daemon.stop()
        node = json.loads((daemon.state / "state").read_text().split("\n", 1)[1])["node"]
        record = {
            "begin": begin,
            "end": utc_tick(),
            "node": node,
            "failed": failed,
            "kills": killed,
            "parts": (kills + 1) * len(drawers) * PARTS,
            "log": daemon.lines,
        }
    (folder / "record.json").write_text(json.dumps(record))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
