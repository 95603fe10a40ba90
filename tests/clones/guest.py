"""What runs inside of the machine: a program that draws ids, and prints them turn by turn.

Started as ``guest.py PORT SOCKET``, it prints a line for each turn to a serial port: the number of
the turn, whether the daemon had noticed a clone before it began, and the ids of each kind, from the
client and from the daemon itself. It draws the next ids when the port has sent the line. So while
the machine is stopped, at most the ids of one turn are drawn and not sent yet.
"""

from __future__ import annotations

import json
import sys
import termios
from collections.abc import Callable
from itertools import count
from socket import AF_UNIX, socket
from typing import TYPE_CHECKING, Any

import msgpack

from uuidd.core.ids.kinds import KINDS
from uuidd_client import Client, DaemonUnavailable

if TYPE_CHECKING:
    from uuidd_client.client import Kind

AT_ONCE = 16
"""Ids of a list, of which each turn has one for each kind."""


class Asked:
    """Ids that the daemon makes itself, over a connection without a client."""

    def __init__(self, path: str) -> None:
        self._sock = socket(AF_UNIX)
        self._sock.connect(path)
        self._replies = msgpack.Unpacker()

    def make(self, kind: str) -> list[str]:
        """Return a few ids, or none if the daemon refuses them."""
        self._sock.sendall(msgpack.packb([0, 1, "make", [kind, AT_ONCE]]))
        while True:
            for _, _, error, ids in self._replies:
                return [] if error else ids
            self._replies.feed(self._sock.recv(65536))


def drawn(client: Client, one: Callable[[], Any], kind: Kind) -> list[str]:
    """Return a single id and a few of a list, or none if the daemon refuses them."""
    try:
        return [str(each) for each in (one(), *client.make(kind, AT_ONCE))]
    except DaemonUnavailable:
        return []


def main(port: str, path: str) -> None:
    """Print turns without an end."""
    client, asked = Client(path, fallback=False), Asked(path)
    kinds: Any = KINDS
    ones = {kind: client.factory(kind) for kind in kinds}
    with open(port, "w", encoding="ascii", buffering=1 << 16) as out:
        for number in count():
            noticed = client.status()["clones"]["noticed"] > 0
            turn = {
                "turn": number,
                "noticed": noticed,
                "client": {kind: drawn(client, ones[kind], kind) for kind in kinds},
                "daemon": {kind: asked.make(kind) for kind in kinds},
            }
            print(json.dumps(turn), file=out)
            out.flush()
            termios.tcdrain(out.fileno())


if __name__ == "__main__":
    main(*sys.argv[1:])
