"""Accepts connections: answers at once what is there already, starts a task for what is not."""

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
from uuidd.server.admission import Admission
from uuidd.server.connection import resume, serve_connection, turn_away
from uuidd.server.descriptors import Dropper, WaryStream, may_hold_descriptors
from uuidd.server.limits import Limits
from uuidd.server.peers import peer_uid
from uuidd.server.poller import Poller
from uuidd.server.requests import ACCEPTS, answer_libuuid
from uuidd.server.room import Room
from uuidd.server.service import Service
from uuidd.server.stream import Stream
from uuidd.server.turns import Turns

PAUSE = 0.1
"""Seconds to wait when the system has no descriptor or no memory for another connection."""

GRACE, NEW_GRACE = 0.1, 1.0
"""Seconds that a stop leaves to callers that have asked nothing yet: to one that has been silent
for longer than a request may take, and to one that has not. A caller of libuuid's is killed by
SIGPIPE when it writes after the close."""

GRACE_LOOK = 0.02
"""Seconds between two looks whether all of them have asked."""

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
        self.limits = limits
        self._turns = Turns()
        self._open: set[Stream] = set()
        self._turned_away: set[Stream] = set()
        self._task_nursery: trio.Nursery
        self._accepting = trio.CancelScope()
        self._exhausted = self._draining = False
        self._ended = trio.Event()
        self._dropper = Dropper(partial(service.rpc.refuse, DESCRIPTORS))
        self._poller = Poller(
            service,
            lambda: self.limits,
            begin=self._begin,
            hand_over=self._hand_over,
            hang_up=self._end,
        )
        self._room = Room(self._open, admission, self._poller.drop, service.rpc.refuse)

    async def run(self) -> None:
        """Serve until ``stop``, and then until the last connection has ended."""
        try:
            async with trio.open_nursery() as self._task_nursery:
                self._task_nursery.start_soon(self._run_poller)
                self._task_nursery.start_soon(self._dropper.run)
                async with trio.open_nursery() as new:
                    with self._accepting:
                        await self._accept(new)
                    if self._draining:
                        await self._accept(new, those_there=True)
                    await self._hear_out()
                    while self._open:
                        self._ended = trio.Event()
                        await self._ended.wait()
                self._task_nursery.cancel_scope.cancel()
        finally:
            for stream in list(self._open):
                self._end(stream)

    async def _run_poller(self) -> None:
        try:
            await self._poller.run()
        except MemoryError:
            _end_without_memory()

    def stop(self, *, drain: bool) -> None:
        """Read nothing more: connections end with what they have asked.

        Accept nothing more either but, to *drain* the socket, who has connected already; else he is
        left for the next to listen there. Who has asked nothing yet has a moment to do so.
        """
        self._draining = drain
        self._accepting.cancel()
        for stream in self._open:
            if stream.heard:
                stream.end_reading()

    async def _hear_out(self) -> None:
        begun = trio.current_time()
        if not all(stream.heard for stream in self._open | self._turned_away):
            await trio.sleep(GRACE)
        long_ago = begun - self.limits.request_seconds
        until = begun + NEW_GRACE
        while trio.current_time() < until and self._are_new(long_ago):  # noqa: ASYNC110  (once)
            await trio.sleep(GRACE_LOOK)
        for stream in self._open | self._turned_away:
            stream.end_reading()

    def _are_new(self, since: float) -> bool:
        return any(not each.heard and each.silent_since > since for each in self._open)

    async def _accept(self, nursery: trio.Nursery, *, those_there: bool = False) -> None:
        # An accept that finds none takes five times as long as to ask first.
        connecting = select.poll()
        connecting.register(self._listener, select.POLLIN)
        accepted = 0
        while True:
            if not those_there and not connecting.poll(0):
                try:
                    await trio.lowlevel.wait_readable(self._listener)
                except OSError as error:
                    await self._after(error)
            try:
                sock = self._accepted()
            except BlockingIOError:
                if those_there:
                    # One that is shut down looks as though somebody were there.
                    return
                await trio.lowlevel.checkpoint()
                continue
            except OSError as error:
                await self._after(error)
                continue
            self._exhausted = False
            try:
                self._enter(self._stream(sock), nursery)
            except MemoryError:
                _end_without_memory()
            accepted += 1
            if not accepted % ACCEPTS:
                await trio.lowlevel.checkpoint()

    def _accepted(self) -> socket.SocketType:
        # What accept() does beside this is to look up enums, and takes as long again.
        fd, _ = self._listener._accept()  # type: ignore[attr-defined]
        return socket.SocketType(_FAMILY, _TYPE, 0, fd)

    def _stream(self, sock: socket.SocketType) -> Stream:
        if may_hold_descriptors(sock):
            return WaryStream(sock, peer_uid(sock), self._dropper)
        return Stream(sock, peer_uid(sock))

    def _enter(self, stream: Stream, nursery: trio.Nursery) -> None:
        refusal = self._admission.refusal(stream.uid)
        if refusal and self._room.make(stream.uid, self.limits.request_seconds):
            refusal = self._admission.refusal(stream.uid)
        data = stream.receive_now()
        if refusal:
            self._service.rpc.refuse("connections")
            if self._admission.begin_telling():
                self._turned_away.add(stream)
                nursery.start_soon(self._turn_away, stream, data, refusal)
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
                nursery.start_soon(self._talk, stream, partial(serve_connection, stream, data))

    def _begin(self, stream: Stream, data: bytes) -> None:
        if self._try_libuuid(stream, data):
            self._end(stream)
        else:
            talk = partial(serve_connection, stream, data)
            self._task_nursery.start_soon(self._talk, stream, talk)

    def _try_libuuid(self, stream: Stream, data: bytes) -> bool:
        """Answer a libuuid request if that takes no waiting: a task costs more than the answer."""
        if data[0] not in LIBUUID_FIRST:
            return False
        reply = answer_libuuid(data, self._service.answer_libuuid, uid=stream.uid)
        # Nothing was sent before it, so only a broken client's socket takes none of it: that goes
        # to a task. One that takes a part of it is closed. A refusal is an end without a reply.
        return reply is not None and (not reply or stream.send_now(reply) != 0)

    def _hand_over(self, stream: Stream, data: bytes, unsent: bytes) -> None:
        # The nursery of new connections may be closed before the poller has ended.
        self._task_nursery.start_soon(self._talk, stream, partial(resume, stream, data, unsent))

    async def _talk(self, stream: Stream, talk: Callable[..., Awaitable[bool]]) -> None:
        more = False
        try:
            more = await talk(self._service, self.limits, self._turns)
        except MemoryError:
            _end_without_memory()
        finally:
            if not more:
                self._end(stream)
        if more:
            self._poller.park(stream)

    def _end(self, stream: Stream) -> None:
        self._open.remove(stream)
        self._admission.leave(stream.uid)
        stream.close()
        if not self._open:
            self._ended.set()

    async def _turn_away(self, stream: Stream, data: bytes | None, reason: str) -> None:
        try:
            await turn_away(stream, data or b"", reason, self.limits)
        finally:
            self._turned_away.remove(stream)
            self._admission.end_telling()
            stream.close()

    async def _after(self, error: OSError) -> None:
        """Go on after a failed accept: its caller has gone, or the system is short of something."""
        if error.errno not in _EXHAUSTED:
            await trio.lowlevel.checkpoint()
            return
        if not self._exhausted:
            self._exhausted = True
            log.error(
                "cannot accept connections, which is tried again until it can: %s", error.strerror
            )
        await trio.sleep(PAUSE)


def _end_without_memory() -> NoReturn:
    """End at once. To unwind takes memory too, and a daemon was seen to stand still in that.

    It is a crash like any other: the next start repeats nothing.
    """
    with contextlib.suppress(OSError):
        os.write(2, b"uuidd: ERROR: out of memory, ending at once\n")
    os._exit(1)
