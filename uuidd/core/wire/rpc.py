"""MessagePack-RPC: requests, responses and notifications as published.

A request is ``[0, msgid, method, params]``, its response ``[1, msgid, error, result]``, a
notification ``[2, method, params]``.

Anything of one of these shapes is unpacked, so that a request with a mistake can be answered. Text
that is not UTF-8 comes with U+FFFD in it, and a map, which no method takes, without its items.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial

import msgpack

from uuidd.core.typed import Any, NamedTuple

REQUEST, RESPONSE, NOTIFICATION = 0, 1, 2

MAX_MSGID = (1 << 32) - 1
"""The highest msgid that our client sends. Other clients may send any integer of MessagePack."""

MAX_ITEMS = 64
"""The most items of one array or map. A request has 4, and its params have at most 4; the rest is
room for a clear answer to too many. A head of 3 bytes makes the unpacker allocate 8 bytes for each
item, a thousand times if nested, so this bounds what a small message can cost."""


MAX_RESULTS = 4096
"""The most items of one array or map in a response: more than the 1,000 ids of the largest."""


class MalformedError(Exception):
    """These bytes are not MessagePack-RPC; nothing after them can be understood.

    *msgid* is that of the request that they begin as, None if they do not begin as a request.
    """

    def __init__(self, message: str, msgid: int | None = None) -> None:
        super().__init__(message)
        self.msgid = msgid


class Request(NamedTuple):
    """A method called with params; both are any value that MessagePack has.

    *msgid* is None for what gets no answer: a notification, or a response, which the daemon never
    asked for. Of a response, all three are None.
    """

    msgid: int | None
    method: Any
    params: Any


def unpack_requests(data: bytes, *, limit: int) -> Iterable[tuple[Request, int]]:
    """Return each whole request in *data* and the offset at which it ends.

    Bytes of a request that has not arrived whole are left: read more and call again from the last
    offset. *limit* is the most bytes that one request may have.

    Raises MalformedError at the first bytes that are not a request, after the requests before them.
    """
    try:
        # Nearly always one request has arrived whole, and this is the fastest way to unpack it.
        value = _unpack_whole(data)
    except (ValueError, msgpack.UnpackException):
        return _one_by_one(data, limit)
    size = len(data)
    if size > limit:
        raise _too_long(data, limit)
    return ((_request(value, data), size),)


def pack_response(msgid: int, result: Any) -> bytes:
    """Return the bytes that answer request *msgid* with *result*."""
    return _pack([RESPONSE, msgid, None, result])


def pack_error(msgid: int, code: str, message: str) -> bytes:
    """Return the bytes that answer request *msgid* with an error: one text, ``code: message``.

    Clients in many languages show an error that is text, and fail on one that is an array.
    """
    return _pack([RESPONSE, msgid, f"{code}: {message}", None])


def pack_request(msgid: int, method: str, params: list[Any]) -> bytes:
    """Return the bytes of a request."""
    # Not with a shared packer: clients call this in many threads, and msgpack may be pure Python.
    packed: bytes = msgpack.packb([REQUEST, msgid, method, params])
    return packed


def pack_notification(method: str, params: list[Any]) -> bytes:
    """Return the bytes of a notification, which is not answered."""
    packed: bytes = msgpack.packb([NOTIFICATION, method, params])
    return packed


class Response(NamedTuple):
    """The answer to a request: *error* is None, or ``code: message``."""

    msgid: int
    error: str | None
    result: Any

    @property
    def code(self) -> str:
        """The code of the error: the text before its first ``": "``; "" where there is none."""
        return (self.error or "").partition(": ")[0]


def unpack_response(data: bytes) -> Response | None:
    """Return the response in *data*, None while it has not arrived whole.

    Raises MalformedError for anything else.
    """
    if not data:
        return None
    try:
        # Nearly always it has arrived whole. An unpacker of parts would clear 45 KiB of memory.
        value = msgpack.unpackb(data, **_READING_RESULTS)
    except msgpack.ExtraData as error:
        raise MalformedError("not MessagePack: more than one response") from error
    except (ValueError, msgpack.UnpackException) as error:
        if _is_part(data):
            return None
        raise MalformedError(f"not MessagePack: {error}") from error
    match value:
        case [kind, msgid, error, result] if (
            type(kind) is type(msgid) is int
            and kind == RESPONSE
            and (error is None or (type(error) is str and result is None))
        ):
            return Response(msgid, error, result)
    raise MalformedError("not a MessagePack-RPC response")


def _is_part(data: bytes) -> bool:
    """Whether *data* is a response that has not arrived whole."""
    unpacker = msgpack.Unpacker(
        # Otherwise it allocates a megabyte, which costs more than all the rest.
        read_size=len(data),
        max_buffer_size=max(len(data), 1 << 20),
        **_READING_RESULTS,
    )
    unpacker.feed(data)
    try:
        unpacker.unpack()
    except (ValueError, msgpack.UnpackException) as error:
        return isinstance(error, msgpack.OutOfData)
    return False


def _one_by_one(data: bytes, limit: int) -> Iterator[tuple[Request, int]]:
    unpacker = msgpack.Unpacker(
        max_buffer_size=len(data),
        max_str_len=limit,
        max_bin_len=limit,
        max_ext_len=limit,
        **_READING,
    )
    unpacker.feed(data)
    end = 0
    while True:
        try:
            value = unpacker.unpack()
        except msgpack.OutOfData:
            if len(data) - end > limit:
                raise _too_long(data[end:], limit) from None
            return
        except (ValueError, msgpack.UnpackException) as error:
            deep = isinstance(error, msgpack.StackError)
            why = "nested too deep" if deep else str(error) or "not MessagePack"
            raise MalformedError(f"cannot be read: {why}", _msgid(data[end:])) from error
        begin, end = end, unpacker.tell()
        if end - begin > limit:
            raise _too_long(data[begin:end], limit)
        yield _request(value, data[begin:end]), end


def _too_long(data: bytes, limit: int) -> MalformedError:
    problem = f"a request of {len(data)} bytes or more; at most {limit} are read"
    return MalformedError(problem, _msgid(data))


def _msgid(data: bytes) -> int | None:
    """Return the msgid of the request that *data* begins as, None if there is none."""
    unpacker = msgpack.Unpacker(max_buffer_size=_HEAD_BYTES)
    unpacker.feed(data[:_HEAD_BYTES])
    try:
        unpacker.read_array_header()
        kind, msgid = unpacker.unpack(), unpacker.unpack()
    except (ValueError, msgpack.UnpackException):
        return None
    return msgid if kind == REQUEST and type(kind) is type(msgid) is int else None


def _request(value: Any, data: bytes) -> Request:
    """Return the message *value*, which was unpacked from *data*."""
    # By type, because True and False equal 1 and 0. A pattern takes twice as long.
    if type(value) is list and value and type(value[0]) is int:
        kind, size = value[0], len(value)
        if size == 4 and kind == REQUEST and type(value[1]) is int:
            return Request(value[1], value[2], value[3])
        if size == 3 and kind == NOTIFICATION:
            return Request(None, value[1], value[2])
        if size == 4 and kind == RESPONSE:
            return Request(None, None, None)
    raise MalformedError("not a MessagePack-RPC message", _msgid(data))


def _emptied(items: Iterable[tuple[Any, Any]]) -> dict[Any, Any]:
    """Return a map without its items, whose keys may be what no dict has, such as an array."""
    deque(items, maxlen=0)
    return {}


_HEAD_BYTES = 5 + 9 + 9
"""The most bytes that the head of an array and two integers have."""

_READING: dict[str, Any] = {
    "max_array_len": MAX_ITEMS,
    "max_map_len": MAX_ITEMS,
    "unicode_errors": "replace",
    "strict_map_key": False,
    "object_pairs_hook": _emptied,
}

_READING_RESULTS: dict[str, Any] = {"max_array_len": MAX_RESULTS, "max_map_len": MAX_RESULTS}

_pack: Callable[[list[Any]], bytes] = msgpack.Packer().pack

_unpack_whole = partial(msgpack.unpackb, **_READING)
