"""Accepts connections, and has each client parked, in a task of its own, or ended.

Theory of operation

1. A new connection is counted first, and then its client is pumped (client.py): many callers have
   sent their request already. Otherwise ``status`` would not count the connection that asks.
2. What ``pump`` returns says whose the client is next. The poller has it while its next request is
   awaited (poller.py). A task has it while it waits for anything else, and then parks it. Nobody
   else has it meanwhile: two who pumped one client would mix its replies.
3. A task pumps in turns of the user (fairness.py), so that one user's tasks together get no more
   time than the poller would give the user. Only an answer that has waited is finished at once: of
   the thousand requests that one save lets go on, each would wait for the turns of all before it.
4. Each wait for the client has a deadline, and what is late is counted as refused. A client that
   has gone is not. Only so many connections of one user may leave replies unread.
5. A connection over which the page is on its way is parked after its end, and counts until the page
   was read. Otherwise one user could have thousands of such connections, and the kernel would pass
   no page to others (leasing.py).
6. A stop first lets leases last, before any connection ends. Then it lets reading end, and so each
   client ends after what it has sent already. Those that have sent nothing have a moment first.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import select
import socket
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from weakref import WeakValueDictionary

import trio

from uuidd.server.admission import Admission
from uuidd.server.client import END, PAUSE, PIECE, READ, REQUEST, REST, Client, Next
from uuidd.server.descriptors import Dropper
from uuidd.server.fairness import TURN_SECONDS, counting
from uuidd.server.peers import peer_uid
from uuidd.server.poller import Poller
from uuidd.server.service import Service

ACCEPTS = 8
"""Connections accepted, and perhaps answered, before the others have their turn: half a round of
the poller."""

SHORTAGE_PAUSE = 0.1
"""Seconds to wait when the system has no descriptor or no memory for another connection."""

GRACE, NEW_GRACE = 0.1, 1.0
"""Seconds that a stop leaves to clients that have not sent a request yet: to one that has been
silent for longer than a request may take, and to one that has not. A caller of libuuid is killed by
SIGPIPE when it writes after the close."""

GRACE_LOOK = 0.02
"""Seconds between two looks whether all of them have sent something."""

_FAMILY, _TYPE = int(socket.AF_UNIX), int(socket.SOCK_STREAM)

_EXHAUSTED = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM, errno.ENOSPC}

log = logging.getLogger("uuidd")


class Acceptor:
    """Serves what connects to *listener*, a listening socket that does not block.

    *monotonic* is the clock of turns.
    """

    def __init__(
        self,
        listener: socket.socket,
        service: Service,
        admission: Admission,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._listener = listener
        self._service = service
        self._admission = admission
        self._open, self._rejected = admission.open, admission.rejected
        self._limits = service.limits
        self._dropper = Dropper(service.rpc.refuse)
        self._monotonic = monotonic
        # Of each user one task at a time. A lock lasts as long as a task has it or waits for it.
        self._turns: WeakValueDictionary[int, trio.Lock] = WeakValueDictionary()
        # The connections of each user whose replies wait to be read.
        self._unread: Counter[int] = Counter()
        self._ended = trio.lowlevel.ParkingLot()
        self._accepting = trio.CancelScope()
        self._exhausted = self._draining = self._closing = False
        self._poller = Poller(self._place, monotonic)

    async def run(self) -> None:
        """Serve until ``stop``, and then until the last connection has ended."""
        try:
            async with trio.open_nursery() as self._tasks:
                self._tasks.start_soon(_end_if_out_of_memory, self._poller.run)
                self._tasks.start_soon(self._dropper.run)
                with self._accepting:
                    await _end_if_out_of_memory(self._accept)
                self._stop_reading()
                if self._draining:
                    await _end_if_out_of_memory(self._accept)
                await self._finish()
                self._tasks.cancel_scope.cancel()
        finally:
            self._closing = True
            for client in self._open | self._rejected:
                self._end(client)

    def stop(self, *, drain: bool) -> None:
        """Stop accepting. Open connections end once their requests have been answered.

        *drain* first accepts the connections that the kernel has queued; otherwise they are left to
        the next daemon that listens. A client that has not sent anything has a moment to do so.
        """
        self._draining = drain
        self._accepting.cancel()

    async def _accept(self) -> None:
        """Accept until cancelled, or after ``stop`` until no connection is queued."""
        # An accept that finds none takes five times as long as to ask first.
        connecting = select.poll()
        connecting.register(self._listener, select.POLLIN)
        accepted = 0
        while True:
            try:
                if not self._closing and not connecting.poll(0):
                    await trio.lowlevel.wait_readable(self._listener)
                # What accept() does besides this is to look up enums, and that takes as long again.
                fd, _ = self._listener._accept()  # type: ignore[attr-defined]
            except BlockingIOError:
                if self._closing:
                    # Only this tells: a listener that was shut down always polls readable.
                    return
                await trio.lowlevel.checkpoint()
            except OSError as error:
                await self._after(error)
            else:
                self._exhausted = False
                sock = socket.SocketType(_FAMILY, _TYPE, 0, fd)
                self.admit(sock, peer_uid(sock))
                accepted += 1
                if not accepted % ACCEPTS:
                    await trio.lowlevel.checkpoint()

    async def _after(self, error: OSError) -> None:
        """Go on after a failed accept: the client has gone, or the system is short of something."""
        if error.errno not in _EXHAUSTED:
            await trio.lowlevel.checkpoint()
            return
        if not self._exhausted:
            self._exhausted = True
            log.error("cannot accept connections, and keeps trying: %s", error.strerror)
        await trio.sleep(SHORTAGE_PAUSE)

    def admit(self, sock: socket.SocketType, uid: int) -> None:
        """Serve a new connection of the user *uid*, or reject it if there is no room for it."""
        admission = self._admission
        refusal = admission.refusal(uid)
        if refusal and admission.make_room(uid, self._poller.drop):
            refusal = admission.refusal(uid)
        client = Client(self._dropper.wary(sock), uid, self._service, refusal)
        then = client.receive()
        if refusal:
            self._service.rpc.refuse("connections")
        elif then is None and client.tally is self._service.libuuid:
            then = self._pump(client)
        # Nobody can see that one that has ended was open. To count it costs a tenth of the whole.
        if then is END or not admission.enter(client):
            client.sock.close()
            return
        if then is None:
            then = self._pump(client)
        elif client.silent_since is not None:
            client.silent_since = trio.current_time()
        self._place(client, then)

    def _pump(self, client: Client) -> Next:
        return client.pump(self._monotonic() + TURN_SECONDS, self._monotonic)

    def _place(self, client: Client, then: Next) -> None:
        """Leave a client, which was just pumped, to whom it is for."""
        if then is END:
            self._end(client)
        elif then is REQUEST:
            self._poller.park(client)
        else:
            self._tasks.start_soon(_end_if_out_of_memory, self._attend, client, then)

    async def _attend(self, client: Client, then: Next) -> None:
        """Wait for what has to happen, and pump, until the client is silent or ends."""
        while then is not END and then is not REQUEST:
            then = await self._next(client, then)
        self._place(client, then)

    async def _next(self, client: Client, then: Next) -> Next:
        """Wait for what has to happen, pump, and return what has to happen next."""
        if then is PAUSE and client.pause is not None:
            await client.pause()
            return client.pump(0.0)
        if then is READ or then is REST:
            if not await self._in_time(client, then):
                if not client.refusal:
                    client.tally.refuse("unread" if then is READ else "too_late")
                return END
            # Outside of a turn, so that an end waits for none.
            if then is REST and (waits := client.receive()):
                return waits
        async with self._turns.setdefault(client.uid, trio.Lock()):
            while (then := self._pump(client)) is PIECE:
                await trio.lowlevel.checkpoint()
        return then

    async def _in_time(self, client: Client, then: Next) -> bool:
        """Wait until a client has sent or read something; return whether it has by its deadline."""
        limits = self._limits
        counted: contextlib.AbstractContextManager[None] = contextlib.nullcontext()
        wait, seconds = trio.lowlevel.wait_readable, limits.request_seconds
        if then is READ:
            if self._unread[client.uid] >= limits.unread_per_uid:
                return False
            counted = counting(self._unread, client.uid)
            wait, seconds = trio.lowlevel.wait_writable, limits.reply_seconds
        if client.deadline is None:
            client.deadline = trio.current_time() + seconds
        # An OSError means that the system allows no more waiting (fs.epoll.max_user_watches).
        with counted, trio.move_on_at(client.deadline), contextlib.suppress(OSError):
            await wait(client.sock)
            return True
        return False

    def _stop_reading(self) -> None:
        """Let leases last, and read nothing more over connections that have sent something."""
        self._service.leasing.stop()
        self._closing = True
        for client in list(self._open):
            if client.ended:
                self._poller.drop(client)
            elif client.silent_since is None:
                client.end_reading()

    async def _finish(self) -> None:
        """Leave clients that have sent nothing a moment to do so; wait until all have ended."""
        begun = trio.current_time()
        long_ago = begun - self._limits.request_seconds

        def may_send(client: Client) -> bool:
            if client.silent_since is None:
                return False
            is_new = client.silent_since > long_ago and not client.refusal
            return trio.current_time() < begun + (NEW_GRACE if is_new else GRACE)

        while any(map(may_send, self._open | self._rejected)):  # noqa: ASYNC110  (once)
            await trio.sleep(GRACE_LOOK)
        for client in self._open | self._rejected:
            client.end_reading()
        while self._open or self._rejected:
            await self._ended.park()

    def _end(self, client: Client) -> None:
        # It refers to the client, and counts as waiting until Python finds that cycle.
        client.answer = None
        self._service.leasing.release(client)
        if not (client.ended or self._closing) and client.is_unread():
            client.end()
            self._poller.park(client)
            return
        self._admission.leave(client)
        client.sock.close()
        self._ended.unpark_all()


async def _end_if_out_of_memory(work: Callable[..., Awaitable[None]], *arguments: object) -> None:
    """Do *work* with *arguments*, and end the process at once when there is no memory for it.

    An exception that is raised needs memory too, and a daemon once hung while it handled one.
    This end is a crash like any other: the next start repeats no id.
    """
    try:
        await work(*arguments)
    except MemoryError:
        with contextlib.suppress(OSError):
            os.write(2, b"uuidd: ERROR: out of memory, ending at once\n")
        os._exit(1)
