"""A page and its lanes, for a fake daemon; and such a daemon, whose blocks are of now."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path
from typing import Any

import msgpack

from tests.client.fakes import (
    NO_LEASE,
    NODE,
    START,
    Server,
    Time,
    granted,
    refused,
    result,
)
from uuidd.core.ids.ticks import TICKS_PER_SECOND
from uuidd.core.timeline.page import DUE_AT, EPOCH_AT, HORIZON_AT, MAGIC_AT, PAGE_MAGIC, TOKENS_AT
from uuidd.core.timeline.page import Lease as Granted
from uuidd.core.wire.methods import pack_lease
from uuidd.server import page as server_page
from uuidd_client.client import Client
from uuidd_client.lease import Lease, Page
from uuidd_client.system import ClientClock


class Lanes:
    """The page of a daemon, and leases of its lanes, one after another, from *begin* on.

    For a server, *passed* are the descriptors that it passes, and *answer* is what it says instead.
    While it is *refusing*, it says *refusal*.
    """

    def __init__(
        self,
        horizon: int = START + 1000 * TICKS_PER_SECOND,
        *,
        clock: ClientClock | None = None,
    ) -> None:
        self.clock = clock or Time()
        self._page = server_page.Page()
        self.fd = self._page.fd
        self.words = self._page.words
        self.words[MAGIC_AT] = PAGE_MAGIC
        self.words[HORIZON_AT] = self.words[DUE_AT] = horizon
        self.page = Page(self.fd)
        self.begin = START
        self.refusing = False
        self.refusal = NO_LEASE
        self.answer: dict[str, Any] = {}
        self.passed = [self.fd]
        self._lanes = cycle(range(16, 256))

    def grant(self) -> Granted:
        """Lease the next lane."""
        lane = next(self._lanes)
        self.words[TOKENS_AT + lane] = token = 1000 + lane
        return Granted(lane, 3 << 8 | lane, NODE, token, self.begin)

    def revoke(self) -> None:
        """End all leases."""
        for at in range(TOKENS_AT, TOKENS_AT + 256):
            self.words[at] = 0

    def renew(self) -> None:
        """Do what a daemon does when it has noticed that its machine was cloned."""
        self.revoke()
        self.words[EPOCH_AT] += 1

    def lease(self) -> Lease:
        """Return a lease, as a connection does."""
        return Lease(self.grant(), self.page)

    def answered(self, request: bytes, connection: socket.socket) -> bool:
        """Answer a request for a lease, with the page."""
        if self.refusing:
            connection.sendall(refused(request, self.refusal))
        else:
            reply = result(request, self.answer or pack_lease(self.grant()))
            socket.send_fds(connection, [reply], self.passed)
        return True

    def close(self) -> None:
        """Let go of the page."""
        self._page.close()


class Clock(ClientClock):
    """The system's clock, as ``Time`` has it."""

    @property
    def utc(self) -> int:
        """The tick of now."""
        return self.utc_tick()

    def move(self, seconds: float) -> None:
        """Do nothing: it goes by itself."""


class World:
    """A daemon with lanes, whose clock, that of the blocks, is *ahead* of the client's."""

    def __init__(self, path: Path, time: Time | Clock) -> None:
        self.path, self.time = path, time
        self.lanes = Lanes(time.utc + 1000 * TICKS_PER_SECOND, clock=time)
        self.ahead = self._next = 0

    def server(self) -> Server:
        """Return the daemon, to be entered."""
        return Server(self.path, self._block, self.lanes.answered, [self.lanes.fd])

    def _block(self, request: bytes) -> dict[str, Any]:
        count = msgpack.unpackb(request)[3][1]
        # A round trip takes its time.
        self.time.move(0.000_01)
        # As if it had waited for a tick, if there is none.
        end = max(self.time.utc + self.ahead, self._next) + 1
        first, self._next = max(self._next, end - count), end
        return granted(first - START, end - first) | {"page_epoch": self.lanes.words[EPOCH_AT]}


@contextmanager
def leasing(world: World, **settings: Any) -> Iterator[tuple[Server, Client]]:
    """Return a daemon, and a client that has leased a lane of it."""
    with world.server() as server, Client(world.path, _clock=world.time, **settings) as client:
        lease(client)
        assert server.asked == 1
        world.time.move(20)
        server.requests.clear()
        yield server, client


def lease(client: Client) -> None:
    client.make("v1", 1)
    client.make("v7", 1)
