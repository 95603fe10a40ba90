"""A storm over all kinds: the daemon is killed, and the clock set back, while 8 processes draw.

What was drawn is left in a folder, for ``test_kinds_storm`` to look at. ``main`` is a drawer.
"""

from __future__ import annotations

import contextlib
import os
import warnings
from pathlib import Path
from typing import Any

from tests.forks import Program
from tests.rig import Daemon
from tests.system.fake_time import HOUR, FakeTime
from tests.system.storm import PARTS, TELL, kill_through
from uuidd.core.ids.kinds import KINDS
from uuidd_client import Client, DaemonUnavailable

DRAWERS = 8
TURNS, EACH = 2, 20
"""Turns of a part, and ids of each kind of a turn: half drawn one by one, half made at once."""

STEPS = (-5.0, 60.0 - HOUR, 55.0 - HOUR)
"""By what UTC is off from the middle of a share on: of three of them, spread over all kills.

Together less than an hour, for further ahead than that the order of steady ids begins again.
"""


def draw(folder: Path, client: Client, kills: int) -> None:
    """Draw ids of every kind, a share for each byte of standard input, each into a file."""
    drawers = {kind: client.factory(kind, _form(kind)) for kind in KINDS}
    found: dict[str, list[Any]] = {kind: [] for kind in KINDS}
    for _ in range(kills + 1):
        os.read(0, 1)
        for _ in range(PARTS):
            for _ in range(TURNS):
                for kind, ids in found.items():
                    try:
                        ids += [drawers[kind]() for _ in range(EACH - 10)]
                        ids += client.make(kind, 10, "text")
                    except DaemonUnavailable:
                        # Snowflakes have no fallback.
                        assert kind == "snowflake"
            os.write(TELL, b".")
    for kind, ids in found.items():
        (folder / kind).write_text("\n".join(map(str, ids)))


def _form(kind: str) -> str:
    """Let each kind be drawn in a form other than the one it is made in, if it has one."""
    return next((form for form in KINDS[kind].forms if form in ("uuid", "int")), "text")


def rage(folder: Path, fake_time: FakeTime, kills: int) -> dict[str, Any]:
    """Let the storm rage; return what is to be known of it."""
    read_tell, write_tell = os.pipe()
    with (
        Daemon("--worker=5", environment=fake_time.environment) as daemon,
        contextlib.ExitStack() as undo,
    ):
        drawers = []
        for number in range(DRAWERS):
            own = folder / str(number)
            own.mkdir()
            words = daemon.socket, own, kills
            drawers.append(
                undo.enter_context(
                    Program(__name__, *words, environment=fake_time.environment, keep=[write_tell])
                )
            )
        os.close(write_tell)

        steps = {kills * number // 3: offset for number, offset in enumerate(STEPS)}

        def step(kill: int) -> None:
            if kill in steps:
                fake_time.set(steps[kill])

        gos = [drawer.input.fileno() for drawer in drawers]
        kill_through(daemon, gos, read_tell, kills, between=step)
        statuses = [drawer.process.wait(60) for drawer in drawers]
        with daemon.connect() as connection:
            status = connection.call("status")
        daemon.stop()
    os.close(read_tell)
    return {"statuses": statuses, "status": status, "log": daemon.lines}


def main(words: list[str]) -> None:
    """Draw as SOCKET FOLDER KILLS tell; a byte of standard input is a share to draw."""
    socket, folder, kills = words
    warnings.simplefilter("ignore", RuntimeWarning)
    draw(Path(folder), Client(socket), int(kills))
