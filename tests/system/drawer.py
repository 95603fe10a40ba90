"""A program that draws a v7 for each line of its standard input, and prints it or why it got none.

The word of ``main`` is SOCKET. After a line "close", it has neither a lease nor a connection.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping

from tests.forks import Program
from tests.rig import Daemon, until
from uuidd_client import Client, DaemonUnavailable


def main(words: list[str]) -> None:
    """Draw until the input ends."""
    (path,) = words
    with Client(path, fallback=False, max_age=0) as client:
        for line in sys.stdin:
            try:
                if line == "close\n":
                    client.close()
                    said = "closed"
                else:
                    said = str(client.uuid7())
            except DaemonUnavailable as error:
                said = f"refused: {error}"
            sys.stdout.write(f"{said}\n")
            sys.stdout.flush()


class Drawer(Program):
    """Such a program at *daemon*."""

    def __init__(self, daemon: Daemon, environment: Mapping[str, str]) -> None:
        super().__init__(__name__, daemon.socket, environment=environment)

    def says(self, line: str = "draw") -> str:
        """Return what it prints after *line*."""
        self.say(line)
        return self.line()

    def draw_from_a_lease(self, daemon: Daemon, seconds: float = 2) -> str:
        """Return an id that is drawn so long after the last one that came from a block."""

        def held() -> bool:
            self.says()
            return bool(daemon.call("status")["leases"]["out"])

        until(held)
        begun = time.monotonic()
        until(lambda: time.monotonic() - begun > seconds)
        return self.says()
