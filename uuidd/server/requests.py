"""The requests that have arrived over one connection, answered for as long as a user's turn lasts.

Theory of operation

1. The daemon serves all users in one thread, so whatever it does at once delays all others. Users
   are served in turns of TURN_SECONDS. Between two turns of a user the others have theirs, however
   many connections the user has and however many requests it sends at once.
2. This loop answers the requests of one connection until the turn is over, and always at least one:
   a turn that answers nothing would not end. The clock is read between two requests, so a single
   request, the usual case, costs no look at the clock.
3. The loop ends early at a request that has to wait, at one that has not arrived whole, and at
   bytes that are not a request. It says which, and does nothing about it: it neither sends, nor
   waits, nor closes. So the same loop serves a silent connection that wakes up (poller.py), a new
   connection (acceptor.py) and a connection with a task of its own (connection.py).
4. A request that has to wait has changed nothing. It may be answered again, by a task, which waits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from uuidd.core.wire import libuuid, rpc
from uuidd.server.settings import Limits

TURN_SECONDS = 0.0001
"""A user's turn: some five requests. A client that sends one request at a time waits for as long at
each greedy user."""

ROUND_SECONDS = 0.001
"""How long the poller serves users before the tasks have their turns: the save of the state, new
connections, and the requests that wait. More would delay them, less would cost throughput."""

ACCEPTS = 8
"""Connections accepted, and perhaps answered, before the others have their turn: half a round."""

FLUSH_BYTES = 65536
"""Replies are sent once they have this many bytes, so that a client that asks for much at once
costs little memory."""


class Waiting(NamedTuple):
    """A request that cannot be answered at once, and the offset of its end."""

    request: rpc.Request
    end: int


class Partial:
    """A request that has not arrived whole."""


PARTIAL = Partial()

StoppedBy = Waiting | rpc.MalformedError | Partial | None
"""What ended the loop; None if the turn was over, or all requests are answered."""


def answer_requests(
    data: bytes,
    answer: Callable[..., bytes | None],
    *,
    uid: int,
    limits: Limits,
    ends: float,
    monotonic: Callable[[], float],
) -> tuple[bytes, int, StoppedBy]:
    """Answer the rpc requests in *data* by *answer* until the time *ends*, at least one of them.

    Returns the replies, in order; the offset after the last request that was answered; and what is
    there instead of another request that can be answered. If nothing is, and the offset is not the
    end of *data*, the turn is over: call again in the next one.
    """
    # A plain tuple, because to make one with names takes a fiftieth of a whole request.
    replies = b""
    end = answered = 0
    try:
        for request, request_end in rpc.unpack_requests(data, limit=limits.request_bytes):
            if answered and (
                monotonic() > ends or answered >= limits.pipelined or len(replies) >= FLUSH_BYTES
            ):
                return replies, end, None
            reply = answer(request, uid=uid)
            if reply is None:
                return replies, end, Waiting(request, request_end)
            replies = replies + reply if replies else reply
            end = request_end
            answered += 1
    except rpc.MalformedError as error:
        return replies, end, error
    return replies, end, PARTIAL if end < len(data) else None


def answer_libuuid(data: bytes, answer: Callable[..., bytes | None], *, uid: int) -> bytes | None:
    """Return the reply to a libuuid request, "" when it is refused.

    None when a task has to see to it: it has to wait, has not arrived whole, or is no request.
    """
    try:
        ask = libuuid.unpack_request(data)
    except libuuid.ProtocolError:
        return None
    return None if ask is None else answer(ask, uid=uid)
