"""A storm: many processes draw ids of every kind while the daemon is killed again and again.

Run in a private mount namespace as ``python -m tests.system.storm FOLDER KILLS FEWER [back]``. With
``back`` UTC is set back too. The ids are left in FOLDER, for ``test_storm`` to look at.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import sys
import threading
import uuid
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.forks import Program
from tests.rig import PATIENCE, Daemon, dice, until
from tests.system.fake_time import HOUR, FakeTime
from tests.system.far import far_reaching
from uuidd.core.ids.kinds import KINDS
from uuidd_client import Client, DaemonUnavailable, channel
from uuidd_client.system import SYSTEM_CLOCK

SOCKET = Path("/run/uuidd/request")

PARTS = 5
"""Parts of a share; a drawer tells of each that it has drawn."""

CLIENTS, STDLIB = 8, 4
"""Processes that draw by our client, and by the standard library."""

MANY_V1, MANY_STDLIB, EACH, AT_ONCE = 2400, 1000, 40, 10
"""Ids of a part: v1 by our client or by the standard library, or fewer; and of each other kind. As
many as AT_ONCE of each kind are made at once, all others one by one."""

TELL = 3
"""The descriptor on which a drawer tells of a part."""

REACH = 20
"""Seconds for which a lease outlasts the daemon where UTC goes on, as after a long time without a
kill. Where UTC is set back it is less than a second, as after a start."""

BACK = 1.1
"""Seconds after which every client asks the daemon again."""

STEPS = (-5.0, 60.0 - HOUR, 55.0 - HOUR)
"""By what UTC is off from the middle of a share on: of three of them, spread over all kills.

Together less than an hour, for further ahead than that the order of steady ids begins again.
"""


def main(words: list[str]) -> None:
    """Draw as WAY SHARES FEWER FOLDER tell: a share for each byte of standard input.

    With *blocks*, it is as where all lanes are taken.

    A file of FOLDER for each kind has an id in each line. Behind a v1 stands whether it is marked
    safe.
    """
    way, shares, fewer, folder = words
    warnings.simplefilter("ignore", RuntimeWarning)
    if way == "blocks":
        channel.LEASABLE.clear()
    draw = _by_stdlib(int(fewer)) if way == "stdlib" else _by_client(int(fewer))
    found: dict[str, list[str]] = {}
    for _ in range(int(shares)):
        os.read(0, 1)
        for _ in range(PARTS):
            for kind, lines in draw().items():
                found.setdefault(kind, []).extend(lines)
            os.write(TELL, b".")
    for kind, lines in found.items():
        Path(folder, kind).write_text("\n".join(lines))


def _line(id: uuid.UUID) -> str:
    return f"{id} {int(id.is_safe is uuid.SafeUUID.safe)}"


def _by_stdlib(fewer: int) -> Callable[[], dict[str, list[str]]]:
    return lambda: {"v1": [_line(uuid.uuid1()) for _ in range(MANY_STDLIB // fewer)]}


def _by_client(fewer: int) -> Callable[[], dict[str, list[str]]]:
    client = Client(SOCKET)
    # In a form other than that of the ids that are made at once, where a kind has one.
    kinds: Any = KINDS
    drawers = {
        kind: client.factory(
            kind, next((form for form in found.forms if form in ("uuid", "int")), "text")
        )
        for kind, found in kinds.items()
        if kind != "v1"
    }

    def draw() -> dict[str, list[str]]:
        v1 = [client.uuid1() for _ in range(MANY_V1 // fewer - AT_ONCE)]
        lines = {"v1": [*map(_line, v1 + client.make("v1", AT_ONCE, "uuid"))]}
        for kind, one in drawers.items():
            try:
                lines[kind] = [str(one()) for _ in range(EACH - AT_ONCE)]
                lines[kind] += client.make(kind, AT_ONCE, "text")
            except DaemonUnavailable:
                # Snowflakes have no fallback.
                assert kind == "snowflake"
        return lines

    return draw


def kill_through(
    daemon: Daemon, gos: list[int], tell: int, kills: int, between: Callable[[int], None]
) -> list[int]:
    """Let drawers draw a share each, and kill the daemon in its midst; *kills* times, and one more.

    *gos* is where to write a byte for each share, *tell* where drawers tell of each part. *between*
    is called with each kill's number, when half of the drawers' parts up to it have been drawn.
    Returns how many parts had been drawn at each kill.
    """
    moments = dice()
    a_share = len(gos) * PARTS
    parts = 0
    found = []
    for kill in range(kills):
        for go in gos:
            os.write(go, b".")
        # In the first half of this share: much of what is left is drawn while the daemon is down.
        due = kill * a_share + moments.randrange(2, a_share // 2)
        half = (parts + due) // 2
        while parts < half:
            parts += _told(tell, half - parts)
        between(kill)
        while parts < due:
            parts += _told(tell, due - parts)
        daemon.kill()
        found.append(parts)
        # So that some are drawn without it, however fast it starts.
        without = min(due + len(gos), (kill + 1) * a_share)
        while parts < without:
            parts += _told(tell, without - parts)
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


def rage(folder: Path, kills: int, fewer: int, *, back: bool) -> None:
    """Let the storm rage, and leave a record of it beside the ids.

    The standard library's processes are left out where UTC is set *back*: what libuuid does then
    without the daemon is its own matter.
    """
    begin = SYSTEM_CLOCK.utc_tick()
    fake_time = FakeTime(folder)
    environment = fake_time.environment if back else {}
    options = "--worker=5"
    daemon = (
        Daemon(options, socket=SOCKET, environment=environment)
        if back
        else far_reaching(REACH, options, socket=SOCKET)
    )
    steps = {kills * number // 3: offset for number, offset in enumerate(STEPS)} if back else {}
    ways = ["leases", "blocks"] * (CLIENTS // 2) + ["stdlib"] * (0 if back else STDLIB)
    read_tell, write_tell = os.pipe()
    with daemon, contextlib.ExitStack() as running:
        drawers = []
        for number, way in enumerate(ways):
            own = folder / f"{'stdlib' if way == 'stdlib' else 'client'}-{number}"
            own.mkdir()
            # Not __name__, which is that of the command here.
            words = "tests.system.storm", way, kills + 1, fewer, own
            program = Program(*words, environment=environment, keep=[write_tell])
            drawers.append(running.enter_context(program))
        os.close(write_tell)

        def step(kill: int) -> None:
            if kill in steps:
                fake_time.set(steps[kill])
            elif not kill:
                # Of each timeline; the next daemon grants none for as long as these may last.
                until(lambda: daemon.call("status")["leases"]["out"] >= CLIENTS // 2, 3 * PATIENCE)

        gos = [drawer.input.fileno() for drawer in drawers]
        killed = kill_through(daemon, gos, read_tell, kills, step)
        failed = sum(drawer.process.wait(3 * PATIENCE) != 0 for drawer in drawers)
        status = daemon.call("status")
        daemon.stop()
        record = {
            "begin": begin,
            "end": SYSTEM_CLOCK.utc_tick(),
            "failed": failed,
            "kills": killed,
            "parts": (kills + 1) * len(drawers) * PARTS,
            "status": status,
            "log": daemon.lines,
        }
    (folder / "record.json").write_text(json.dumps(record))


if __name__ == "__main__":
    rage(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), back="back" in sys.argv[4:])
