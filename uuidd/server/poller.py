"""The connections that are silent, and the requests that end their silence.

Theory of operation

1. Before its first request, and between two of the rpc dialect, a connection is *parked* here: it
   has no task and no buffer, and an epoll waits for all of a user's (epoll(7)). So ten thousand
   cost little.
2. One more epoll waits for those of the users, who are served in turns: a user with thousands of
   connections delays the others by one turn.
3. Nearly all requests come whole, and can be answered at once: that is done here, without a task.
4. One who asks one thing after the other, alone, is waited for on the spot, for a moment.
5. What takes waiting goes to a task (*hand_over*), which parks the connection again: a request that
   came in part, one that needs a save or room, a reply that is not read.
"""

from __future__ import annotations

import os
import select
from collections.abc import Callable
from time import monotonic

import trio

from uuidd.core.wire import RPC_FIRST, rpc
from uuidd.server.limits import Limits
from uuidd.server.service import MALFORMED, Service, reply_to
from uuidd.server.stream import Stream

EVENTS = 64
"""Users, and connections of one, that are looked for at once."""

QUEUES = 32
"""Users that have a queue of their own; all beyond share one. Each costs a descriptor."""

USER_SECONDS = 0.0001
"""For how long one user is served before another one is: some five requests. Who sends one at a
time waits for so long at each."""

TURN_SECONDS = 0.001
"""For how long the poller serves before all others have a turn: no more than a request may wait."""

SPINS = 100
"""How often to look for the next request of one who asks one thing after the other, and is alone in
that: some 30 microseconds. To sleep and wake up takes longer."""

SOON = 0.0002
"""Seconds between two of his requests, at the most: it is not worth it for others."""

PIPELINED = 16
"""Requests of one connection answered in one go; with more it gets a task, so that others get their
turn."""

NO_WATCH = "no_watch"
"""Why a connection ended that the system lets no epoll wait for (fs.epoll.max_user_watches)."""

PAUSE = 0.01
"""Seconds between two looks while the system lets trio wait for nothing more."""

HandOver = Callable[[Stream, bytes, bytes], None]
"""Goes on with a connection in a task, with what was not answered, and replies not sent."""

Begin = Callable[[Stream, bytes], None]
"""Goes on with a connection whose first bytes are not of the rpc dialect."""


class _Queue:
    """The silent connections of a user, by descriptor."""

    __slots__ = ("epoll", "ready", "streams")

    def __init__(self) -> None:
        self.epoll = select.epoll()
        self.streams: dict[int, Stream] = {}
        self.ready: list[int] = []


SHARED_QUEUE = -1
"""Stands for all users who have no queue of their own."""


class Poller:
    """Serves silent connections; *hang_up* closes one, *begin* and *hand_over* go on with it."""

    def __init__(
        self,
        service: Service,
        limits: Callable[[], Limits],
        *,
        begin: Begin,
        hand_over: HandOver,
        hang_up: Callable[[Stream], None],
    ) -> None:
        self._limits = limits
        self._service = service
        self._begin = begin
        self._hand_over = hand_over
        self._hang_up = hang_up
        self._users = select.epoll()
        self._queues: dict[int, _Queue] = {}
        self._by_fd: dict[int, _Queue] = {}
        # The connection that was the only one to ask when last looked, and when that was; and
        # whether it was the same one soon before.
        self._only: int | None = None
        self._only_at = 0.0
        self._lone = False
        # With one core it would keep the other from asking.
        self._may_busy_poll = len(os.sched_getaffinity(0)) > 1
        self._opened(SHARED_QUEUE)

    async def run(self) -> None:
        """Serve until cancelled."""
        turn_ends = monotonic() + TURN_SECONDS
        with self._users:
            while True:
                ready = self._users.poll(0, EVENTS)
                if not ready and self._lone:
                    self._lone = False
                    # First a turn of the others, who would have none for a millisecond else.
                    await trio.lowlevel.checkpoint()
                    turn_ends = monotonic() + TURN_SECONDS
                    ready = self._busy_poll()
                if not ready:
                    try:
                        await trio.lowlevel.wait_readable(self._users.fileno())
                    except OSError:
                        await trio.sleep(PAUSE)
                    turn_ends = monotonic() + TURN_SECONDS
                # All of them before any a second time: epoll would give the same first again.
                for fd, _ in ready:
                    if fd in self._by_fd:
                        self._serve_some(self._by_fd[fd])
                    if monotonic() > turn_ends:
                        await trio.lowlevel.checkpoint()
                        turn_ends = monotonic() + TURN_SECONDS

    def park(self, stream: Stream) -> None:
        """Wait for the next request of a connection; hang up if the system does not let us."""
        if self._park(stream) is None:
            self._service.rpc.refuse(NO_WATCH)
            self._hang_up(stream)

    def drop(self, stream: Stream) -> bool:
        """Hang up on a connection if it is parked; whether it was."""
        fd = stream.sock.fileno()
        for queue in (self._queues.get(stream.uid), self._queues[SHARED_QUEUE]):
            if queue is not None and queue.streams.get(fd) is stream:
                self._close(queue, stream)
                return True
        return False

    def answered(self, stream: Stream, data: bytes) -> bool:
        """Answer the rpc requests of a new connection, and park it; False: they need a task."""
        if data[0] not in RPC_FIRST:
            return False
        queue = self._park(stream)
        if queue is None:
            return False
        self._answer(queue, stream, data, monotonic() + USER_SECONDS)
        return True

    def _park(self, stream: Stream) -> _Queue | None:
        queue = self._queues.get(stream.uid) or self._opened(stream.uid)
        fd = stream.sock.fileno()
        try:
            queue.epoll.register(fd, select.EPOLLIN)
        except OSError:
            return None
        queue.streams[fd] = stream
        return queue

    def _opened(self, uid: int) -> _Queue:
        """Give a new queue for a user, or that of the crowd."""
        if len(self._queues) > QUEUES:
            self._close_an_empty_one()
        if len(self._queues) > QUEUES:
            return self._queues[SHARED_QUEUE]
        try:
            queue = _Queue()
            self._users.register(queue.epoll.fileno(), select.EPOLLIN)
        except (OSError, ValueError):
            # No descriptor is left. Then his turn is the crowd's.
            return self._queues[SHARED_QUEUE]
        self._queues[uid] = queue
        self._by_fd[queue.epoll.fileno()] = queue
        return queue

    def _close_an_empty_one(self) -> None:
        # Not as soon as it is empty: a user's only connection may be with a task just now.
        for uid, queue in self._queues.items():
            if not queue.streams and uid != SHARED_QUEUE:
                del self._queues[uid], self._by_fd[queue.epoll.fileno()]
                queue.epoll.close()
                return

    def _busy_poll(self) -> list[tuple[int, int]]:
        """Look for a moment whether the only one who asks goes on to."""
        for _ in range(SPINS):
            if ready := self._users.poll(0, EVENTS):
                return ready
        return []

    def _serve_some(self, queue: _Queue) -> None:
        """Serve a user's connections, each once before any a second time, for his turn."""
        now = monotonic()
        ends = now + USER_SECONDS
        if not queue.ready:
            ready = [fd for fd, _ in queue.epoll.poll(0, EVENTS)]
            only = ready[0] if len(ready) == 1 else None
            self._lone = (
                only is not None
                and only == self._only
                and now < self._only_at + SOON
                and self._may_busy_poll
            )
            self._only, self._only_at = only, now
            ready.reverse()
            queue.ready = ready
        while queue.ready:
            stream = queue.streams.get(queue.ready.pop())
            if stream is not None:
                self._serve(queue, stream, ends)
            if monotonic() > ends:
                break

    def _serve(self, queue: _Queue, stream: Stream, ends: float) -> None:
        is_new = not stream.heard
        data = stream.receive_now()
        if data is None:
            return
        if not data:
            self._close(queue, stream)
        elif is_new and data[0] not in RPC_FIRST:
            self._unpark(queue, stream)
            self._begin(stream, data)
        else:
            self._answer(queue, stream, data, ends)

    def _answer(self, queue: _Queue, stream: Stream, data: bytes, ends: float) -> None:
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
            malformed = None
        except rpc.MalformedError as error:
            malformed = error
        sent = stream.send_now(replies) if replies else 0
        if malformed is not None and sent == len(replies):
            reply = reply_to(malformed)
            if not reply or stream.send_now(reply):
                self._service.rpc.refuse(MALFORMED)
                self._close(queue, stream)
                return
        if end < len(data) or sent < len(replies):
            self._unpark(queue, stream)
            self._hand_over(stream, data[end:], replies[max(sent, 0) :])

    def _close(self, queue: _Queue, stream: Stream) -> None:
        self._unpark(queue, stream)
        self._hang_up(stream)

    def _unpark(self, queue: _Queue, stream: Stream) -> None:
        fd = stream.sock.fileno()
        queue.epoll.unregister(fd)
        del queue.streams[fd]
