"""A client: one connection with its bytes, its replies, and the request that is being answered.

Theory of operation

1. ``pump`` receives, answers and sends what can be done at once, and returns what has to happen
   next. It never waits. So an accept, the poller and a task all call it, and a client whose
   requests need no wait never has a task.
2. Its order is: send what is left of earlier replies, go on with the answer that is half made, or
   else receive, then answer, then send. So replies keep the order of requests, and a client that
   does not read its replies has no more of them made.
3. An answer is a generator (service.py), which leaves the reply in *unsent*. What it yields has to
   come before it goes on (fairness.py), but after the replies before it were read: only so many
   clients of one user may leave theirs unread, and many may wait. So a request is read and parsed
   once, however often it has to wait.
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
import sys
import termios
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NewType

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

_DONTWAIT = int(socket.MSG_DONTWAIT)


Next = NewType("Next", str)
"""What has to happen before a client is pumped again."""

REQUEST = Next("it sends its next request")
REST = Next("it sends the rest of a request, or its only one if it is over a limit")
READ = Next("it reads its replies")
PAUSE = Next("what its answer waits for, *pause*, is over")
PIECE = Next("others have their turn, within this turn of its user")
TURN = Next("its user's next turn comes")
END = Next("nothing: it is to be closed")


@dataclass(slots=True, eq=False)
class Client:
    """The client at *sock*, of *uid*, which *service* answers under its limits. No call blocks.

    *refusal* says why it is over a limit, "" if it is not.

    *silent_since* is when the wait for its first byte began, None once that or the end has arrived.
    *lease* is the last lease that it was granted, and *has_page* is whether the page was passed
    with one. *ended* is whether the connection is open only until the client has read what was
    sent.
    """

    sock: socket.SocketType
    uid: int
    service: Service
    refusal: str = ""
    silent_since: float | None = 0.0
    lease: Lease | None = None
    has_page: bool = False
    ended: bool = False
    deadline: float | None = None
    pause: Pause = None
    unsent: bytes = b""
    tally: Tally = field(init=False)
    """The counts of its dialect."""

    page_for: int | str | None = FIRST
    """The reply that passes the page: FIRST, or that to the request for a lease, its msgid. If it
    cannot be passed with that one, the lease is taken back."""

    answer: Answer | None = None
    """The answer that is half made."""

    _data: bytes = b""
    _after: Next = REQUEST
    """What has to happen next once the answer that is half made, and all replies, are sent."""

    def __post_init__(self) -> None:
        self.tally = self.service.rpc
        if self.refusal:
            self.page_for, self._after = None, REST

    def pump(self, ends: float, monotonic: Callable[[], float] = time.monotonic) -> Next:
        """Do what can be done at once, in a turn until *ends*; return what has to happen next.

        *monotonic* is the clock that ends the turn.
        """
        if self.unsent:
            if then := self._send():
                return then
            if self.answer is not None and self.pause is not None:
                # The wait has not begun: first the client had to read the earlier replies.
                return PAUSE
        if self.answer is not None:
            self._go_on(self.answer)
        elif self._after is END:
            return END
        else:
            if self._after is not TURN and (then := self.receive()):
                return then
            if self.tally is self.service.libuuid:
                self._answer_libuuid()
            else:
                self._answer_requests(ends, monotonic)
        if self.unsent and (then := self._send()):
            return then
        if self.answer is not None:
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
        if not data:
            return END
        if is_new:
            if data[0] in LIBUUID_FIRST:
                self.tally = self.service.libuuid
                self.page_for = None
            elif data[0] not in RPC_FIRST:
                self.tally.refuse("malformed")
                return END
            else:
                with contextlib.suppress(OSError):
                    # Limits what the system keeps for a peer that does not read.
                    self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, UNREAD_BYTES)
        self._data = self._data + data if self._data else data
        self._after = TURN
        return None

    def _answer_requests(self, ends: float, monotonic: Callable[[], float]) -> None:
        """Answer the requests that have arrived, until the turn is over or one has to wait."""
        data, limits = self._data, self.service.limits
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
                if not self._go_on(self.service.answer(request, self)):
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
        self._after = END
        try:
            request = libuuid.unpack_request(self._data)
        except libuuid.ProtocolError:
            self.tally.refuse("malformed")
            return
        if request is None:
            self._after = REST
            return
        self.deadline = None
        if not self.refusal:
            self._go_on(self.service.answer_libuuid(request, self))

    def _go_on(self, answer: Answer) -> bool:
        """Go on with an answer; return whether it has ended."""
        self.pause = next(answer, _no_more)
        ended = self.pause is _no_more
        self.answer = None if ended else answer
        return ended

    def _send(self) -> Next | None:
        """Send replies; return what has to happen next, None if all of them could be sent."""
        sent = 0 if self.page_for is None else self._send_with_page()
        try:
            sent = sent or self.sock.send(self.unsent, _DONTWAIT)
        except BlockingIOError:
            return READ
        except OSError:
            return END
        if sent < len(self.unsent):
            self.unsent = self.unsent[sent:]
            return READ
        self.unsent = b""
        self.deadline = None
        return None

    def _send_with_page(self) -> int:
        """Send replies with the page; return how many bytes were sent, 0 if it cannot be passed.

        So who holds a block knows of a clone without a request for that. Who does not receive the
        descriptor misses nothing: the kernel drops it.
        """
        page_for, self.page_for = self.page_for, None
        sent = self.service.leasing.send_with_page(self.sock, self.unsent)
        if isinstance(page_for, int):
            self.has_page = sent > 0
            if not sent:
                refused = self.service.leasing.take_back(self)
                self.tally.refuse(refused.code)
                self.unsent = rpc.pack_error(page_for, refused.code, refused.message)
        return sent

    def is_unread(self) -> bool:
        """Whether the page is on its way: not all that was sent with it and since was read.

        It is the client that reads, or a process that has a copy of its socket.
        """
        if self.refusal or self.page_for == FIRST or self.tally is self.service.libuuid:
            return False
        unread = fcntl.ioctl(self.sock, termios.TIOCOUTQ, bytes(4))
        return int.from_bytes(unread, sys.byteorder) >= LEAST_UNREAD

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
