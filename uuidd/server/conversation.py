"""One connection, from its first byte to its end, in either dialect."""

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


async def converse(stream: Stream, data: bytes, service: Service, limits: Limits) -> None:
    """Answer what comes over *stream*, of which *data* has come already, until either side ends.

    The first byte tells the dialect; with any other first byte the connection is read, and closed.
    It is left to the caller to close the stream.
    """
    deadline = trio.current_time() + limits.request_seconds
    if not data:
        data = await stream.receive_until(deadline)
    if not data:
        return
    if data[0] in LIBUUID_FIRST:
        await _libuuid(stream, data, service, limits, deadline)
    elif data[0] in RPC_FIRST:
        await _rpc(stream, data, service, limits, deadline)
    else:
        service.rpc.refused[MALFORMED] += 1


async def _libuuid(
    stream: Stream, data: bytes, service: Service, limits: Limits, deadline: float
) -> None:
    try:
        while (ask := libuuid.ask(data)) is None:
            more = await stream.receive_until(deadline)
            if not more:
                service.libuuid.refused[TOO_LATE] += 1
                return
            data += more
    except libuuid.UnreasonableError:
        service.libuuid.refused[MALFORMED] += 1
        return
    reply = service.answer_libuuid(ask)
    if reply is None:
        reply = await service.answer_libuuid_soon(ask)
    if reply:
        await stream.send(reply, seconds=limits.reply_seconds)


async def _rpc(
    stream: Stream, data: bytes, service: Service, limits: Limits, deadline: float
) -> None:
    while data:
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
                        return
                    await trio.lowlevel.checkpoint()
                    answered = 0
                elif not answered % TURN:
                    await trio.lowlevel.checkpoint()
        except rpc.MalformedError:
            service.rpc.refused[MALFORMED] += 1
            await _flush(stream, replies, service, limits)
            return
        if not await _flush(stream, replies, service, limits):
            return
        await trio.lowlevel.checkpoint()
        rest = data[end:]
        if not rest:
            # Idle from here on: silence between requests is free, and keeps no buffers.
            del data, replies, rest
            data = await stream.receive()
            deadline = trio.current_time() + limits.request_seconds
            continue
        if end:
            deadline = trio.current_time() + limits.request_seconds
        more = await stream.receive_until(deadline)
        if not more:
            service.rpc.refused[TOO_LATE] += 1
            return
        data = rest + more


async def _flush(stream: Stream, replies: bytearray, service: Service, limits: Limits) -> bool:
    if replies and not await stream.send(replies, seconds=limits.reply_seconds):
        service.rpc.refused[UNREAD] += 1
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
