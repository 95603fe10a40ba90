"""A program that draws a v7 for each line of its standard input, and prints it or why it got none.

The word of ``main`` is SOCKET. A line that is a name in COMMANDS is another order.
"""

from __future__ import annotations

import os
import resource
import sys
import time
from collections.abc import Callable, Mapping

from tests.forks import Program
from tests.rig import Daemon, until
from uuidd_client import Client, DaemonUnavailable


def close(client: Client) -> str:
    """Let it have neither a lease nor a connection."""
    client.close()
    return "closed"


def close_in_a_child(client: Client) -> str:
    """Fork a child, which closes its copy."""
    child = os.fork()
    if not child:
        client.close()
        os._exit(0)
    os.waitpid(child, 0)
    return "closed there"


def keep_a_child(_: Client) -> str:
    """Fork a child that has a copy until this process ends."""
    read, write = os.pipe()
    if not os.fork():
        os.close(write)
        os.read(read, 1)
        os._exit(0)
    return "kept"


def take_descriptors(client: Client) -> str:
    """Leave the client one descriptor, draw for a while, and tell whether it has a lease."""
    # It may open no file later, so it is imported whole now.
    Client("/nowhere").uuid1()
    free = os.dup(0)
    os.close(free)
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (free + 1, hard))
    for _ in range(1000):
        client.uuid1()
    return f"leased: {client.stats().leased}"


COMMANDS: dict[str, Callable[[Client], str]] = {
    command.__name__: command
    for command in (close, close_in_a_child, keep_a_child, take_descriptors)
}


def main(words: list[str]) -> None:
    """Draw until the input ends."""
    (path,) = words
    with Client(path, fallback=False, max_age=0) as client:
        for line in sys.stdin:
            try:
                said = COMMANDS.get(line.rstrip(), Client.uuid7)(client)
            except DaemonUnavailable as error:
                said = f"refused: {error}"
            sys.stdout.write(f"{said}\n")
            sys.stdout.flush()


class Drawer(Program):
    """Such a program at *daemon*."""

    def __init__(self, daemon: Daemon, environment: Mapping[str, str] | None = None) -> None:
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
