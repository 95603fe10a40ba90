"""Accepts connections: answers at once what has arrived already, starts a task for what has not."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import select
import socket
from collections.abc import Awaitable, Callable
from functools import partial
from typing import NoReturn

import trio

from uuidd.core.wire import LIBUUID_FIRST
from uuidd.server.admission import Admission, Evictor
from uuidd.server.connection import reject, resume, serve_connection
from uuidd.server.descriptors import Dropper, WaryStream, may_hold_descriptors
from uuidd.server.fairness import Turns
from uuidd.server.peers import peer_uid
from uuidd.server.poller import Poller
from uuidd.server.requests import ACCEPTS, answer_libuuid
from uuidd.server.service import Service
from uuidd.server.settings import Limits
from uuidd.server.stream import Stream

PAUSE = 0.1
"""Seconds to wait when the system has no descriptor or no memory for another connection."""

GRACE, NEW_GRACE = 0.1, 1.0
"""Seconds that a stop leaves to clients that have not sent a request yet: to one that has been
silent for longer than a request may take, and to one that has not. A caller of libuuid is killed by
SIGPIPE when it writes after the close."""

GRACE_LOOK = 0.02
"""Seconds between two looks whether all of them have sent something."""

DESCRIPTORS = "descriptors"
"""Why a connection ended over which a descriptor was passed."""

_FAMILY, _TYPE = int(socket.AF_UNIX), int(socket.SOCK_STREAM)

_EXHAUSTED = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM, errno.ENOSPC}

log = logging.getLogger("uuidd")


class Acceptor:
    """Serves what connects to *listener*, a listening socket that does not block."""

    def __init__(
        self, listener: socket.socket, service: Service, admission: Admission, limits: Limits
    ) -> None:
        self._listener = listener
        self._service = service
        self._admission = admission
        self._limits = limits
        self._dropper = Dropper(partial(service.rpc.refuse, DESCRIPTORS))
        self._accepting = trio.CancelScope()
        self._exhausted = self._draining = False

    async def run(self) -> None:
        """Serve until ``stop``, and then until the last connection has ended."""
        with contextlib.ExitStack() as undo:
            async with trio.open_nursery() as tasks:
                connections = _Connections(tasks, self._service, self._admission, self._limits)
                undo.callback(connections.close)
                tasks.start_soon(connections.poll)
                tasks.start_soon(self._dropper.run)
                with self._accepting:
                    await self._accept(connections)
                connections.stop()
                if self._draining:
                    await self._accept(connections, backlog_only=True)
                await connections.finish()
                tasks.cancel_scope.cancel()

    def stop(self, *, drain: bool) -> None:
        """Stop accepting. Open connections end once their requests have been answered.

        *drain* first accepts the connections that the kernel has queued; otherwise they are left to
        the next daemon that listens. A client that has not sent anything has a moment to do so.
        """
        self._draining = drain
        self._accepting.cancel()

    async def _accept(self, connections: _Connections, *, backlog_only: bool = False) -> None:
        # An accept that finds none takes five times as long as to ask first.
        connecting = select.poll()
        connecting.register(self._listener, select.POLLIN)
        accepted = 0
        while True:
            if not backlog_only and not connecting.poll(0):
                try:
                    await trio.lowlevel.wait_readable(self._listener)
                except OSError as error:
                    await self._after(error)
            try:
                sock = self._accept_one()
            except BlockingIOError:
                if backlog_only:
                    # Only this tells: a listener that was shut down always polls readable.
                    return
                await trio.lowlevel.checkpoint()
                continue
            except OSError as error:
                await self._after(error)
                continue
            self._exhausted = False
            try:
                connections.admit(self._stream(sock))
            except MemoryError:
                _end_without_memory()
            accepted += 1
            if not accepted % ACCEPTS:
                await trio.lowlevel.checkpoint()

    def _accept_one(self) -> socket.SocketType:
        # What accept() does besides this is to look up enums, and that takes as long again.
        fd, _ = self._listener._accept()  # type: ignore[attr-defined]
        return socket.SocketType(_FAMILY, _TYPE, 0, fd)

    def _stream(self, sock: socket.SocketType) -> Stream:
        if may_hold_descriptors(sock):
            return WaryStream(sock, peer_uid(sock), self._dropper)
        return Stream(sock, peer_uid(sock))

    async def _after(self, error: OSError) -> None:
        """Go on after a failed accept: the client has gone, or the system is short of something."""
        if error.errno not in _EXHAUSTED:
            await trio.lowlevel.checkpoint()
            return
        if not self._exhausted:
            self._exhausted = True
            log.error("cannot accept connections, and keeps trying: %s", error.strerror)
        await trio.sleep(PAUSE)


class _Connections:
    """The open connections, each either parked with the poller or served by one of *tasks*."""

    def __init__(
        self, tasks: trio.Nursery, service: Service, admission: Admission, limits: Limits
    ) -> None:
        self._tasks = tasks
        self._service = service
        self._admission = admission
        self._limits = limits
        self._turns = Turns()
        self._open: set[Stream] = set()
        self._rejected: set[Stream] = set()
        self._ended = trio.Event()
        self._stopping = False
        self._poller = Poller(
            service,
            limits,
            begin=self._begin,
            hand_over=self._hand_over,
            hang_up=self._end,
        )
        self._evictor = Evictor(self._open, admission, self._poller.drop, service.rpc.refuse)

    async def poll(self) -> None:
        """Serve the parked connections until cancelled."""
        try:
            await self._poller.run()
        except MemoryError:
            _end_without_memory()

    def admit(self, stream: Stream) -> None:
        """Serve a new connection, or reject it if there is no room for it."""
        refusal = self._admission.refusal(stream.uid)
        if refusal and self._evictor.make_room(stream.uid, self._limits.request_seconds):
            refusal = self._admission.refusal(stream.uid)
        data = stream.receive_now()
        if refusal:
            self._service.rpc.refuse("connections")
            if self._admission.begin_rejection():
                self._rejected.add(stream)
                self._tasks.start_soon(self._reject, stream, data, refusal)
            else:
                stream.close()
        elif data == b"" or (data and self._try_libuuid(stream, data)):
            # Not counted: nobody can see it open, and to count costs a twentieth of the whole.
            stream.close()
        else:
            self._admission.enter(stream.uid)
            self._open.add(stream)
            stream.bound_unread()
            if data is None:
                stream.silent_since = trio.current_time()
                self._poller.park(stream)
            elif not self._poller.try_answer(stream, data):
                self._tasks.start_soon(self._serve, stream, partial(serve_connection, stream, data))

    def stop(self) -> None:
        """Let leases last, and read nothing more over connections that have sent something."""
        self._service.leasing.stop()
        self._stopping = True
        for stream in list(self._open):
            if stream.ended:
                self._poller.drop(stream)
            elif stream.received:
                stream.end_reading()

    async def finish(self) -> None:
        """Leave clients that have sent nothing a moment to do so; wait until all have ended."""
        begun = trio.current_time()
        if not all(stream.received for stream in self._open | self._rejected):
            await trio.sleep(GRACE)
        long_ago = begun - self._limits.request_seconds
        until = begun + NEW_GRACE
        while trio.current_time() < until and self._are_new(long_ago):  # noqa: ASYNC110  (once)
            await trio.sleep(GRACE_LOOK)
        for stream in self._open | self._rejected:
            stream.end_reading()
        while self._open or self._rejected:
            self._ended = trio.Event()
            await self._ended.wait()

    def close(self) -> None:
        """Close all connections."""
        self._stopping = True
        for stream in list(self._open):
            self._end(stream)

    def _are_new(self, since: float) -> bool:
        return any(not each.received and each.silent_since > since for each in self._open)

    def _begin(self, stream: Stream, data: bytes) -> None:
        if self._try_libuuid(stream, data):
            self._end(stream)
        else:
            self._tasks.start_soon(self._serve, stream, partial(serve_connection, stream, data))

    def _try_libuuid(self, stream: Stream, data: bytes) -> bool:
        """Answer a libuuid request if that takes no waiting: a task costs more than the answer."""
        if data[0] not in LIBUUID_FIRST:
            return False
        reply = answer_libuuid(data, self._service.answer_libuuid, uid=stream.uid)
        # Nothing was sent before it, so only a broken client's socket takes none of it: that goes
        # to a task. One that takes a part of it is closed. A refusal is an end without a reply.
        return reply is not None and (not reply or stream.send_now(reply) != 0)

    def _hand_over(self, stream: Stream, data: bytes, unsent: bytes) -> None:
        self._tasks.start_soon(self._serve, stream, partial(resume, stream, data, unsent))

    async def _serve(self, stream: Stream, serve: Callable[..., Awaitable[bool]]) -> None:
        more = False
        try:
            more = await serve(self._service, self._limits, self._turns)
        except MemoryError:
            _end_without_memory()
        finally:
            if not more:
                self._end(stream)
        if more:
            self._poller.park(stream)

    def _end(self, stream: Stream) -> None:
        if stream.lease is not None:
            self._service.leasing.release(stream)
        if not (stream.ended or self._stopping) and stream.greeted and stream.is_unread():
            # The page is on its way. Closed and not counted, one user could have thousands of such
            # connections, and the kernel would pass no page to others.
            stream.end()
            self._poller.park(stream)
            return
        self._open.remove(stream)
        self._admission.leave(stream.uid)
        stream.close()
        self._ended.set()

    async def _reject(self, stream: Stream, data: bytes | None, reason: str) -> None:
        try:
            await reject(stream, data or b"", reason, self._limits)
        finally:
            self._rejected.remove(stream)
            self._admission.end_rejection()
            stream.close()
            self._ended.set()


def _end_without_memory() -> NoReturn:
    """End the process at once. To unwind takes memory too, and a daemon once hung in that.

    It is a crash like any other: the next start repeats nothing.
    """
    with contextlib.suppress(OSError):
        os.write(2, b"uuidd: ERROR: out of memory, ending at once\n")
    os._exit(1)
