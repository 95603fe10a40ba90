"""What is said over one connection, in either dialect, as long as there is something to say."""

from __future__ import annotations

import trio

from uuidd.core.wire import LIBUUID_FIRST, RPC_FIRST, libuuid, rpc
from uuidd.server.fairness import Turns
from uuidd.server.requests import answer_requests
from uuidd.server.service import MALFORMED, Service, reply_to
from uuidd.server.settings import Limits
from uuidd.server.stream import Stream

TOO_LATE = "too_late"
UNREAD = "unread"


async def serve_connection(
    stream: Stream, data: bytes, service: Service, limits: Limits, turns: Turns
) -> bool:
    """Answer what comes over a new *stream*, of which *data* has come, until it is silent.

    The first byte tells the dialect; with any other first byte the connection is read, and ends.
    The answer is whether another request may come; if not, it is left to the caller to close the
    stream.
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
    """Go on with a conversation in the rpc dialect, as ``serve_connection``.

    *unsent* is what is left of replies to requests before. *data* may begin with any byte.
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
            if not more:
                service.libuuid.refuse(TOO_LATE)
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
            answered = answer_requests(
                data,
                service.answer,
                uid=stream.uid,
                limits=limits,
                ends=ends,
                monotonic=turns.monotonic,
            )
        replies, end = answered.replies, answered.end
        if answered.waiting is not None:
            request, end = answered.waiting
            replies += await service.answer_waiting(request, uid=stream.uid, turns=turns)
        if answered.malformed is not None:
            service.rpc.refuse(MALFORMED)
            replies += reply_to(answered.malformed)
        if not await _flush(stream, replies, service, limits, turns) or answered.malformed:
            return False
        data = data[end:]
        if end:
            deadline = trio.current_time() + limits.request_seconds
            if not data:
                return True
        if answered.partial:
            more = await stream.receive_until(deadline)
            if not more:
                service.rpc.refuse(TOO_LATE)
                return False
            data += more


async def _flush(
    stream: Stream, replies: bytes, service: Service, limits: Limits, turns: Turns
) -> bool:
    """Send *replies*. The answer is whether they could be sent in time."""
    sent = stream.send_now(replies) if replies else 0
    if sent == len(replies):
        return True
    uid = stream.uid
    if sent >= 0 and turns.unread[uid] < limits.unread_per_uid:
        turns.unread[uid] += 1
        try:
            if await stream.send(memoryview(replies)[sent:], seconds=limits.reply_seconds):
                return True
        finally:
            turns.unread[uid] -= 1
    service.rpc.refuse(UNREAD)
    return False


async def reject(stream: Stream, data: bytes, reason: str, limits: Limits) -> None:
    """Read one request and, in the rpc dialect, answer that there is no room, and why.

    It has to be read: libuuid's callers are killed by SIGPIPE when they are closed upon before. It
    may come after notifications, all of them in no more bytes than one request may have.
    """
    until = trio.current_time() + limits.request_seconds
    if not data:
        data = await stream.receive_until(until)
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
