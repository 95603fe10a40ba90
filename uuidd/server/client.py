"""A client: one connection with its bytes, its replies, and the request that is being answered.

Theory of operation

1. ``pump`` receives, answers and sends what can be done at once, and returns what has to happen
   next. It never waits. So an accept, the poller and a task all call it, and a client whose
   requests need no wait never has a task.
2. Its order is: send what is left of earlier replies, go on with the answer that is half made, or
   else receive, then answer, then send. So replies keep the order of requests, and a client that
   does not read its replies has no more of them made.
3. An answer is a generator (service.py), which leaves the reply in *unsent*. What it yields has to
   come before it goes on (fairness.py). So a request is read and parsed once, however often it has
   to wait.
4. The first byte tells the dialect, for good. A libuuid connection has one request, gets one reply,
   and ends. An rpc connection goes on until its end, or until bytes that are not a request.
5. Between two requests ``pump`` looks whether the turn is over. It answers one request at least: a
   turn that answers nothing would not end. A request that comes alone, the usual case, costs no
   look at the clock. An answer that has waited is finished outside of a turn, and then no other
   request is answered before the user's next turn.
6. The page goes with the first byte of the first rpc reply, and again with the first lease. A lease
   whose page cannot be passed is taken back before anything of it is sent. So all replies before
   it are sent before it is granted.
7. *deadline* is when the client has to have sent the rest of a request, or read its replies.
   Whoever waits sets it, and ``pump`` clears it once a request is whole, or the replies are sent. A
   byte more of the same request clears nothing.
8. A client over a limit is read too before it is closed: a caller of libuuid is killed by SIGPIPE
   when it writes to a closed socket. It gets one reply, which says why. Notifications before
   that request are heeded, for they are not sent again. They do not clear the deadline.
"""

from __future__ import annotations

import contextlib
import fcntl
import socket
import termios
import time
from collections.abc import Callable
from enum import Enum
from struct import Struct
from typing import TYPE_CHECKING

from uuidd.core.timeline.page import Lease
from uuidd.core.wire import LIBUUID_FIRST, RPC_FIRST, libuuid, rpc
from uuidd.server.events import Tally
from uuidd.server.fairness import Answer, Pause

if TYPE_CHECKING:
    from uuidd.server.service import Service

FLUSH_BYTES = 65536
"""Replies are sent once they have this many bytes, so that a client that asks for much at once
costs little memory."""

UNREAD_BYTES = 16384
"""Bytes of replies that the system keeps for one connection, without its own overhead, which is as
much again. They count as the daemon's memory, and one user may have thousands of connections."""

LEAST_UNREAD = 256
"""Bytes of the system's memory that any unread byte takes at least. For a moment after the last one
was read, a few bytes still count."""

READ_BYTES = 4096
"""Bytes read at once: about a hundred pipelined requests. The daemon keeps them until the user has
had turns for all of them, and one user may have thousands of connections."""

FIRST = "first"
"""Stands for the first reply to a client."""

_INT = Struct("i")
_DONTWAIT = int(socket.MSG_DONTWAIT)


class Next(Enum):
    """What has to happen before a client is pumped again."""

    REQUEST = "it sends its next request"
    REST = "it sends the rest of a request, or its only one if it is over a limit"
    READ = "it reads its replies"
    PAUSE = "what its answer waits for, *pause*, is over"
    PIECE = "others have their turn, within this turn of its user"
    TURN = "its user's next turn comes"
    END = "nothing: it is to be closed"


# In Python 3.11, a look at a member of an Enum costs as much as a call.
REQUEST, REST, READ, PAUSE, PIECE, TURN, END = Next


class Client:
    """The client at *sock*, of *uid*, which *service* answers under its limits. No call blocks.

    *refusal* says why it is over a limit, "" if it is not.

    *silent_since* is when the wait for its first byte began, None once that or the end has arrived.
    *lease* is the last lease that it was granted, and *has_page* is whether the page was passed
    with one. *ended* is whether the connection is open only until the client has read what was
    sent.
    """

    __slots__ = (
        "_after",
        "_answer",
        "_data",
        "_service",
        "deadline",
        "ended",
        "has_page",
        "lease",
        "page_for",
        "pause",
        "refusal",
        "silent_since",
        "sock",
        "tally",
        "uid",
        "unsent",
    )

    def __init__(
        self, sock: socket.SocketType, uid: int, service: Service, refusal: str = ""
    ) -> None:
        self.sock = sock
        self.uid = uid
        self.refusal = refusal
        self._service = service
        self.has_page = self.ended = False
        self.silent_since: float | None = 0.0
        self.deadline: float | None = None
        self.lease: Lease | None = None
        self.unsent = self._data = b""
        self.tally: Tally = service.rpc
        """The counts of its dialect."""
        self.pause: Pause = None
        self._answer: Answer | None = None
        self._after = REST if refusal else REQUEST
        """What has to happen next once the answer that is half made, and all replies, are sent."""
        self.page_for: int | str | None = None if refusal else FIRST
        """The reply that passes the page: FIRST, or that to the request for a lease, its msgid. If
        it cannot be passed with that one, the lease is taken back."""

    def pump(self, ends: float, monotonic: Callable[[], float] = time.monotonic) -> Next:
        """Do what can be done at once, in a turn until *ends*; return what has to happen next.

        *monotonic* is the clock that ends the turn.
        """
        if self.unsent:
            if then := self._send():
                return then
            if self._answer is not None and self.pause is not None:
                # Nobody has waited for it yet, but for the client, to read what came before.
                return PAUSE
        if self._answer is not None:
            self._go_on(self._answer)
        elif self._after is END:
            return END
        else:
            if self._after is not TURN and (then := self.receive()):
                return then
            if self.tally is self._service.libuuid:
                self._answer_libuuid()
            else:
                self._answer_requests(ends, monotonic)
        if self.unsent and (then := self._send()):
            return then
        if self._answer is not None:
            return PIECE if self.pause is None else PAUSE
        return self._after

    def receive(self) -> Next | None:
        """Receive what has arrived; return what has to happen next, None if it can be answered."""
        try:
            data = self.sock.recv(READ_BYTES, _DONTWAIT)
        except BlockingIOError:
            return self._after
        except OSError:
            # The peer is gone, which is an end as well.
            data = b""
        is_new, self.silent_since = self.silent_since is not None, None
        if not data or (is_new and not self._begins(data[0])):
            return END
        self._data = self._data + data if self._data else data
        self._after = TURN
        return None

    def _begins(self, first: int) -> bool:
        """Note the dialect of a first byte; return whether there is any."""
        if first in LIBUUID_FIRST:
            self.tally = self._service.libuuid
            self.page_for = None
        elif first in RPC_FIRST:
            with contextlib.suppress(OSError):
                # Limits what the system keeps for a peer that does not read.
                self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, UNREAD_BYTES)
        else:
            self.tally.refuse("malformed")
            return False
        return True

    def _answer_requests(self, ends: float, monotonic: Callable[[], float]) -> None:
        """Answer the requests that have arrived, until the turn is over or one has to wait."""
        data, limits = self._data, self._service.limits
        end = answered = 0
        try:
            for request, request_end in rpc.unpack_requests(data, limit=limits.request_bytes):
                if answered and (
                    monotonic() > ends
                    or answered >= limits.pipelined
                    or len(self.unsent) >= FLUSH_BYTES
                    or self.page_for not in (None, FIRST)
                ):
                    break
                end = request_end
                answered += 1
                if self.refusal and request.msgid is not None:
                    self._after = END
                    self.unsent = rpc.pack_error(request.msgid, "busy", self.refusal)
                    return
                if not self._go_on(self._service.answer(request, self)):
                    break
            else:
                self._after = REST
        except rpc.MalformedError as error:
            self.tally.refuse("malformed")
            self._after = END
            if error.msgid is not None:
                self.unsent += rpc.pack_error(
                    error.msgid, "bad_params", f"{error}; the connection is closed"
                )
        if end:
            self._data = data[end:]
            if not self.refusal:
                self.deadline = None
                if not self._data:
                    self._after = REQUEST

    def _answer_libuuid(self) -> None:
        try:
            request = libuuid.unpack_request(self._data)
        except libuuid.ProtocolError:
            self.tally.refuse("malformed")
            self._after = END
            return
        if request is None:
            self._after = REST
            return
        self._after = END
        self.deadline = None
        if not self.refusal:
            self._go_on(self._service.answer_libuuid(request, self))

    def _go_on(self, answer: Answer) -> bool:
        """Go on with an answer; return whether it has ended."""
        self.pause = next(answer, _no_more)
        ended = self.pause is _no_more
        self._answer = None if ended else answer
        return ended

    def _send(self) -> Next | None:
        """Send replies; return what has to happen next, None if all of them could be sent."""
        data, sent = self.unsent, 0
        if self.page_for is not None:
            data, sent = self._send_with_page(data)
        try:
            sent = sent or self.sock.send(data, _DONTWAIT)
        except BlockingIOError:
            return READ
        except OSError:
            return END
        if sent < len(data):
            self.unsent = data[sent:]
            return READ
        self.unsent = b""
        self.deadline = None
        return None

    def _send_with_page(self, data: bytes) -> tuple[bytes, int]:
        """Send replies with the page; return what there is to send, and how much of it is sent.

        So who holds a block knows of a clone without a request for that. Who does not receive the
        descriptor misses nothing: the kernel drops it.
        """
        page_for, self.page_for = self.page_for, None
        sent = self._service.leasing.send_with_page(self.sock, data)
        if isinstance(page_for, int):
            self.has_page = sent > 0
            if not sent:
                data = self.unsent = self._service.take_back_lease(page_for, self)
        return data, sent

    @property
    def greeted(self) -> bool:
        """Whether the first rpc reply was sent, with the page."""
        return self.page_for != FIRST and self.tally is self._service.rpc

    def is_unread(self) -> bool:
        """Whether the client, or a process that has a copy of its socket, has not read all."""
        unread = fcntl.ioctl(self.sock, termios.TIOCOUTQ, bytes(_INT.size))
        return bool(_INT.unpack(unread)[0] >= LEAST_UNREAD)

    def give_up(self) -> None:
        """Make no more of the answer that is half made.

        It refers to this client, so else it would count as waiting until Python finds that cycle.
        """
        if self._answer is not None:
            self._answer.close()
            self._answer = None

    def end_reading(self) -> None:
        """Let reading end after what has arrived already."""
        with contextlib.suppress(OSError):
            self.sock.shutdown(socket.SHUT_RD)

    def end(self) -> None:
        """Let both directions end; what was sent can still be read, and nothing else is kept."""
        self.ended = True
        self.unsent = self._data = b""
        with contextlib.suppress(OSError):
            self.sock.shutdown(socket.SHUT_RDWR)


async def _no_more() -> None:
    """Stand for the end of an answer."""
