"""Accepts connections: answers at once what is there already, starts a task for what is not."""

from __future__ import annotations

import errno
import logging
import socket

import trio

from uuidd.core.wire import LIBUUID_FIRST, libuuid
from uuidd.server.admission import Admission
from uuidd.server.conversation import converse, turn_away
from uuidd.server.limits import Limits
from uuidd.server.peers import peer_uid
from uuidd.server.service import Service
from uuidd.server.stream import Stream

TURN = 8
"""Connections accepted, and perhaps answered, between two turns for the others."""

PAUSE = 0.1
"""Seconds to wait when the system has no descriptor or no memory for another connection."""

_EXHAUSTED = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}

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
        self._open: set[Stream] = set()
        self._accepting = trio.CancelScope()
        self._exhausted = False

    async def run(self) -> None:
        """Serve until ``stop``, and then until the last connection has ended."""
        async with trio.open_nursery() as nursery:
            with self._accepting:
                await self._accept(nursery)

    def stop(self) -> None:
        """Accept nothing more, and read nothing more: connections end with what they have asked."""
        self._accepting.cancel()
        for stream in self._open:
            stream.end_reading()

    async def _accept(self, nursery: trio.Nursery) -> None:
        accepted = 0
        while True:
            try:
                sock, _ = self._listener.accept()
            except BlockingIOError:
                await trio.lowlevel.wait_readable(self._listener)
                continue
            except OSError as error:
                await self._after(error)
                continue
            self._exhausted = False
            sock.setblocking(False)
            self._enter(Stream(sock), nursery)
            accepted += 1
            if not accepted % TURN:
                await trio.lowlevel.checkpoint()

    def _enter(self, stream: Stream, nursery: trio.Nursery) -> None:
        uid = peer_uid(stream.sock)
        refusal = self._admission.enter(uid)
        data = stream.receive_now()
        if refusal:
            self._service.rpc.refused["connections"] += 1
            if self._admission.begin_telling():
                nursery.start_soon(self._turn_away, stream, data, refusal)
            else:
                stream.close()
        elif data == b"" or (data and self._answered(stream, data)):
            self._admission.leave(uid)
            stream.close()
        else:
            self._open.add(stream)
            nursery.start_soon(self._converse, stream, data, uid)

    def _answered(self, stream: Stream, data: bytes) -> bool:
        """Answer libuuid's callers on the spot where that takes no waiting: a task costs more."""
        if data[0] not in LIBUUID_FIRST:
            return False
        try:
            ask = libuuid.ask(data)
        except libuuid.UnreasonableError:
            return False
        reply = self._service.answer_libuuid(ask) if ask else None
        # It is the first thing sent, so a socket that takes it not at all, or in part, is a bug of
        # the peer's: it gets the slow way, or the end.
        return reply is not None and stream.send_now(reply) != 0

    async def _converse(self, stream: Stream, data: bytes | None, uid: int) -> None:
        try:
            await converse(stream, data or b"", self._service, self.limits)
        finally:
            self._open.discard(stream)
            self._admission.leave(uid)
            stream.close()

    async def _turn_away(self, stream: Stream, data: bytes | None, reason: str) -> None:
        try:
            await turn_away(stream, data or b"", reason, self.limits)
        finally:
            self._admission.end_telling()
            stream.close()

    async def _after(self, error: OSError) -> None:
        """Go on after a failed accept: its caller has gone, or the system is short of something."""
        if error.errno not in _EXHAUSTED:
            await trio.lowlevel.checkpoint()
            return
        if not self._exhausted:
            self._exhausted = True
            log.error("cannot accept, waiting: cause=%r", error.strerror)
        await trio.sleep(PAUSE)
