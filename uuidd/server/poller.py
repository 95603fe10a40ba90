"""The connections that are silent, and the requests that end their silence.

Theory of operation

1. Before its first request, and between two requests in rpc, a connection is *parked* here. It has
   no task and no buffer. One epoll for each user waits for all of that user's connections
   (epoll(7)). So ten thousand silent connections cost little.
2. One more epoll waits for those epolls. Users are served in turns (fairness.py), so a user with
   thousands of connections delays the others by one turn.
3. Nearly all requests arrive whole and can be answered at once: to pump their client here is enough
   (client.py). Whatever takes waiting goes to a task (acceptor.py). The epoll is level-triggered.
   So what one pump leaves unread is told of again, and so is an end that comes with the last bytes.
4. A client that alone sends back-to-back requests is busy-polled: the poller looks for its next
   request for a moment before it goes to sleep. Before that the tasks have a turn.
5. A connection that has ended, and whose client has not read the page, is parked too, in a queue
   of its own. It is closed when all was read.
"""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import trio

from uuidd.server.client import END, REQUEST, Client, Next
from uuidd.server.fairness import TURN_SECONDS

ROUND_SECONDS = 0.001
"""How long the poller serves users before the tasks have their turns: the save of the state, new
connections, and the requests that wait. More would delay them, less would cost throughput."""

EVENTS = 64
"""The most users, or connections of one user, that one call of epoll_wait(2) returns."""

QUEUES = 32
"""Users with a queue of their own; all others share one. Each queue costs a descriptor."""

ENDS = 8
"""Connections that have ended, and were read, of which one call of epoll_wait(2) tells: about as
many as can be closed in a turn."""

SPINS = 100
"""How often to poll for a back-to-back request: some 30 microseconds. To sleep and to wake up takes
longer: without it, a client that is alone gets a quarter fewer answers."""

BACK_TO_BACK = 0.0002
"""The most seconds between two requests of a client that is busy-polled."""

PAUSE = 0.01
"""Seconds between two looks while the system lets trio wait for nothing more."""

_READ = select.EPOLLOUT | select.EPOLLET
"""Ready each time that the peer has read something, or has closed."""


@dataclass(slots=True, eq=False)
class _Queue:
    """The parked clients of a user, by descriptor, and those *ready* to be served."""

    epoll: select.epoll
    clients: dict[int, Client] = field(default_factory=dict)
    ready: list[int] = field(default_factory=list)


class Poller:
    """Pumps silent clients. *place* takes one for which something other than a request comes next.

    *monotonic* is the clock of turns, *epoll* makes an epoll, *cores* is how many the daemon may
    use.
    """

    def __init__(
        self,
        place: Callable[[Client, Next], None],
        monotonic: Callable[[], float] = time.monotonic,
        epoll: Callable[[], select.epoll] = select.epoll,
        cores: int | None = None,
    ) -> None:
        self._place = place
        self._monotonic = monotonic
        # With one core, to poll would keep the client from it.
        self._spins = SPINS if (cores or len(os.sched_getaffinity(0))) > 1 else 0
        self._back_to_back = False
        self._alone, self._alone_at = -1, 0.0
        self._users = epoll()
        self._shared, self._ended, *own = (_Queue(epoll()) for _ in range(2 + QUEUES))
        # By uid. The key of a queue that no user has had yet is below 0.
        self._queues = {-number: queue for number, queue in enumerate(own, 1)}
        self._by_fd = {each.epoll.fileno(): each for each in (self._shared, self._ended, *own)}
        for fd in self._by_fd:
            self._users.register(fd, select.EPOLLIN)

    async def run(self) -> None:
        """Serve until cancelled."""
        monotonic = self._monotonic
        round_ends = monotonic() + ROUND_SECONDS
        while True:
            if not (ready := self._users.poll(0, EVENTS)):
                ready = await self._wait()
                round_ends = monotonic() + ROUND_SECONDS
            # Each once before any a second time: epoll would return the first ones again.
            for fd, _ in ready:
                self._serve_user(self._by_fd[fd])
                if monotonic() > round_ends:
                    await trio.lowlevel.checkpoint()
                    round_ends = monotonic() + ROUND_SECONDS

    async def _wait(self) -> list[tuple[int, int]]:
        """Wait until a client may be ready; return those that a busy poll has found so."""
        if self._back_to_back:
            self._back_to_back = False
            await trio.lowlevel.checkpoint()
            for _ in range(self._spins):
                if ready := self._users.poll(0, EVENTS):
                    return ready
        try:
            await trio.lowlevel.wait_readable(self._users.fileno())
        except OSError:
            await trio.sleep(PAUSE)
        return []

    def park(self, client: Client) -> None:
        """Wait for the next request of a client, or if it has ended until it has read everything.

        End it if the system does not let us wait.
        """
        queue, events = self._ended, _READ
        if not client.ended:
            queue, events = self._queue_of(client.uid), select.EPOLLIN
        fd = client.sock.fileno()
        try:
            queue.epoll.register(fd, events)
        except OSError:
            # fs.epoll.max_user_watches
            client.tally.refuse("no_watch")
            self._place(client, END)
        else:
            queue.clients[fd] = client

    def drop(self, client: Client) -> bool:
        """End a client if it is parked; return whether it was."""
        fd = client.sock.fileno()
        for queue in (self._queues.get(client.uid, self._shared), self._shared, self._ended):
            if queue.clients.get(fd) is client:
                client.end()
                self._leave(queue, client, END)
                return True
        return False

    def _queue_of(self, uid: int) -> _Queue:
        """Return the queue of a user, or if none is free the one that others share."""
        if uid not in self._queues:
            free = (each for each, queue in self._queues.items() if not queue.clients)
            # A task may serve this user's only connection. Then the user gets another queue later.
            if (last := next(free, None)) is None:
                return self._shared
            self._queues[uid] = self._queues.pop(last)
        return self._queues[uid]

    def _serve_user(self, queue: _Queue) -> None:
        """Serve a user's connections for one turn, each once before any a second time."""
        if queue is self._ended:
            # All at once, for none of these is ready a second time.
            for fd, _ in queue.epoll.poll(0, ENDS):
                if not queue.clients[fd].is_unread():
                    self._leave(queue, queue.clients[fd], END)
            return
        monotonic, ready = self._monotonic, queue.ready
        now = monotonic()
        ends = now + TURN_SECONDS
        if not ready:
            ready = queue.ready = [fd for fd, _ in reversed(queue.epoll.poll(0, EVENTS))]
            alone = ready[0] if len(ready) == 1 else -1
            is_soon = alone == self._alone and now < self._alone_at + BACK_TO_BACK
            self._back_to_back = is_soon and alone >= 0
            self._alone, self._alone_at = alone, now
        while ready:
            client = queue.clients.get(ready.pop())
            if client is not None:
                then = client.pump(ends, monotonic)
                if then is not REQUEST:
                    self._leave(queue, client, then)
            if monotonic() > ends:
                break

    def _leave(self, queue: _Queue, client: Client, then: Next) -> None:
        fd = client.sock.fileno()
        queue.epoll.unregister(fd)
        del queue.clients[fd]
        self._place(client, then)
