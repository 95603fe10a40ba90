"""The connections that are silent, and the requests that end their silence.

Theory of operation

1. Before its first request, and between two requests in rpc, a connection is *parked* here. It has
   no task and no buffer. One epoll for each user waits for all of that user's connections
   (epoll(7)). So ten thousand silent connections cost little.
2. One more epoll waits for those epolls. Users are served in turns (requests.py), so a user with
   thousands of connections delays the others by one turn.
3. Nearly all requests arrive whole and can be answered at once. That is done here, without a task.
4. A *lone client* sends one request after the other, and nobody else sends any. The poller then
   polls for its next request for a moment (busy polling), instead of going to sleep.
5. A connection that has ended, and whose client has not read the page, is parked too, in a queue
   of its own. It is closed when all was read.
6. Whatever takes waiting goes to a task (*hand_over*), which parks the connection again: a request
   that arrived in part, one that needs a save or free ticks, a reply that is not read.
"""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable

import trio

from uuidd.core.wire import RPC_FIRST, rpc
from uuidd.server.requests import ROUND_SECONDS, TURN_SECONDS, answer_requests
from uuidd.server.service import MALFORMED, Service, reply_to
from uuidd.server.settings import Limits
from uuidd.server.stream import Stream

EVENTS = 64
"""The most users, or connections of one user, that one call of epoll_wait(2) returns."""

QUEUES = 32
"""Users with a queue of their own; all others share one. Each queue costs a descriptor."""

ENDS = 8
"""Connections that have ended, and were read, of which one call of epoll_wait(2) tells: about as
many as can be closed in a turn."""

SPINS = 100
"""How often to poll for the next request of a lone client: some 30 microseconds. Going to sleep and
waking up takes longer."""

LONE_SECONDS = 0.0002
"""The longest time between two requests of a lone client. Polling for slower ones does not pay."""

NO_WATCH = "no_watch"
"""Why a connection ended that the system lets no epoll wait for (fs.epoll.max_user_watches)."""

PAUSE = 0.01
"""Seconds between two looks while the system lets trio wait for nothing more."""

SHARED_QUEUE = -1
"""Stands for all users without a queue of their own."""

_READ = select.EPOLLOUT | select.EPOLLET
"""Ready each time that the peer has read something, or has closed."""

HandOver = Callable[[Stream, bytes, bytes], None]
"""Goes on with a connection in a task, with the bytes not answered and the replies not sent."""

Begin = Callable[[Stream, bytes], None]
"""Goes on with a connection whose first bytes are not rpc."""


class _Queue:
    """The silent connections of a user, by descriptor, and those *ready* to be read."""

    __slots__ = ("epoll", "ready", "streams")

    def __init__(self, epoll: select.epoll) -> None:
        self.epoll = epoll
        self.streams: dict[int, Stream] = {}
        self.ready: list[int] = []


class _LoneClient:
    """Whether one connection alone sends requests, each soon after the one before: *present*."""

    __slots__ = ("_at", "_fd", "present")

    def __init__(self) -> None:
        self._fd: int | None = None
        self._at = 0.0
        self.present = False

    def note(self, ready: list[int], now: float) -> None:
        """Note which connections had sent something at *now*."""
        fd = ready[0] if len(ready) == 1 else None
        self.present = fd is not None and fd == self._fd and now < self._at + LONE_SECONDS
        self._fd, self._at = fd, now


def default_spins() -> int:
    """Return SPINS, or 0 with one core: polling would keep the client from it."""
    return SPINS if len(os.sched_getaffinity(0)) > 1 else 0


class Poller:
    """Serves silent connections; *hang_up* closes one, *begin* and *hand_over* go on with it.

    *monotonic*, *epoll* and *spins* are for tests.
    """

    def __init__(
        self,
        service: Service,
        limits: Limits,
        *,
        begin: Begin,
        hand_over: HandOver,
        hang_up: Callable[[Stream], None],
        monotonic: Callable[[], float] = time.monotonic,
        epoll: Callable[[], select.epoll] = select.epoll,
        spins: int | None = None,
    ) -> None:
        self._limits = limits
        self._service = service
        self._begin = begin
        self._hand_over = hand_over
        self._hang_up = hang_up
        self._monotonic = monotonic
        self._epoll = epoll
        self._spins = default_spins() if spins is None else spins
        self._users = epoll()
        self._queues: dict[int, _Queue] = {}
        self._by_fd: dict[int, _Queue] = {}
        self._lone = _LoneClient()
        self._open_queue(SHARED_QUEUE)
        self._ended = self._new_queue()

    async def run(self) -> None:
        """Serve until cancelled."""
        monotonic = self._monotonic
        round_ends = monotonic() + ROUND_SECONDS
        with self._users:
            while True:
                ready = self._users.poll(0, EVENTS)
                if not ready and self._spins and self._lone.present:
                    self._lone.present = False
                    # First a turn of the tasks, which would have none for a whole round otherwise.
                    await trio.lowlevel.checkpoint()
                    round_ends = monotonic() + ROUND_SECONDS
                    ready = self._busy_poll()
                if not ready:
                    try:
                        await trio.lowlevel.wait_readable(self._users.fileno())
                    except OSError:
                        await trio.sleep(PAUSE)
                    round_ends = monotonic() + ROUND_SECONDS
                # Each once before any a second time: epoll would return the first ones again.
                for fd, _ in ready:
                    if fd in self._by_fd:
                        self._serve_user(self._by_fd[fd])
                    if monotonic() > round_ends:
                        await trio.lowlevel.checkpoint()
                        round_ends = monotonic() + ROUND_SECONDS

    def park(self, stream: Stream) -> None:
        """Wait for the next request of a connection, or if it has ended until all of it was read.

        Hang up if the system does not let us.
        """
        if self._park(stream) is None:
            self._service.rpc.refuse(NO_WATCH)
            self._hang_up(stream)

    def drop(self, stream: Stream) -> bool:
        """Hang up on a connection if it is parked; return whether it was."""
        fd = stream.sock.fileno()
        for queue in (self._queues.get(stream.uid), self._queues[SHARED_QUEUE], self._ended):
            if queue is not None and queue.streams.get(fd) is stream:
                stream.end()
                self._close(queue, stream)
                return True
        return False

    def try_answer(self, stream: Stream, data: bytes) -> bool:
        """Answer the rpc requests of a new connection, and park it; False: they need a task."""
        if data[0] not in RPC_FIRST:
            return False
        queue = self._park(stream)
        if queue is None:
            return False
        self._answer(queue, stream, data, self._monotonic() + TURN_SECONDS)
        return True

    def _park(self, stream: Stream) -> _Queue | None:
        queue, events = self._ended, _READ
        if not stream.ended:
            queue = self._queues.get(stream.uid) or self._open_queue(stream.uid)
            events = select.EPOLLIN
        fd = stream.sock.fileno()
        try:
            queue.epoll.register(fd, events)
        except OSError:
            return None
        queue.streams[fd] = stream
        return queue

    def _open_queue(self, uid: int) -> _Queue:
        """Return a new queue for a user, or the shared one if there are too many."""
        if len(self._queues) > QUEUES:
            self._close_an_empty_queue()
        if len(self._queues) > QUEUES:
            return self._queues[SHARED_QUEUE]
        try:
            queue = self._queues[uid] = self._new_queue()
            return queue
        except (OSError, ValueError):
            # No descriptor is left.
            return self._queues[SHARED_QUEUE]

    def _new_queue(self) -> _Queue:
        queue = _Queue(self._epoll())
        self._users.register(queue.epoll.fileno(), select.EPOLLIN)
        self._by_fd[queue.epoll.fileno()] = queue
        return queue

    def _close_an_empty_queue(self) -> None:
        # Only when another needs it: the user's only connection may be with a task just now.
        for uid, queue in self._queues.items():
            if not queue.streams and uid != SHARED_QUEUE:
                del self._queues[uid], self._by_fd[queue.epoll.fileno()]
                queue.epoll.close()
                return

    def _busy_poll(self) -> list[tuple[int, int]]:
        """Return what has become ready within a moment, and do not go to sleep meanwhile."""
        for _ in range(self._spins):
            if ready := self._users.poll(0, EVENTS):
                return ready
        return []

    def _serve_user(self, queue: _Queue) -> None:
        """Serve a user's connections for one turn, each once before any a second time."""
        if queue is self._ended:
            self._close_those_read()
            return
        now = self._monotonic()
        ends = now + TURN_SECONDS
        if not queue.ready:
            ready = [fd for fd, _ in queue.epoll.poll(0, EVENTS)]
            self._lone.note(ready, now)
            ready.reverse()
            queue.ready = ready
        while queue.ready:
            stream = queue.streams.get(queue.ready.pop())
            if stream is not None:
                self._serve(queue, stream, ends)
            if self._monotonic() > ends:
                break

    def _close_those_read(self) -> None:
        # All at once, for none of these is ready a second time.
        for fd, _ in self._ended.epoll.poll(0, ENDS):
            stream = self._ended.streams[fd]
            if not stream.is_unread():
                self._close(self._ended, stream)

    def _serve(self, queue: _Queue, stream: Stream, ends: float) -> None:
        is_new = not stream.received
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
        replies, end, stopped_by = answer_requests(
            data,
            self._service.answer,
            uid=stream.uid,
            limits=self._limits,
            ends=ends,
            monotonic=self._monotonic,
        )
        if not replies:
            sent = 0
        elif stream.greeted:
            # As below, for one call less: nearly all replies come here.
            sent = stream.send_now(replies)
        else:
            sent = self._service.leasing.reply_now(stream, replies)
        if isinstance(stopped_by, rpc.MalformedError) and sent == len(replies):
            reply = reply_to(stopped_by)
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
