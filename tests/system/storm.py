"""A storm: many processes draw ids while the daemon is killed again and again.

Run in a private mount namespace as ``python -m tests.system.storm FOLDER KILLS FEWER``; what was
drawn is left in FOLDER, for ``test_storm`` to look at.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import select
import sys
import threading
import uuid
import warnings
from collections.abc import Callable
from pathlib import Path

from tests.forks import Program
from tests.rig import PATIENCE, Daemon
from uuidd_client import Client
from uuidd_client.source import utc_tick

SOCKET = Path("/run/uuidd/request")
PARTS = 5
"""Parts of a share; a drawer tells of each that it has drawn."""

CLIENT, STDLIB = 2400, 1000
"""Ids that a process draws by our client, or by the standard library, in a part, or fewer."""

TELL = 3
"""The descriptor on which a drawer tells of a part."""

BACK = 1.1
"""Seconds after which every client asks the daemon again."""


def main(words: list[str]) -> None:
    """Draw as WAY SHARES PART PATH tell: a share for each byte of standard input, into the file.

    An id is left as its 16 bytes, and one more that says whether it is marked safe.
    """
    way, shares, part, path = words
    warnings.simplefilter("ignore", RuntimeWarning)
    make = {"client": Client(SOCKET).uuid1, "stdlib": uuid.uuid1}[way]
    with Path(path).open("wb") as file:
        for _ in range(int(shares)):
            os.read(0, 1)
            for _ in range(PARTS):
                some = [make() for _ in range(int(part))]
                os.write(TELL, b".")
                file.write(
                    b"".join(
                        each.bytes + bytes([each.is_safe is uuid.SafeUUID.safe]) for each in some
                    )
                )


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


def rage(folder: Path, kills: int, fewer: int) -> None:
    """Let 8 processes draw by our client, 4 by the standard library, and kill the daemon."""
    begin = utc_tick()
    read_tell, write_tell = os.pipe()
    with Daemon(socket=SOCKET) as daemon, contextlib.ExitStack() as running:
        drawers = [
            running.enter_context(
                Program(
                    # Not __name__, which is that of the command here.
                    "tests.system.storm",
                    way,
                    kills + 1,
                    part // fewer,
                    folder / f"{way}-{number}",
                    keep=[write_tell],
                )
            )
            for way, count, part in (("client", 8, CLIENT), ("stdlib", 4, STDLIB))
            for number in range(count)
        ]
        os.close(write_tell)
        killed = kill_through(daemon, [each.input.fileno() for each in drawers], read_tell, kills)
        failed = sum(drawer.process.wait(3 * PATIENCE) != 0 for drawer in drawers)
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
    rage(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
