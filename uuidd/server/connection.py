"""The task of a connection whose requests the poller cannot answer at once.

Theory of operation

1. A connection has a task only while there is something to wait for. Otherwise the poller has it.
   The task returns whether another request may come, and then the connection is parked again.
2. The first byte tells the dialect. A libuuid connection has one request, gets one reply, and ends.
   An rpc connection goes on until nothing more has arrived.
3. In rpc the task takes one user's turn after the other (fairness.py). In each, it answers as many
   requests as the turn allows (requests.py), and then sends their replies. A request that has to
   wait does so outside of the turn. Replies keep the order of requests.
4. Each wait for the client has a deadline. A request has to arrive whole within
   ``request_seconds`` of its first byte, and replies have to be read within ``reply_seconds``;
   otherwise the connection ends, and is counted as refused. A client that has gone is not counted.
   Only so many connections of one user may leave replies unread.
5. A connection over a limit is read too before it is closed: a caller of libuuid is killed by
   SIGPIPE when it writes to a closed socket.
"""

from __future__ import annotations

import trio

from uuidd.core.wire import LIBUUID_FIRST, RPC_FIRST, libuuid, rpc
from uuidd.server.fairness import Turns
from uuidd.server.requests import PARTIAL, Waiting, answer_requests
from uuidd.server.service import MALFORMED, Service, reply_to
from uuidd.server.settings import Limits
from uuidd.server.stream import Stream

TOO_LATE = "too_late"
"""Why a connection ended whose request did not arrive whole in time."""

UNREAD = "unread"
"""Why a connection ended whose replies were not read in time."""


async def serve_connection(
    stream: Stream, data: bytes, service: Service, limits: Limits, turns: Turns
) -> bool:
    """Answer what arrives over a new *stream*, of which *data* has arrived, until it is silent.

    Returns whether another request may come; if not, the caller has to close the stream. So it is
    when the first byte is of neither dialect.
    """
    deadline = trio.current_time() + limits.request_seconds
    if data[0] in LIBUUID_FIRST:
        await _libuuid(stream, data, service, limits, turns, deadline)
        return False
    if data[0] in RPC_FIRST:
        return await _rpc(stream, data, service, limits, turns, deadline)
    service.rpc.refuse(MALFORMED)
    return False


async def resume(
    stream: Stream, data: bytes, unsent: bytes, service: Service, limits: Limits, turns: Turns
) -> bool:
    """Go on with an rpc connection, like ``serve_connection``.

    *unsent* is what has not been sent yet of earlier replies. *data* may begin with any byte.
    """
    deadline = trio.current_time() + limits.request_seconds
    if unsent and not await _flush(stream, unsent, service, limits, turns):
        return False
    return not data or await _rpc(stream, data, service, limits, turns, deadline)


async def _libuuid(
    stream: Stream, data: bytes, service: Service, limits: Limits, turns: Turns, deadline: float
) -> None:
    try:
        while (ask := libuuid.unpack_request(data)) is None:
            more = await stream.receive_until(deadline)
            if more is None:
                service.libuuid.refuse(TOO_LATE)
            if not more:
                return
            data += more
    except libuuid.ProtocolError:
        service.libuuid.refuse(MALFORMED)
        return
    async with turns.turn(stream.uid):
        reply = service.answer_libuuid(ask, uid=stream.uid)
    if reply is None:
        reply = await service.answer_libuuid_waiting(ask, uid=stream.uid)
    if reply:
        await stream.send(reply, seconds=limits.reply_seconds)


async def _rpc(
    stream: Stream, data: bytes, service: Service, limits: Limits, turns: Turns, deadline: float
) -> bool:
    while True:
        async with turns.turn(stream.uid) as ends:
            replies, end, stopped_by = answer_requests(
                data,
                service.answer,
                uid=stream.uid,
                limits=limits,
                ends=ends,
                monotonic=turns.monotonic,
            )
        malformed = isinstance(stopped_by, rpc.MalformedError)
        if isinstance(stopped_by, Waiting):
            request, end = stopped_by
            reply, fd = await service.answer_waiting(request, stream=stream, turns=turns)
            if fd is not None and not stream.has_page:
                # Those before it go first, because the descriptor comes with the first byte sent.
                if not await _flush(stream, replies, service, limits, turns):
                    return False
                sent = service.leasing.send_with_page(stream, reply)
                stream.has_page = sent > 0
                stream.greeted = True
                replies = b""
                reply = reply[sent:] if sent else service.take_back_lease(request, stream)
            replies += reply
        elif isinstance(stopped_by, rpc.MalformedError):
            service.rpc.refuse(MALFORMED)
            replies += reply_to(stopped_by)
        if not await _flush(stream, replies, service, limits, turns) or malformed:
            return False
        data = data[end:]
        if end:
            deadline = trio.current_time() + limits.request_seconds
            if not data:
                return True
        if stopped_by is PARTIAL:
            more = await stream.receive_until(deadline)
            if more is None:
                service.rpc.refuse(TOO_LATE)
            if not more:
                return False
            data += more


async def _flush(
    stream: Stream, replies: bytes, service: Service, limits: Limits, turns: Turns
) -> bool:
    """Send *replies*, and return whether they could be sent in time."""
    sent = service.leasing.reply_now(stream, replies) if replies else 0
    unsent = memoryview(replies)[max(sent, 0) :]
    uid = stream.uid
    if sent >= 0 and unsent and turns.unread[uid] < limits.unread_per_uid:
        turns.unread[uid] += 1
        try:
            sent = await stream.send(unsent, seconds=limits.reply_seconds)
        finally:
            turns.unread[uid] -= 1
        unsent = unsent[max(sent, 0) :]
    if sent >= 0 and unsent:
        service.rpc.refuse(UNREAD)
    return not unsent


async def reject(stream: Stream, data: bytes, reason: str, limits: Limits) -> None:
    """Read one request, and in rpc answer that there is no room, and why.

    Notifications may come before it, if all of them have no more bytes than one request may have.
    """
    until = trio.current_time() + limits.request_seconds
    if not data:
        data = await stream.receive_until(until) or b""
    if not data or data[0] not in RPC_FIRST:
        return
    while True:
        try:
            requests = rpc.unpack_requests(data, limit=limits.request_bytes)
            msgid = next((each.msgid for each, _ in requests if each.msgid is not None), None)
        except rpc.MalformedError as error:
            msgid = error.msgid
            if msgid is None:
                return
        if msgid is not None:
            reply = rpc.pack_error(msgid, "busy", reason)
            await stream.send(reply, seconds=limits.reply_seconds)
            return
        if len(data) > limits.request_bytes:
            return
        more = await stream.receive_until(until)
        if not more:
            return
        data += more
