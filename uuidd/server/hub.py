"""The connections that are silent, and the requests that end their silence.

Theory of operation

1. Between two requests of the rpc dialect a connection is *parked* here: it has no task and no
   buffer, and an epoll waits for all of a user's (epoll(7)). So ten thousand cost little.
2. One more epoll waits for those of the users, who are served in turns: a user with thousands of
   connections delays the others by one turn.
3. Nearly all requests come whole, and can be answered at once: that is done here, without a task.
4. What takes waiting goes to a task (*hand_over*), which parks the connection again: a request that
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
"""Users, and connections of one, that are looked for at once."""

USER_SECONDS = 0.0005
"""For how long one user is served before another one is."""

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
        self._users = select.epoll()
        self._queues: dict[int, select.epoll] = {}
        self._uids: dict[int, int] = {}
        self._parked: dict[int, dict[int, Stream]] = {}

    async def run(self) -> None:
        """Serve until cancelled."""
        turn_ends = monotonic() + TURN_SECONDS
        with self._users:
            while True:
                ready = self._users.poll(0, EVENTS)
                for fd, _ in ready:
                    if fd in self._uids:
                        self._serve_some(self._uids[fd])
                    if monotonic() > turn_ends:
                        # Who is left is found again, after the others.
                        break
                if not ready:
                    await trio.lowlevel.wait_readable(self._users.fileno())
                elif monotonic() > turn_ends:
                    await trio.lowlevel.checkpoint()
                else:
                    continue
                turn_ends = monotonic() + TURN_SECONDS

    def park(self, stream: Stream) -> None:
        """Wait for the next request of a connection.

        Hangs up when it is a user's first, and the system has no descriptor for a queue of his.
        """
        uid = stream.uid
        if uid not in self._queues:
            try:
                queue = select.epoll()
            except OSError:
                self._hang_up(stream)
                return
            self._queues[uid], self._uids[queue.fileno()], self._parked[uid] = queue, uid, {}
            self._users.register(queue.fileno(), select.EPOLLIN)
        fd = stream.sock.fileno()
        self._parked[uid][fd] = stream
        self._queues[uid].register(fd, select.EPOLLIN)

    def answered(self, stream: Stream, data: bytes) -> bool:
        """Answer the rpc requests of a new connection, and park it; False: they need a task."""
        if data[0] not in RPC_FIRST:
            return False
        self.park(stream)
        if stream.uid in self._queues:
            self._answer(stream, data, monotonic() + USER_SECONDS)
        return True

    def _serve_some(self, uid: int) -> None:
        ends = monotonic() + USER_SECONDS
        streams = self._parked[uid]
        for fd, _ in self._queues[uid].poll(0, EVENTS):
            self._serve(streams[fd], ends)
            if monotonic() > ends:
                break

    def _serve(self, stream: Stream, ends: float) -> None:
        data = stream.receive_now()
        if data is None:
            return
        if data:
            self._answer(stream, data, ends)
        else:
            self._close(stream)

    def _answer(self, stream: Stream, data: bytes, ends: float) -> None:
        replies = b""
        end = answered = 0
        answer, uid = self._service.answer, stream.uid
        try:
            for request, request_end in rpc.requests(data, limit=self._limits().request_bytes):
                if answered and (answered == PIPELINED or monotonic() > ends):
                    break
                reply = answer(request, uid=uid)
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
        uid, fd = stream.uid, stream.sock.fileno()
        queue, streams = self._queues[uid], self._parked[uid]
        queue.unregister(fd)
        del streams[fd]
        if not streams:
            del self._queues[uid], self._parked[uid], self._uids[queue.fileno()]
            queue.close()
