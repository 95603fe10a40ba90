"""Targets: both codecs, as the daemon reads and as the client does."""

from __future__ import annotations

import marshal
from collections.abc import Callable, Iterator, Sequence
from random import Random
from zlib import crc32

import msgpack

from tests.fuzzing import corpus
from tests.fuzzing.corpus import Case
from tests.fuzzing.messages import NAMES, PARTS, VALUES
from tests.fuzzing.mutations import Mutations
from tests.fuzzing.spans import of_messagepack
from tests.fuzzing.target import Broken, Target, require
from uuidd.core.ids import versions
from uuidd.core.ids.kinds import KINDS
from uuidd.core.ids.ticks import UNIX_EPOCH
from uuidd.core.timeline import MAX_BLOCK, Block, SteadyBlock
from uuidd.core.wire import libuuid, methods, rpc
from uuidd.core.wire.libuuid import Op, ProtocolError
from uuidd.core.wire.rpc import MalformedError, Request

LIMIT = 4096

OK, NO, UNFINISHED = ("ok",), ("MalformedError",), ("unfinished",)
UNREASONABLE = ("ProtocolError",)


def mutated(cases: list[Case], parts: Sequence[bytes]) -> Callable[[Random], Iterator[bytes]]:
    """Return what mutates MessagePack *cases*."""
    seeds = [data for data, _ in cases]
    return lambda random: iter(Mutations(random, seeds, parts, of_messagepack))


def requests(data: bytes) -> Sequence[str]:
    """Read requests: each ends past the one before, and is of the shape that is promised."""
    end = 0
    try:
        for (msgid, _, _), at in rpc.unpack_requests(data, limit=LIMIT):
            if not end < at <= len(data):
                raise Broken("each request ends past the one before")
            if msgid is not None:
                rpc.pack_error(msgid, "x", "")
            end = at
    except MalformedError as error:
        _told(error)
        return NO
    return OK if end else UNFINISHED


def _told(error: MalformedError) -> None:
    """Return the answer to what cannot be read."""
    if len(str(error)) > 300:
        raise Broken("what is wrong is told in few words") from error
    if error.msgid is not None:
        rpc.pack_error(error.msgid, "bad_params", str(error))


def pieces(data: bytes) -> Sequence[str]:
    """Read requests from pieces: they are the same as those of the whole."""
    found = _read([data])
    if _read(_cut(data)) != found:
        raise Broken("pieces give the same requests as the whole")
    if found[2]:
        return NO
    return OK if found[0] else UNFINISHED


def _cut(data: bytes) -> list[bytes]:
    """Cut *data* as its own checksum says: somewhere, in three, or after each byte."""
    told, size = crc32(data), len(data) + 1
    if told % 8 == 0 and size < 80:
        return [data[at : at + 1] for at in range(len(data))]
    one, other = sorted((told % size, told // size % size))
    return [data[:one], data[one:other], data[other:]] if told % 3 else [data[:one], data[one:]]


def _read(some: list[bytes]) -> tuple[list[tuple[object, ...]], bytes, bool]:
    """Read *some* as a connection does; return what it found, what is left, whether it ended so."""
    found: list[tuple[object, ...]] = []
    rest, passed = b"", 0
    for piece in some:
        rest += piece
        end = 0
        try:
            for request, at in rpc.unpack_requests(rest, limit=LIMIT):
                found.append((passed + at, *_comparable(request)))
                end = at
        except MalformedError:
            return found, b"", True
        rest = rest[end:]
        passed += end
    return found, rest, False


def _comparable(request: Request) -> tuple[object, ...]:
    """Return what is equal for equal requests, if they hold a NaN or are nested deep, too."""
    try:
        return request.msgid, marshal.dumps((request.method, request.params), 0)
    except ValueError:
        # An extension, which marshal does not know, or nested deeper than it goes.
        return (request.msgid,)


def calls(data: bytes) -> Sequence[str]:
    """Parse a method and its params: it is a call in its range, or refused in few words."""
    try:
        method, params = msgpack.unpackb(data)
    except (ValueError, TypeError, msgpack.UnpackException):
        return ("not put",)
    try:
        call = methods.parse(method, params)
    except methods.RefusedError as refused:
        if len(refused.message) > 300:
            raise Broken("a refusal is short") from refused
        rpc.pack_error(1, refused.code, refused.message)
        return (refused.code,)
    match call:
        case methods.Take(timeline, count, whole, wait):
            require(timeline in methods.TIMELINES, "a timeline is a known one")
            require(type(count) is int and 1 <= count <= MAX_BLOCK, "a take is in range")
            require(type(whole) is type(wait) is bool, "whole and wait are true or false")
        case methods.Make(kind, count, wait):
            require(type(wait) is bool, "wait is true or false")
            require(kind in KINDS, "a kind is a known one")
            require(type(count) is int and 1 <= count <= methods.MAX_MAKE, "a make is in range")
    return (call.value if isinstance(call, methods.Bare) else type(call).__name__,)


def _calls(random: Random) -> Iterator[bytes]:
    """Return a method and params, each of any value, and often of a likely one."""
    dice = random.random
    known, names, values = [case for case, _ in corpus.CALLS], NAMES[:14], VALUES
    while True:
        if dice() < 0.02:
            yield known[int(dice() * len(known))]
            continue
        method = NAMES[int(dice() * (3 if dice() < 0.9 else len(NAMES)))]
        count = int(dice() * 4.2)
        params = b""
        for place in range(count):
            some = names if not place and dice() < 0.7 else values
            params += some[int(dice() * len(some))]
        yield b"\x92" + method + bytes([0x90 + count]) + params


def responses(data: bytes) -> Sequence[str]:
    """Read a response and the block that it may hold: from one ids can be made, to its end."""
    try:
        response = rpc.unpack_response(data)
    except MalformedError:
        return NO
    if response is None:
        return UNFINISHED
    if rpc.unpack_response(data[: crc32(data) % len(data)]) is not None:
        raise Broken("a part of a response is none yet")
    if response.error is not None:
        return ("refused",)
    result = response.result
    try:
        block = methods.unpack_block(result)
    except ValueError as error:
        _short(error)
    else:
        _makes_ids(block)
        return ("Block",)
    try:
        steady = methods.unpack_steady_block(result)
    except ValueError as error:
        _short(error)
        return ("ValueError",)
    _makes_steady_ids(steady)
    return ("SteadyBlock",)


def _short(error: ValueError) -> None:
    if len(str(error)) > 300:
        raise Broken("what is wrong is told in few words") from error


def _makes_ids(block: Block) -> None:
    first, count, clock_seq, node = block
    require(count > 0, "a block holds a tick")
    try:
        versions.v1(first, clock_seq, node)
        versions.v6(first + count - 1, clock_seq, node)
    except (ValueError, TypeError) as error:
        raise Broken("ids can be made of a block, to its end") from error


def _makes_steady_ids(block: SteadyBlock) -> None:
    first, count, node, worker, epoch = block
    require(count > 0 and first >= UNIX_EPOCH, "a steady block holds a tick since 1970")
    require(first + count <= 1 << 60 and 0 <= node < 1 << 48, "a steady block is in its range")
    require(worker is None or 0 <= worker < 1024, "a worker has 10 bits")
    require(type(epoch) is int and epoch >= 0, "an epoch is no time before 1970")


def asks(data: bytes) -> Sequence[str]:
    """Read a libuuid request: its count is in range, and it is read by no less than all of it."""
    try:
        ask = libuuid.unpack_request(data)
    except ProtocolError:
        return UNREASONABLE
    if ask is None:
        return UNFINISHED
    op, count, echo = ask.op, ask.count, ask.echo
    asked = libuuid.pack_request(op, echo)
    if not data.startswith(asked) or libuuid.unpack_request(asked) != ask:
        raise Broken("what was read is what was asked")
    if len(asked) > 1 and libuuid.unpack_request(asked[: 1 + echo % 4]) is not None:
        raise Broken("a part of a request is none yet")
    most = libuuid.MAX_RANDOM if op is Op.BULK_RANDOM_UUID else MAX_BLOCK
    if not (0 if op is Op.BULK_RANDOM_UUID else 1) <= count <= most:
        raise Broken("a count is in range")
    return OK


def _asks(random: Random) -> Iterator[bytes]:
    return iter(Mutations(random, [data for data, _ in corpus.ASKS], PARTS[:20], _as_one))


def _as_one(data: bytes) -> list[tuple[int, int]]:
    return [(at, at + 4) for at in range(0, len(data), 4)]


def replies(data: bytes) -> Sequence[str]:
    """Read a libuuid reply: the block that it reserves begins with its UUID, or it has UUIDs."""
    try:
        body = libuuid.unpack_body(data)
    except ProtocolError:
        return UNREASONABLE
    if body is None:
        return UNFINISHED
    if b"".join(libuuid.random_uuids(body)) != body[4:]:
        raise Broken("UUIDs are what follows their count")
    try:
        block = libuuid.unpack_block(body)
    except ProtocolError:
        return ("uuids",)
    if libuuid.time_uuid(block) != body[:16]:
        raise Broken("a block begins with the UUID of its reply")
    return ("Block",)


def _replies(random: Random) -> Iterator[bytes]:
    seeds = [data for data, _ in corpus.REPLIES]
    parts = [corpus.UUID, corpus.LAST_UUID, *PARTS[:20]]
    return iter(Mutations(random, seeds, parts, _as_one))


TARGETS = (
    Target("requests", requests, mutated(corpus.REQUESTS, PARTS)),
    Target("pieces", pieces, mutated(corpus.REQUESTS, PARTS)),
    Target("calls", calls, _calls),
    Target("responses", responses, mutated(corpus.RESPONSES, PARTS)),
    Target("asks", asks, _asks),
    Target("replies", replies, _replies),
)
