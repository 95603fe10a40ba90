"""Programs that take from a daemon, and leave in a file all that they were given.

The words of ``main`` are WAY SOCKET FILE [CHILDREN]. A record of the file is 16 bytes of an id, and
a number: how many ticks it stands for or, from ``timely``, UTC just before it was asked for.
"""

from __future__ import annotations

import contextlib
import os
import random
import select
import socket
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from struct import Struct
from typing import TYPE_CHECKING, Any

from tests.forks import Program
from tests.judge import Span, of_id
from tests.rig import until
from tests.system.children import each_child
from uuidd.core.wire import libuuid
from uuidd_client import Client, DaemonUnavailable, channel
from uuidd_client.system import SYSTEM_CLOCK

if TYPE_CHECKING:
    from uuidd_client.client import Kind

RECORD = Struct("=16sQ")
PAUSE = 0.003
"""Seconds between two draws, because what is drawn has to be looked at too."""

AT_ONCE, EACH = 64, 20
"""How many children of ``forks`` live at once, and ids of each."""


def given_in(block: dict[str, Any]) -> Span:
    """Return what was given out in a block, as the wire has it."""
    steady = "clock_seq" not in block
    place = (0,) if steady else (int.from_bytes(block["node"], "big"), block["clock_seq"])
    return Span(place, block["first"], block["first"] + block["count"])


class Taker(Program):
    """A program that takes from the daemon at *path*, for as long as the context lasts.

    *children* are those of ``forks``.
    """

    def __init__(self, way: str, path: Path, file: Path, children: int = 0) -> None:
        super().__init__(__name__, way, path, file, children)
        self._file = file

    def begun(self) -> None:
        """Wait until it has been given something."""
        assert self.line() == "begun"

    def resume(self) -> None:
        """Wait until it has been given more."""
        before = self._file.stat().st_size
        until(lambda: self._file.stat().st_size > before)

    def records(self) -> list[tuple[int, int]]:
        """Return the ids that it left, and the number beside each."""
        read = RECORD.iter_unpack(self._file.read_bytes())
        return [(int.from_bytes(id, "big"), number) for id, number in read]

    def given(self) -> Iterator[Span]:
        """Yield what it was given, in order."""
        for id, count in self.records():
            span = of_id(id)
            yield span._replace(end=span.first + count, taker=self._file.name)


def made(kind: Kind) -> Callable[[Path], Callable[[], list[bytes]]]:
    """Return a way to take: ids of *kind*, made by our client from short-lived blocks."""

    def begin(path: Path) -> Callable[[], list[bytes]]:
        client = Client(path, fallback=False, max_age=0.005, timeout=5)

        def take() -> list[bytes]:
            joined = client.make(kind, 10, "bytes")
            return [RECORD.pack(joined[at : at + 16], 1) for at in range(0, len(joined), 16)]

        return take

    return begin


def blocks(path: Path) -> Callable[[], list[bytes]]:
    """Return a way to take: blocks in the libuuid dialect, a connection each."""
    dice = random.Random(os.getpid())

    def take() -> list[bytes]:
        count = dice.choice((1, 2, 100, 1000, 50_000))
        with socket.socket(socket.AF_UNIX) as sock:
            sock.settimeout(5)
            sock.connect(os.fspath(path))
            sock.sendall(libuuid.pack_request(libuuid.Op.BULK_TIME_UUID, count))
            data = b""
            while (body := libuuid.unpack_body(data)) is None:
                more = sock.recv(4096)
                if not more:
                    return []
                data += more
        return [RECORD.pack(body[:16], count)]

    return take


def timely(path: Path) -> Callable[[], list[bytes]]:
    """Return a way to take: one id after the other, each beside the time at which it was wanted."""
    client = Client(path, fallback=False, timeout=5)

    def take() -> list[bytes]:
        found = []
        for draw in (client.uuid1, client.uuid7) * 5:
            wanted = SYSTEM_CLOCK.utc_tick()
            found.append(RECORD.pack(draw().bytes, wanted))
        return found

    return take


def unleased(path: Path) -> Callable[[], list[bytes]]:
    """Return a way to take: as ``timely``, of blocks alone, as where all lanes are taken."""
    channel.LEASABLE.clear()
    return timely(path)


def forks(children: int, path: Path) -> Callable[[], list[bytes]]:
    """Return a way to take: once, by many children, of which each draws some ids and ends."""
    client = Client(path, fallback=False, timeout=5)

    def drawn() -> bytes:
        return b"".join(RECORD.pack(client.uuid1().bytes, 1) for _ in range(EACH))

    def take() -> list[bytes]:
        # So that what a child inherits is a connection and a block in use.
        before = drawn()
        with tempfile.TemporaryFile("a+b", buffering=0) as found:
            each_child(children, AT_ONCE, lambda: found.write(drawn()))
            found.seek(0)
            return [before, found.read(), drawn()]

    turns = iter([take])
    return lambda: next(turns, list)()


WAYS: dict[str, Callable[[Path], Callable[[], list[bytes]]]] = {
    "v1": made("v1"),
    "v7": made("v7"),
    "libuuid": blocks,
    "timely": timely,
    "unleased": unleased,
}


def main(words: list[str]) -> None:
    """Take until standard input ends; a daemon that is not there is asked again."""
    way, path, name, children = words
    take = WAYS.get(way, partial(forks, int(children)))(Path(path))
    begun = False
    with Path(name).open("wb", buffering=0) as file:
        while not select.select([sys.stdin], [], [], PAUSE)[0]:
            with contextlib.suppress(DaemonUnavailable, OSError):
                some = take()
                file.write(b"".join(some))
                if some and not begun:
                    begun = True
                    sys.stdout.write("begun\n")
                    sys.stdout.flush()
