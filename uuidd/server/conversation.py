"""What is said over one connection, in either dialect, as long as there is something to say."""

from __future__ import annotations

import trio

from uuidd.core.wire import LIBUUID_FIRST, RPC_FIRST, libuuid, rpc
from uuidd.server.limits import Limits
from uuidd.server.service import Service
from uuidd.server.stream import Stream

FLUSH_BYTES = 65536
"""Replies are sent once there are so many bytes of them, so that a caller who asks for much in one
go costs little memory."""

TURN = 32
"""Requests of one connection between two turns for the others: about half a millisecond."""

MALFORMED = "malformed"
TOO_LATE = "too_late"
UNREAD = "unread"


async def converse(
    stream: Stream, data: bytes, service: Service, limits: Limits, *, unsent: bytes = b""
) -> bool:
    """Answer what comes over *stream*, of which *data* has come already, until it falls silent.

    The first byte tells the dialect; with any other first byte the connection is read, and ends.
    *unsent* is what is left of replies to requests before. The answer is whether another request
    may come; if not, it is left to the caller to close the stream.
    """
    deadline = trio.current_time() + limits.request_seconds
    if unsent:
        if not await _flush(stream, bytearray(unsent), service, limits):
            return False
        if not data:
            return True
    if not data:
        data = await stream.receive_until(deadline)
    if not data:
        return False
    if data[0] in LIBUUID_FIRST:
        await _libuuid(stream, data, service, limits, deadline)
        return False
    if data[0] in RPC_FIRST:
        return await _rpc(stream, data, service, limits, deadline)
    service.rpc.refuse(MALFORMED)
    return False


async def _libuuid(
    stream: Stream, data: bytes, service: Service, limits: Limits, deadline: float
) -> None:
    try:
        while (ask := libuuid.ask(data)) is None:
            more = await stream.receive_until(deadline)
            if not more:
                service.libuuid.refuse(TOO_LATE)
                return
            data += more
    except libuuid.UnreasonableError:
        service.libuuid.refuse(MALFORMED)
        return
    reply = service.answer_libuuid(ask)
    if reply is None:
        reply = await service.answer_libuuid_soon(ask)
    if reply:
        await stream.send(reply, seconds=limits.reply_seconds)


async def _rpc(
    stream: Stream, data: bytes, service: Service, limits: Limits, deadline: float
) -> bool:
    while True:
        replies = bytearray()
        answered = end = 0
        try:
            for request, request_end in rpc.requests(data, limit=limits.request_bytes):
                reply = service.answer(request)
                if reply is None:
                    reply = await service.answer_soon(request)
                replies += reply
                end = request_end
                answered += 1
                if len(replies) >= FLUSH_BYTES or answered >= limits.pipelined:
                    if not await _flush(stream, replies, service, limits):
                        return False
                    await trio.lowlevel.checkpoint()
                    answered = 0
                elif not answered % TURN:
                    await trio.lowlevel.checkpoint()
        except rpc.MalformedError:
            service.rpc.refuse(MALFORMED)
            await _flush(stream, replies, service, limits)
            return False
        if not await _flush(stream, replies, service, limits):
            return False
        await trio.lowlevel.checkpoint()
        rest = data[end:]
        if not rest:
            return True
        if end:
            deadline = trio.current_time() + limits.request_seconds
        more = await stream.receive_until(deadline)
        if not more:
            service.rpc.refuse(TOO_LATE)
            return False
        data = rest + more


async def _flush(stream: Stream, replies: bytearray, service: Service, limits: Limits) -> bool:
    if replies and not await stream.send(replies, seconds=limits.reply_seconds):
        service.rpc.refuse(UNREAD)
        return False
    replies.clear()
    return True


async def turn_away(stream: Stream, data: bytes, reason: str, limits: Limits) -> None:
    """Read one request and, in the rpc dialect, answer that there is no room, and why.

    It has to be read: libuuid's callers are killed by SIGPIPE when they are closed upon before.
    """
    if not data:
        data = await stream.receive_until(trio.current_time() + limits.request_seconds)
    if not data or data[0] not in RPC_FIRST:
        return
    try:
        for request, _ in rpc.requests(data, limit=limits.request_bytes):
            if request.msgid is not None:
                reply = rpc.failure(request.msgid, "busy", reason)
                await stream.send(reply, seconds=limits.reply_seconds)
            return
    except rpc.MalformedError:
        return
