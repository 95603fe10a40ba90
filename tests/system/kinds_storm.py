"""A storm over all kinds: the daemon is killed, and the clock set back, while 8 processes draw.

What was drawn is left in a folder, for ``test_kinds_storm`` to look at. A drawer is run as
``python -m tests.system.kinds_storm SOCKET FOLDER TELL``, under a clock that is set.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

from tests.rig import Daemon
from tests.system.fake_time import HOUR, FakeTime
from tests.system.storm import PARTS, kill_through
from uuidd.core.ids.kinds import KINDS
from uuidd_client import Client, DaemonUnavailable

KILLS = 10
DRAWERS = 8
EACH = 40
"""Ids of each kind of a part: most drawn one by one, some made at once."""

STEPS = {2: -5.0, 5: -HOUR, 8: -HOUR - 5.0}
"""What UTC is off by from the middle of a share on."""


def draw(folder: Path, client: Client, go: int, *, tell: int) -> None:
    """Draw ids of every kind, a share for each byte from *go*; leave each kind in a file."""
    drawers = {kind: client.factory(kind, _form(kind)) for kind in KINDS}
    found: dict[str, list[Any]] = {kind: [] for kind in KINDS}
    for _ in range(KILLS + 1):
        os.read(go, 1)
        for _ in range(PARTS):
            for _ in range(5):
                for kind, ids in found.items():
                    try:
                        ids += [drawers[kind]() for _ in range(EACH - 10)]
                        ids += client.make(kind, 10, "text")
                    except DaemonUnavailable:
                        # Snowflakes have no fallback.
                        assert kind == "snowflake"
            os.write(tell, b".")
    for kind, ids in found.items():
        (folder / kind).write_text("\n".join(map(str, ids)))


def _form(kind: str) -> str:
    """Let each kind be drawn in a form other than the one it is made in, if it has one."""
    return next((form for form in KINDS[kind].forms if form in ("uuid", "int")), "text")


def rage(folder: Path) -> dict[str, Any]:
    """Let the storm rage; give what is to be known of it."""
    fake_time = FakeTime(folder)
    read_tell, write_tell = os.pipe()
    with (
        Daemon("--worker=5", environment=fake_time.environment) as daemon,
        contextlib.ExitStack() as undo,
    ):
        drawers = []
        for number in range(DRAWERS):
            own = folder / str(number)
            own.mkdir()
            command = [sys.executable, "-m", "tests.system.kinds_storm"]
            drawer = subprocess.Popen(
                [*command, str(daemon.socket), str(own), str(write_tell)],
                stdin=subprocess.PIPE,
                pass_fds=[write_tell],
                env={**os.environ, **fake_time.environment},
            )
            undo.enter_context(drawer)
            undo.callback(drawer.kill)
            drawers.append(drawer)
        os.close(write_tell)

        def step(kill: int) -> None:
            if kill in STEPS:
                fake_time.set(STEPS[kill])

        gos = [drawer.stdin.fileno() for drawer in drawers if drawer.stdin is not None]
        kill_through(daemon, gos, read_tell, KILLS, between=step)
        statuses = [drawer.wait(60) for drawer in drawers]
        with daemon.connect() as connection:
            status = connection.call("status")
        daemon.stop()
    os.close(read_tell)
    return {
        "statuses": statuses,
        "pids": [drawer.pid for drawer in drawers],
        "status": status,
        "log": daemon.lines,
    }


if __name__ == "__main__":
    warnings.simplefilter("ignore", RuntimeWarning)
    draw(Path(sys.argv[2]), Client(sys.argv[1]), 0, tell=int(sys.argv[3]))
