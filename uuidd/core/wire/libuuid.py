"""The libuuid protocol: the binary one of util-linux's uuidd and its callers.

One connection carries one request and one reply. Counts and lengths are int32 in the machine's
own byte order, UUIDs 16 bytes in the RFC's. There is no error reply.
"""

from __future__ import annotations

from struct import Struct

from uuidd.core.ids import uuids, versions
from uuidd.core.ids.kinds import KINDS
from uuidd.core.timeline.outcomes import MAX_BLOCK, Block
from uuidd.core.typed import NamedTuple

MAX_RANDOM = 63
"""The most random UUIDs of one reply: what fits into the buffer of libuuid's callers."""

_INT = Struct("=i")
_TIME_REPLY = Struct("=i16si")


class Op:
    """What a request asks for; its first byte."""

    GETPID = 0
    GET_MAXOP = 1
    TIME_UUID = 2
    RANDOM_UUID = 3
    BULK_TIME_UUID = 4
    BULK_RANDOM_UUID = 5


_BULK = (Op.BULK_TIME_UUID, Op.BULK_RANDOM_UUID)


class ProtocolError(Exception):
    """A request that libuuid never sends. The connection is closed without a reply."""


class Request(NamedTuple):
    """A request to reserve or send *count* UUIDs; *echo* is the count as the caller sent it."""

    op: int
    count: int  # type: ignore[assignment]  # a tuple has a method of that name, which is not used
    echo: int


_SINGLE = {op: Request(op, 1, 1) for op in (Op.GETPID, Op.GET_MAXOP, Op.TIME_UUID, Op.RANDOM_UUID)}


def unpack_request(data: bytes) -> Request | None:
    """Return the request that *data* begins with, None while it has not arrived whole.

    A count of less than one means one, except that a request for no random UUIDs gets none.

    Raises ProtocolError for an unknown op, or more than ``MAX_BLOCK`` UUIDs.
    """
    if not data:
        return None
    single = _SINGLE.get(data[0])
    if single is not None:
        return single
    if data[0] > Op.BULK_RANDOM_UUID:
        raise ProtocolError(f"op {data[0]}; there are 0 to 5")
    op = data[0]
    if len(data) < 1 + _INT.size:
        return None
    (echo,) = _INT.unpack_from(data, 1)
    if op == Op.BULK_TIME_UUID:
        if echo > MAX_BLOCK:
            raise ProtocolError(f"{echo} UUIDs at once; at most {MAX_BLOCK} are given")
        return Request(op, max(1, echo), echo)
    return Request(op, 1 if echo < 0 else min(echo, MAX_RANDOM), echo)


def pack_request(op: int, count: int = 1) -> bytes:
    """Return the bytes of a request; a bulk op carries its count."""
    return bytes([op]) + (_INT.pack(count) if op in _BULK else b"")


def text_reply(text: str) -> bytes:
    """Return the reply to GETPID: the pid in ASCII and a NUL, which the length counts."""
    return _sized(text.encode("ascii") + b"\0")


def maxop_reply() -> bytes:
    """Return the reply to GET_MAXOP: the highest op, a digit and a NUL."""
    return text_reply(str(Op.BULK_RANDOM_UUID))


def time_reply(ask: Request, block: Block) -> bytes:
    """Return the reply to TIME_UUID or BULK_TIME_UUID: the first v1 UUID of *block*.

    A bulk op also gets its count, as the caller sent it.
    """
    first = versions.gregorian("v1", block.first, block.clock_seq, block.node).to_bytes(16, "big")
    return _TIME_REPLY.pack(20, first, ask.echo) if ask.op in _BULK else _sized(first)


def random_reply(ask: Request, found: bytes | bytearray) -> bytes:
    """Return the reply to RANDOM_UUID or BULK_RANDOM_UUID: UUIDs, of 16 bytes each.

    A bulk op also gets their number.
    """
    number = _INT.pack(len(found) // 16) if ask.op in _BULK else b""
    return _sized(number + found)


def unpack_body(data: bytes) -> bytes | None:
    """Return the content of a reply, after its length; None while it has not arrived whole.

    Raises ProtocolError for a length that no reply has.
    """
    if len(data) < _INT.size:
        return None
    (size,) = _INT.unpack_from(data)
    if not 0 <= size <= 4 + 16 * MAX_RANDOM:
        raise ProtocolError(f"a reply of {size} bytes")
    return data[_INT.size : _INT.size + size] if len(data) >= _INT.size + size else None


def unpack_block(reply: bytes) -> Block:
    """Return the block that the body of a BULK_TIME_UUID reply reserves.

    Raises ProtocolError when it does not begin with a v1 UUID.
    """
    uuid = int.from_bytes(reply[:16], "big")
    if len(reply) != 16 + _INT.size or uuids.version(uuid) != 1:
        raise ProtocolError("a reply that is not a v1 UUID and a count")
    (count,) = _INT.unpack_from(reply, 16)
    tick, clock_seq, node = KINDS["v1"].unpack(uuid).values()
    return Block(tick, max(1, count), clock_seq, node)


def random_uuids(reply: bytes) -> list[bytes]:
    """Return the UUIDs, 16 bytes each, in the body of a BULK_RANDOM_UUID reply."""
    return [reply[at : at + 16] for at in range(4, len(reply), 16)]


def _sized(content: bytes) -> bytes:
    return _INT.pack(len(content)) + content
