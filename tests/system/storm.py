"""A storm: many processes draw ids of every kind while the daemon is killed again and again.

Run in a private mount namespace as ``python -m tests.system.storm FOLDER KILLS [back]``. With
``back`` UTC is set back too. The ids are left in FOLDER, for ``test_storm`` to look at.
"""

from __future__ import annotations

import contextlib
import json
import sys
import threading
from pathlib import Path

from tests.rig import PATIENCE, Daemon, dice, until
from tests.system.fake_time import HOUR, FakeTime
from tests.system.far import far_reaching
from tests.system.holders import KINDS, Holder, leases

SOCKET = Path("/run/uuidd/request")

CLIENTS, STDLIB = 8, 4
"""Processes that draw by our client, and by the standard library."""

REACH = 20
"""Seconds for which a lease outlasts the daemon where UTC goes on, as after a long time without a
kill. Where UTC is set back it is less than a second, as after a start."""

BACK = 1.1
"""Seconds after which every client asks the daemon again."""

STEPS = (-5.0, 60.0 - HOUR, 55.0 - HOUR)
"""By what UTC is off: from three of the kills on, spread over all of them.

Together less than an hour, for further ahead than that the order of steady ids begins again.
"""


def rage(folder: Path, kills: int, *, back: bool) -> None:
    """Let the storm rage, and leave the daemon's node, lead and log beside the ids.

    The standard library's processes are left out where UTC is set *back*: what libuuid does then
    without the daemon is its own matter.
    """
    moments, fake_time = dice(), FakeTime(folder)
    environment = fake_time.environment if back else {}
    daemon = (
        Daemon("--worker=5", socket=SOCKET, environment=environment)
        if back
        else far_reaching(REACH, "--worker=5", socket=SOCKET)
    )
    steps = {kills * number // 3: offset for number, offset in enumerate(STEPS)} if back else {}
    ways = ["leases", "blocks"] * (CLIENTS // 2) + ["stdlib"] * (0 if back else STDLIB)
    with daemon, contextlib.ExitStack() as running:
        drawers = []
        for number, way in enumerate(ways):
            file = folder / f"{way}-{number}"
            holder = Holder(SOCKET, file, environment=environment, way=way, kinds=KINDS, list=10)
            drawers.append(running.enter_context(holder))
        for kill in range(kills):
            if kill in steps:
                fake_time.set(steps[kill])
            elif not kill:
                # Of each timeline; the next daemon grants none for as long as these may last.
                until(lambda: leases(daemon)["out"] >= CLIENTS // 2, 3 * PATIENCE)
            for drawer in drawers:
                drawer.more(100)
            # A random moment of what they do.
            threading.Event().wait(moments.uniform(0, 0.2))
            daemon.kill()
            # So that some are drawn without it, however fast it starts.
            for drawer in drawers:
                drawer.more(20)
            daemon.start()
            threading.Event().wait(BACK)
        for drawer in drawers:
            drawer.more(2000)
        status = daemon.call("status")
        running.close()
        daemon.stop()
    told = {"node": status["node"], "lead": status["steady"]["lead"], "log": daemon.lines}
    (folder / "told.json").write_text(json.dumps(told))


if __name__ == "__main__":
    rage(Path(sys.argv[1]), int(sys.argv[2]), back="back" in sys.argv[3:])
