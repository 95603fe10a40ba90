"""The connections that are silent, and the requests that end their silence.

Theory of operation

1. Between two requests of the rpc dialect a connection is *parked* here: it has no task and no
   buffer, and one epoll waits for all of them (epoll(7)). So ten thousand cost little.
2. Nearly all requests come whole, and can be answered at once: that is done here, without a task.
3. What takes waiting goes to a task (*hand_over*), which parks the connection again: a request that
   came in part, one that needs a save or room, a reply that is not read.
"""

from __future__ import annotations

import select
from collections.abc import Callable
from time import monotonic

import trio

from uuidd.core.wire import RPC_FIRST, rpc
from uuidd.server.conversation import MALFORMED
from uuidd.server.limits import Limits
from uuidd.server.service import Service
from uuidd.server.stream import Stream

EVENTS = 64
"""Connections served between two looks at the time."""

TURN_SECONDS = 0.001
"""For how long the hub serves before all others have a turn: no more than a request may wait."""

PIPELINED = 16
"""Requests of one connection answered in one go; with more it gets a task, so that others get their
turn."""

HandOver = Callable[[Stream, bytes, bytes], None]
"""Goes on with a connection in a task, with what was not answered, and replies not sent."""


class Hub:
    """Serves silent connections; *hang_up* closes one, *hand_over* goes on with it in a task."""

    def __init__(
        self,
        service: Service,
        limits: Callable[[], Limits],
        *,
        hand_over: HandOver,
        hang_up: Callable[[Stream], None],
    ) -> None:
        self._limits = limits
        self._service = service
        self._hand_over = hand_over
        self._hang_up = hang_up
        self._epoll = select.epoll()
        self._parked: dict[int, Stream] = {}

    async def run(self) -> None:
        """Serve until cancelled."""
        turn_ends = monotonic() + TURN_SECONDS
        with self._epoll:
            while True:
                ready = self._epoll.poll(0, EVENTS)
                for fd, _ in ready:
                    self._serve(self._parked[fd])
                    if monotonic() > turn_ends:
                        # What is left is found again, after the others.
                        break
                if not ready:
                    await trio.lowlevel.wait_readable(self._epoll.fileno())
                elif monotonic() > turn_ends:
                    await trio.lowlevel.checkpoint()
                else:
                    continue
                turn_ends = monotonic() + TURN_SECONDS

    def park(self, stream: Stream) -> None:
        """Wait for the next request of a connection."""
        fd = stream.sock.fileno()
        self._parked[fd] = stream
        self._epoll.register(fd, select.EPOLLIN)

    def answered(self, stream: Stream, data: bytes) -> bool:
        """Answer the rpc requests of a new connection, and park it; False: they need a task."""
        if data[0] not in RPC_FIRST:
            return False
        self.park(stream)
        self._answer(stream, data)
        return True

    def _serve(self, stream: Stream) -> None:
        data = stream.receive_now()
        if data is None:
            return
        if data:
            self._answer(stream, data)
        else:
            self._close(stream)

    def _answer(self, stream: Stream, data: bytes) -> None:
        replies = b""
        end = answered = 0
        try:
            for request, request_end in rpc.requests(data, limit=self._limits().request_bytes):
                reply = None if answered == PIPELINED else self._service.answer(request)
                if reply is None:
                    break
                replies = replies + reply if replies else reply
                end = request_end
                answered += 1
        except rpc.MalformedError:
            self._service.rpc.refuse(MALFORMED)
            if replies:
                stream.send_now(replies)
            self._close(stream)
            return
        sent = stream.send_now(replies) if replies else 0
        if end < len(data) or sent < len(replies):
            self._leave(stream, data[end:], replies[max(sent, 0) :])

    def _leave(self, stream: Stream, data: bytes, unsent: bytes) -> None:
        self._unpark(stream)
        self._hand_over(stream, data, unsent)

    def _close(self, stream: Stream) -> None:
        self._unpark(stream)
        self._hang_up(stream)

    def _unpark(self, stream: Stream) -> None:
        fd = stream.sock.fileno()
        del self._parked[fd]
        self._epoll.unregister(fd)
