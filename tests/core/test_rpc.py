from __future__ import annotations

from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fuzzing.watching import peak
from uuidd.core.wire import LIBUUID_FIRST, RPC_FIRST, rpc
from uuidd.core.wire.rpc import MalformedError, Request, Response

LIMIT = 4096

TAKE = b"\x94\x00\x07\xa4take\x93\xa3utc\xcd\x01\x2c\xc3"
STATUS = b"\x94\x00\xce\xff\xff\xff\xff\xa6status\x90"
NOTE = b"\x93\x02\xa6status\x90"
IGNORED = Request(None, None, None)
LONG_HEADS = b"\xdc\x00\x04\x00\x01\xd9\x04make\xdd\x00\x00\x00\x01\xc4\x01\x00"

MESSAGES = [
    pytest.param(TAKE, Request(7, "take", ["utc", 300, True]), id="take"),
    pytest.param(STATUS, Request(0xFFFF_FFFF, "status", []), id="highest msgid"),
    pytest.param(NOTE, Request(None, "status", []), id="notification"),
    pytest.param(LONG_HEADS, Request(1, "make", [b"\0"]), id="longer heads than needed"),
]

MESSAGES_OF_OTHERS: list[tuple[list[Any], Request | None]] = [
    ([0, 0, "take", ["utc", 1]], Request(0, "take", ["utc", 1])),
    ([0, 2**32 - 1, "make", ["v1", 1000]], Request(2**32 - 1, "make", ["v1", 1000])),
    ([0, 300, "", [None, True, -1, 2.5, b"x", [1]]], None),
    # What no method has, and every library can send: the request can be answered.
    ([0, -(2**63), "take", []], None),
    ([0, 2**32, "take", []], None),
    ([0, 2**64 - 1, "take", []], None),
    ([0, 1, b"take", []], None),
    ([0, 1, None, []], None),
    ([0, 1, 7, []], None),
    ([0, 1, ["take"], []], None),
    ([0, 1, "take", None], None),
    ([0, 1, "take", "utc"], None),
    ([0, 1, "take", {"timeline": "utc"}], Request(1, "take", {})),
    ([0, 1, "take", [{1: 2, b"x": 3, None: 4}]], Request(1, "take", [{}])),
    ([2, "take", ["utc", 1, False]], Request(None, "take", ["utc", 1, False])),
    ([2, b"in_use", []], Request(None, b"in_use", [])),
    ([2, None, None], IGNORED),
    ([2, {1: 2}, {1: 2}], Request(None, {}, {})),
    # A response to what was never asked.
    ([1, 1, None, None], IGNORED),
    ([1, "x", {1: 2}, b""], IGNORED),
]
"""None for the request that has the message's own msgid, method and params."""

OTHER_SHAPES = [
    [True, "status", []],
    [False, 1, "status", []],
    [0.0, 1, "status", []],
    [0, True, "status", []],
    [0, False, "status", []],
    [0, 1.0, "status", []],
    [0, "1", "status", []],
    [0, None, "status", []],
    [0, 1, "status"],
    [0, 1, "status", [], None],
    [0, "status", []],
    [1, "status", []],
    [2.0, "status", []],
    [2, 1, "status", []],
    [2, "status"],
    [3, 1, "status", []],
    [-1, 1, "status", []],
    ["0", 1, "status", []],
    [None, None, None, None],
    [[0, 1, "status", []]],
    [],
    {},
    {"0": 1},
    None,
    True,
    0,
    "status",
    b"status",
]
"""Any other value, or a boolean for an int, is not a request."""

Outcome = tuple[list[Request], bytes, bool]
"""The requests that were read, the bytes that are left, and whether they are malformed."""


def whole(data: bytes, limit: int = LIMIT) -> Outcome:
    """Read *data* in one go."""
    return in_pieces([data], limit)


def in_pieces(pieces: list[bytes], limit: int = LIMIT) -> Outcome:
    """Read *pieces* as a connection does: what is left of one goes before the next."""
    found: list[Request] = []
    rest = b""
    for piece in pieces:
        rest += piece
        end = 0
        try:
            for request, request_end in rpc.unpack_requests(rest, limit=limit):
                found.append(request)
                end = request_end
        except MalformedError:
            return found, b"", True
        rest = rest[end:]
    return found, rest, False


def byte_by_byte(data: bytes) -> list[bytes]:
    """Cut *data* after each byte."""
    return [data[at : at + 1] for at in range(len(data))]


READ = [
    *MESSAGES,
    # What another library sends.
    *(
        pytest.param(
            bytes(msgpack.packb(message)), request_ or Request(*message[1:]), id=str(message)
        )
        for message, request_ in MESSAGES_OF_OTHERS
    ),
    # What Python has no value for; the request is answered, because what follows it can be read.
    pytest.param(b"\x94\x00\x01\xa1\xff\x90", Request(1, "\ufffd", []), id="no UTF-8"),
    pytest.param(
        b"\x94\x00\x01\xa1x\x91\xa3\xed\xa0\x80",
        Request(1, "x", [3 * "\ufffd"]),
        id="surrogate",
    ),
    pytest.param(
        b"\x94\x00\x01\xa1x\x91\x81\x90\x02", Request(1, "x", [{}]), id="an array for a key"
    ),
    pytest.param(b"\x94\x00\x01\xa1x\x91\x81\x80\x02", Request(1, "x", [{}]), id="a map for a key"),
    pytest.param(
        b"\x93\x02\xc4\x01x\x81\x01\x02",
        Request(None, b"x", {}),
        id="pynvim's greeting, in short",
    ),
]


@pytest.mark.parametrize(("data", "request_"), READ)
def test_a_request_is_read_at_once_and_byte_by_byte(data: bytes, request_: Request) -> None:
    assert whole(data) == ([request_], b"", False)
    assert in_pieces(byte_by_byte(data)) == ([request_], b"", False)
    assert in_pieces(byte_by_byte(data)[:-1]) == ([], data[:-1], False)


@pytest.mark.parametrize(
    "data",
    [
        *(bytes(msgpack.packb(message)) for message in OTHER_SHAPES),
        b"\xc1",
        # A time of 3 bytes.
        b"\x94\x00\x01\xa1x\x91\xc7\x03\xff\x00\x00\x00",
    ],
)
def test_any_other_value_is_malformed(data: bytes) -> None:
    assert whole(data) == ([], b"", True)
    assert in_pieces(byte_by_byte(data)) == ([], b"", True)


@pytest.mark.parametrize(
    ("msgid", "data"),
    [
        pytest.param(7, b"\x94\x00\x07\xc1", id="no MessagePack"),
        pytest.param(7, b"\x94\x00\x07\xa1x\x91\xdc\x00\x41", id="too many items"),
        pytest.param(7, b"\x94\x00\x07\xa1x\x91" + b"\x91" * 2000, id="nested too deep"),
        pytest.param(7, b"\x94\x00\x07\xc5\x10\x00" + b"x" * 4200, id="too long"),
        pytest.param(7, b"\x94\x00\x07\xa1x\x91\xc7\x03\xff\x00\x00\x00", id="a time of 3 bytes"),
        pytest.param(7, b"\x93\x00\x07\xa1x", id="without params"),
        pytest.param(7, b"\x95\x00\x07\xa1x\x90\xc0", id="an item too many"),
        pytest.param(
            7, b"\xdd\0\0\0\4\xcf" + bytes(8) + b"\xcf" + bytes(7) + b"\7\xc1", id="long heads"
        ),
        pytest.param(7, TAKE + NOTE + b"\x94\x00\x07\xc1", id="behind others"),
        # A notification, a response, a text, a boolean for a number: there is nobody to answer.
        pytest.param(None, b"\xc1", id="none 0"),
        pytest.param(None, b"\x94\xc1", id="none 1"),
        pytest.param(None, b"\x94\x00\xc1", id="none 2"),
        pytest.param(None, b"\x94\x00\xa17\xc1", id="none 3"),
        pytest.param(None, b"\x94\x00\xcb" + bytes(8) + b"\xc1", id="none 4"),
        pytest.param(None, b"\x94\xc2\x07\xc1", id="none 5"),
        pytest.param(None, b"\x93\x02\x07\xc1", id="none 6"),
        pytest.param(None, b"\x94\x01\x07\xc1", id="none 7"),
        pytest.param(None, b"\x84\x00\x07\xc1", id="none 8"),
        pytest.param(None, b"\x91\x00\xc1", id="none 9"),
        pytest.param(None, b"\x90\xc1", id="none 10"),
        pytest.param(None, b"\x94\x91\x00\x07\xc1", id="none 11"),
        pytest.param(None, b"\xa1\x00\xc1", id="none 12"),
    ],
)
def test_what_begins_as_a_request_is_malformed_with_its_msgid(
    msgid: int | None, data: bytes
) -> None:
    """So it can be answered before the connection ends."""
    with pytest.raises(MalformedError) as caught:
        list(rpc.unpack_requests(data, limit=LIMIT))
    assert caught.value.msgid == msgid


def test_the_first_byte_tells_the_protocols_apart() -> None:
    assert LIBUUID_FIRST.isdisjoint(RPC_FIRST)
    assert all(data[0] in RPC_FIRST for data in (TAKE, STATUS, NOTE, LONG_HEADS))


def request_of(size: int) -> bytes:
    """Return a request of *size* bytes."""
    head = b"\x94\x00\x01\xa1x\x91\xc5"
    length = size - len(head) - 2
    return head + length.to_bytes(2, "big") + b"x" * length


@pytest.mark.parametrize("limit", [64, LIMIT])
def test_a_request_may_have_as_many_bytes_as_the_limit_and_no_more(limit: int) -> None:
    for data, count in (request_of(limit), 1), (request_of(limit + 1), 0):
        found, rest, malformed = whole(data, limit)
        assert (len(found), rest, malformed) == (count, b"", not count)
        assert repr(in_pieces(byte_by_byte(data), limit)) == repr((found, rest, malformed))


def test_an_unfinished_request_of_the_limit_is_waited_for() -> None:
    data = request_of(LIMIT + 1)[:LIMIT].replace(b"\xc5\x0f\xf8", b"\xc5\x0f\xf9")
    assert whole(data) == ([], data, False)


def test_an_unfinished_request_past_the_limit_is_malformed() -> None:
    """Nobody can make the daemon keep more bytes than the limit, within 64 items."""
    part = b"\xc5\x00\xff" + b"x" * 255
    data = b"\x94\x00\x01\xa1x\xdc\x00\x40" + part * 16
    assert len(data) > LIMIT
    assert whole(data[: LIMIT + 1]) == ([], b"", True)
    assert whole(data[:LIMIT]) == ([], data[:LIMIT], False)


BEFORE = pytest.mark.parametrize(
    "before", [b"\x94\x00\x01\xa1x\x91", b"\x94\x00\x01", b"\x94\x00", b""]
)


@BEFORE
@pytest.mark.parametrize("head", [b"\xdd", b"\xdf", b"\xc9"])
def test_an_array_or_map_of_4_gb_is_malformed_at_once(before: bytes, head: bytes) -> None:
    data = before + head + b"\xff\xff\xff\xff\x01"
    assert whole(data) == ([], b"", True)
    assert peak(lambda: whole(data)) < 100_000


@BEFORE
@pytest.mark.parametrize("head", [b"\xdb", b"\xc6"])
def test_a_text_of_4_gb_is_malformed_past_the_limit(before: bytes, head: bytes) -> None:
    data = (before + head + b"\xff\xff\xff\xff").ljust(LIMIT + 1, b"x")
    assert whole(data) == ([], b"", True)
    assert peak(lambda: whole(data)) < 100_000


@pytest.mark.parametrize("head", [b"\xdc", b"\xde"])
def test_an_array_or_map_has_64_items_at_most(head: bytes) -> None:
    item = b"\xc0" if head == b"\xdc" else b"\xa1x\xc0"
    begin = b"\x94\x00\x01\xa1x\x91" + head
    assert len(whole(begin + b"\x00\x40" + item * 64)[0]) == 1
    for rest in b"", item * 65, item * 65 + TAKE:
        assert whole(begin + b"\x00\x41" + rest) == ([], b"", True)


@pytest.mark.parametrize("head", [b"\x91", b"\xdc\x00\x40", b"\x81\xa0", b"\xde\x00\x40\xa0"])
def test_nesting_1000_deep_costs_little(head: bytes) -> None:
    data = (b"\x94\x00\x01\xa1x\x91" + head * 1000)[:LIMIT]
    assert whole(data) == ([], data, False)
    assert peak(lambda: whole(data)) < 2_000_000


def test_nesting_1000_deep_of_many_items_is_refused_at_little_cost() -> None:
    data = b"\x94\x00\x01\xa1x\x91" + b"\xdc\xff\xff" * 1000
    assert whole(data) == ([], b"", True)
    assert peak(lambda: whole(data)) < 100_000


@pytest.mark.parametrize("head", [b"\x91", b"\x81\xa0"])
@pytest.mark.parametrize("depth", [1000, 1100, 2000])
def test_nesting_is_read_or_malformed(head: bytes, depth: int) -> None:
    data = b"\x94\x00\x01\xa1x\x91" + head * depth + b"\xc0"
    found, rest, malformed = whole(data, 1 << 20)
    assert not rest
    assert malformed is not bool(found)


def test_messages_are_packed_as_published() -> None:
    assert rpc.pack_response(7, "ok") == b"\x94\x01\x07\xc0\xa2ok"
    assert rpc.pack_error(7, "busy", "no") == b"\x94\x01\x07\xa8busy: no\xc0"
    assert rpc.pack_request(7, "take", ["utc", 300, True]) == TAKE


RESPONSES = [
    pytest.param(b"\x94\x01\x07\xc0\xa2ok", Response(7, None, "ok"), id="text"),
    pytest.param(b"\x94\x01\x00\xc0\xc0", Response(0, None, None), id="nil"),
    pytest.param(b"\x94\x01\x00\xc0\x81\xa1a\xc4\x01b", Response(0, None, {"a": b"b"}), id="map"),
    pytest.param(b"\x94\x01\x07\xa8busy: no\xc0", Response(7, "busy: no", None), id="error"),
]


@pytest.mark.parametrize(("data", "response"), RESPONSES)
def test_a_response_is_unpacked_once_it_is_whole(data: bytes, response: Response) -> None:
    assert rpc.unpack_response(data) == response
    assert [rpc.unpack_response(data[:end]) for end in range(len(data))] == [None] * len(data)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (None, ""),
        ("busy: no room: 3", "busy"),
        ("busy", "busy"),
        ("", ""),
        ("must_wait: x", "must_wait"),
    ],
)
def test_an_errors_code_is_what_stands_before_the_colon(error: str | None, code: str) -> None:
    assert Response(7, error, None).code == code


@pytest.mark.parametrize(
    "message",
    [
        [0, 7, None, None],
        [2, 7, None, None],
        [1, "7", None, None],
        [1, None, None, None],
        [1, 7.0, None, None],
        [1, 7, ["busy", "no"], None],
        [1, 7, b"busy: no", None],
        [1, 7, 1, None],
        [1, 7, False, None],
        [1, 7, "busy: no", "ok"],
        [1, 7, "busy: later", 0],
        [True, 7, None, None],
        [1, True, None, None],
        [1, 7, [], None],
        [1.0, 7, None, None],
        [1, 7, None],
        [1, 7, None, None, None],
        {},
        7,
        None,
    ],
)
def test_another_shape_is_no_response(message: Any) -> None:
    with pytest.raises(MalformedError, match="not a MessagePack-RPC response"):
        rpc.unpack_response(msgpack.packb(message))


@pytest.mark.parametrize(
    ("data", "problem"),
    [(b"\xc1", "not MessagePack"), (b"\x94\1\7\xc0\5\x90", "more than one response")],
)
def test_other_bytes_are_no_response(data: bytes, problem: str) -> None:
    """One request is out at a time, so what follows its response answers nothing."""
    with pytest.raises(MalformedError, match=problem):
        rpc.unpack_response(data)


def test_a_large_response_is_read() -> None:
    """A thousand ids of text, the longest answer there is, are read whole."""
    ids = [f"{number:036}" for number in range(1000)]
    assert rpc.unpack_response(rpc.pack_response(1, ids)) == Response(1, None, ids)


VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats()
    | st.text(max_size=8)
    | st.binary(max_size=8)
    | st.builds(msgpack.ExtType, st.integers(0, 127), st.binary(max_size=4)),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=8,
)


def packed(*parts: st.SearchStrategy[Any]) -> st.SearchStrategy[bytes]:
    """Arrays of these parts, as MessagePack."""
    return st.tuples(*parts).map(lambda message: bytes(msgpack.packb(message)))


METHODS, PARAMS = st.text(max_size=6) | VALUES, st.lists(VALUES, max_size=3) | VALUES
NOTIFICATIONS = packed(st.just(2), VALUES, VALUES)
REQUESTS = packed(st.just(0), st.integers(-(2**63), 2**64 - 1), METHODS, PARAMS)


@given(st.lists(REQUESTS | NOTIFICATIONS, min_size=1, max_size=6))
def test_each_request_is_read_as_it_was_packed(parts: list[bytes]) -> None:
    ends = [sum(map(len, parts[: at + 1])) for at in range(len(parts))]
    found = list(rpc.unpack_requests(b"".join(parts), limit=1 << 20))
    assert [end for _, end in found] == ends
    for (request, _), part in zip(found, parts, strict=True):
        message = msgpack.unpackb(part, object_pairs_hook=lambda _: {})
        expected = Request(*message[1:]) if message[0] == 0 else Request(None, *message[1:])
        assert repr(request) == repr(expected)
