"""Literal bytes are those of util-linux's uuidd and libuuid on a little-endian machine."""

from __future__ import annotations

import sys

import pytest

from uuidd.core.timeline.outcomes import Block
from uuidd.core.wire import LIBUUID_FIRST, libuuid
from uuidd.core.wire.libuuid import Op, ProtocolError, Request

FIRST = bytes.fromhex("c232ab00941411ecb3c89f6bdeced846")
"""RFC 9562's v1 example."""
TICK, CLOCK_SEQ, NODE = 0x1EC9414C232AB00, 0x33C8, 0x9F6BDECED846
BLOCK = Block(TICK, 1, CLOCK_SEQ, NODE)


def bulk_time(echo: int) -> bytes:
    """Return the reply to BULK_TIME_UUID."""
    return libuuid.time_reply(Request(Op.BULK_TIME_UUID, 1, echo), BLOCK)


def bulk_random(found: bytes) -> bytes:
    """Return the reply to BULK_RANDOM_UUID."""
    return libuuid.random_reply(Request(Op.BULK_RANDOM_UUID, 1, 1), found)


def native(little: str) -> bytes:
    """Return a little-endian int32, written in hex, as this machine has it."""
    raw = bytes.fromhex(little)
    return raw if sys.byteorder == "little" else raw[::-1]


REQUESTS = [
    pytest.param(b"\0", Request(Op.GETPID, 1, 1), id="GETPID"),
    pytest.param(b"\1", Request(Op.GET_MAXOP, 1, 1), id="GET_MAXOP"),
    pytest.param(b"\2", Request(Op.TIME_UUID, 1, 1), id="TIME_UUID"),
    pytest.param(b"\3", Request(Op.RANDOM_UUID, 1, 1), id="RANDOM_UUID"),
    pytest.param(b"\4" + native("0a000000"), Request(Op.BULK_TIME_UUID, 10, 10), id="time 10"),
    pytest.param(b"\4" + native("01000000"), Request(Op.BULK_TIME_UUID, 1, 1), id="time 1"),
    pytest.param(
        b"\4" + native("00000400"), Request(Op.BULK_TIME_UUID, 1 << 18, 1 << 18), id="2^18"
    ),
    pytest.param(
        b"\4" + native("40420f00"), Request(Op.BULK_TIME_UUID, 10**6, 10**6), id="million"
    ),
    pytest.param(b"\4" + native("00000000"), Request(Op.BULK_TIME_UUID, 1, 0), id="time 0"),
    pytest.param(b"\4" + native("ffffffff"), Request(Op.BULK_TIME_UUID, 1, -1), id="time -1"),
    pytest.param(
        b"\4" + native("00000080"), Request(Op.BULK_TIME_UUID, 1, -(2**31)), id="time low"
    ),
    pytest.param(b"\5" + native("05000000"), Request(Op.BULK_RANDOM_UUID, 5, 5), id="random 5"),
    pytest.param(b"\5" + native("3f000000"), Request(Op.BULK_RANDOM_UUID, 63, 63), id="random 63"),
    pytest.param(b"\5" + native("40000000"), Request(Op.BULK_RANDOM_UUID, 63, 64), id="random 64"),
    pytest.param(
        b"\5" + native("ffffff7f"), Request(Op.BULK_RANDOM_UUID, 63, 2**31 - 1), id="random most"
    ),
    pytest.param(b"\5" + native("00000000"), Request(Op.BULK_RANDOM_UUID, 0, 0), id="random 0"),
    pytest.param(b"\5" + native("ffffffff"), Request(Op.BULK_RANDOM_UUID, 1, -1), id="random -1"),
    pytest.param(
        b"\5" + native("00000080"), Request(Op.BULK_RANDOM_UUID, 1, -(2**31)), id="random low"
    ),
]


@pytest.mark.parametrize(("data", "request_"), REQUESTS)
def test_a_request_is_unpacked_once_it_is_whole(data: bytes, request_: Request) -> None:
    assert data[0] in LIBUUID_FIRST
    assert libuuid.unpack_request(data) == request_
    assert [libuuid.unpack_request(data[:end]) for end in range(len(data))] == [None] * len(data)


@pytest.mark.parametrize(("data", "request_"), REQUESTS)
@pytest.mark.parametrize("more", [b"\0", b"\4\1\0\0\0", b"\xff" * 100], ids=len)
def test_bytes_after_a_request_are_passed_over(data: bytes, request_: Request, more: bytes) -> None:
    assert libuuid.unpack_request(data + more) == request_


@pytest.mark.parametrize("op", [6, 7, 64, 128, 255])
def test_another_op_is_refused(op: int) -> None:
    with pytest.raises(ProtocolError, match=f"op {op};"):
        libuuid.unpack_request(bytes([op]))


@pytest.mark.parametrize("count", ["41420f00", "80969800", "ffffff7f"])
def test_more_than_a_million_is_refused(count: str) -> None:
    """No caller of libuuid asks for more than a million; util-linux would burn clock sequences."""
    with pytest.raises(ProtocolError, match="at most 1000000"):
        libuuid.unpack_request(b"\4" + native(count))


@pytest.mark.parametrize(
    ("op", "count", "data"),
    [
        (Op.GETPID, 1, b"\0"),
        (Op.GET_MAXOP, 1, b"\1"),
        (Op.TIME_UUID, 7, b"\2"),
        (Op.RANDOM_UUID, 7, b"\3"),
        (Op.BULK_TIME_UUID, 10, b"\4" + native("0a000000")),
        (Op.BULK_TIME_UUID, -1, b"\4" + native("ffffffff")),
        (Op.BULK_RANDOM_UUID, 5, b"\5" + native("05000000")),
    ],
)
def test_a_request_has_libuuids_bytes(op: int, count: int, data: bytes) -> None:
    assert libuuid.pack_request(op, count) == data


def test_replies_begin_with_their_length() -> None:
    assert libuuid.text_reply("1234") == native("05000000") + b"1234\0"
    assert libuuid.maxop_reply() == native("02000000") + b"\x35\x00"
    single = native("10000000") + FIRST
    assert libuuid.time_reply(Request(Op.TIME_UUID, 1, 1), BLOCK) == single
    assert libuuid.random_reply(Request(Op.RANDOM_UUID, 1, 1), FIRST) == single


@pytest.mark.parametrize(
    ("echo", "sent"), [(10, "0a000000"), (0, "00000000"), (-1, "ffffffff"), (10**6, "40420f00")]
)
def test_the_reply_to_bulk_time_echoes_the_count(echo: int, sent: str) -> None:
    assert bulk_time(echo) == native("14000000") + FIRST + native(sent)


def test_the_reply_to_bulk_random_counts_its_uuids() -> None:
    assert bulk_random(bytes(16) + FIRST) == (
        native("24000000") + native("02000000") + bytes(16) + FIRST
    )
    assert bulk_random(b"") == native("04000000") + native("00000000")


REPLIES = [
    pytest.param(libuuid.text_reply("1234"), b"1234\0", id="pid"),
    pytest.param(native("10000000") + FIRST, FIRST, id="uuid"),
    pytest.param(bulk_time(10), FIRST + native("0a000000"), id="bulk time"),
    pytest.param(bulk_random(b""), native("00000000"), id="bulk random 0"),
    pytest.param(bulk_random(FIRST * 63), native("3f000000") + FIRST * 63, id="the longest"),
    pytest.param(native("00000000"), b"", id="empty"),
]


@pytest.mark.parametrize(("reply", "body"), REPLIES)
def test_a_body_is_unpacked_once_the_reply_is_whole(reply: bytes, body: bytes) -> None:
    assert libuuid.unpack_body(reply) == body
    assert libuuid.unpack_body(reply + b"more") == body
    assert [libuuid.unpack_body(reply[:end]) for end in range(len(reply))] == [None] * len(reply)


@pytest.mark.parametrize("size", ["ffffffff", "00000080", "f5030000", "ffffff7f"])
def test_a_length_that_no_reply_has_is_refused(size: str) -> None:
    with pytest.raises(ProtocolError, match="a reply of"):
        libuuid.unpack_body(native(size))


@pytest.mark.parametrize(("echo", "count"), [(10, 10), (1, 1), (0, 1), (-1, 1)])
def test_a_bulk_time_reply_reserves_its_block(echo: int, count: int) -> None:
    body = libuuid.unpack_body(bulk_time(echo))
    assert body is not None
    assert libuuid.unpack_block(body) == Block(TICK, count, CLOCK_SEQ, NODE)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"", id="empty"),
        pytest.param(FIRST, id="no count"),
        pytest.param(FIRST + b"\1\0\0", id="half a count"),
        pytest.param(FIRST + b"\1\0\0\0\0", id="more than a count"),
        pytest.param(bytes(16) + b"\1\0\0\0", id="the nil UUID"),
        pytest.param(bytes.fromhex("919108f752d143209bacf847db4148a8") + b"\1\0\0\0", id="a v4"),
        pytest.param(bytes.fromhex("1ec9414c232a6b00b3c89f6bdeced846") + b"\1\0\0\0", id="a v6"),
    ],
)
def test_another_body_reserves_nothing(body: bytes) -> None:
    with pytest.raises(ProtocolError, match="not a v1 UUID and a count"):
        libuuid.unpack_block(body)


@pytest.mark.parametrize("count", [0, 1, 2, 63])
def test_random_uuids_are_16_bytes_each(count: int) -> None:
    uuids = [bytes([number]) * 16 for number in range(count)]
    body = libuuid.unpack_body(bulk_random(b"".join(uuids)))
    assert body is not None
    assert libuuid.random_uuids(body) == uuids
