"""MessagePack-RPC: requests, responses and notifications as published.

A request is ``[0, msgid, method, params]``, its response ``[1, msgid, error, result]``, a
notification ``[2, method, params]``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import msgpack

REQUEST, RESPONSE, NOTIFICATION = 0, 1, 2

MAX_MSGID = (1 << 32) - 1

MAX_ITEMS = 64
"""Items of one array or map. A request has 4 and its params 3 at most; the rest is room for a
clear answer to too many. A head of 3 bytes makes the reader allocate 8 bytes an item, a thousand
times if nested, so this bounds what a small message can cost."""


MAX_RESULTS = 4096
"""Items of one array or map in a response: more than the 1,000 ids of the largest."""


class MalformedError(Exception):
    """These bytes are not MessagePack-RPC; nothing after them can be understood."""


class Request(NamedTuple):
    """A method called with params. *msgid* is None for a notification: it wants no answer."""

    msgid: int | None
    method: str
    params: list[Any]


def requests(data: bytes, *, limit: int) -> Iterable[tuple[Request, int]]:
    """Give each whole request in *data* and the offset at which it ends.

    Bytes of a request that has not arrived whole are left: read more and call again from the last
    offset. *limit* is the most bytes that one request may have.

    Raises MalformedError at the first bytes that are no request, after those before it were given.
    """
    try:
        # Nearly always one request has arrived whole; this is its fastest way.
        value = _unpack_whole(data)
    except (ValueError, msgpack.UnpackException):
        return _one_by_one(data, limit)
    size = len(data)
    _bound(size, limit)
    return ((_request(value), size),)


def response(msgid: int, result: Any) -> bytes:
    """Give the bytes that answer request *msgid* with *result*."""
    return _pack([RESPONSE, msgid, None, result])


def failure(msgid: int, code: str, message: str) -> bytes:
    """Give the bytes that answer request *msgid* with an error: one text, ``code: message``.

    Clients in many languages show an error that is text, and fail on one that is an array.
    """
    return _pack([RESPONSE, msgid, f"{code}: {message}", None])


def call(msgid: int, method: str, params: list[Any]) -> bytes:
    """Give the bytes of a request."""
    # By no packer shared, for clients call this in many threads, and msgpack may be pure Python.
    packed: bytes = msgpack.packb([REQUEST, msgid, method, params])
    return packed


@dataclass(frozen=True, slots=True)
class Response:
    """What a request was answered: *error* is None, or ``code: message``."""

    msgid: int
    error: str | None
    result: Any

    @property
    def code(self) -> str:
        """The code of the error: the text before its first ``": "``; "" where there is none."""
        return (self.error or "").partition(": ")[0]


def read_response(data: bytes) -> Response | None:
    """Give the response that *data* holds, None while it has not arrived whole.

    Raises MalformedError for anything else.
    """
    unpacker = msgpack.Unpacker(
        max_buffer_size=max(len(data), 1 << 20),
        max_array_len=MAX_RESULTS,
        max_map_len=MAX_RESULTS,
    )
    unpacker.feed(data)
    try:
        value = unpacker.unpack()
        if unpacker.tell() != len(data):
            raise ValueError("more than one response")
    except msgpack.OutOfData:
        return None
    except (ValueError, msgpack.UnpackException) as error:
        raise MalformedError(f"no MessagePack: {error}") from error
    match value:
        case [kind, msgid, error, result] if (
            type(kind) is type(msgid) is int
            and kind == RESPONSE
            and (error is None or (type(error) is str and result is None))
        ):
            return Response(msgid, error, result)
    raise MalformedError("no MessagePack-RPC response")


def _one_by_one(data: bytes, limit: int) -> Iterator[tuple[Request, int]]:
    unpacker = msgpack.Unpacker(
        max_buffer_size=len(data),
        max_str_len=limit,
        max_bin_len=limit,
        max_ext_len=limit,
        max_array_len=MAX_ITEMS,
        max_map_len=MAX_ITEMS,
    )
    unpacker.feed(data)
    end = 0
    while True:
        try:
            value = unpacker.unpack()
        except msgpack.OutOfData:
            _bound(len(data) - end, limit)
            return
        except (ValueError, msgpack.UnpackException) as error:
            raise MalformedError(f"no MessagePack: {error}") from error
        begin, end = end, unpacker.tell()
        _bound(end - begin, limit)
        yield _request(value), end


def _bound(size: int, limit: int) -> None:
    if size > limit:
        raise MalformedError(f"a request of {size} bytes or more; at most {limit} are read")


def _request(value: Any) -> Request:
    # By type, for True and False are ints, and equal to 1 and 0. A pattern takes twice as long.
    if type(value) is list and value and type(value[0]) is int:
        msgid: Any = None
        if len(value) == 4 and value[0] == REQUEST:
            _, msgid, method, params = value
            if type(msgid) is not int or not 0 <= msgid <= MAX_MSGID:
                method = None
        elif len(value) == 3 and value[0] == NOTIFICATION:
            _, method, params = value
        else:
            method = params = None
        if type(method) is str and type(params) is list:
            return Request(msgid, method, params)
    raise MalformedError("no MessagePack-RPC request")


def _pack(message: list[Any]) -> bytes:
    packed: bytes = _packer.pack(message)
    return packed


_packer = msgpack.Packer()

_unpack_whole = partial(msgpack.unpackb, max_array_len=MAX_ITEMS, max_map_len=MAX_ITEMS)
