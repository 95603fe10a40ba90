"""Readers: both protocols as daemon and client read them, the state file, and texts of ids."""

from __future__ import annotations

import hashlib
import marshal
from collections.abc import Callable
from typing import NamedTuple
from zlib import crc32

import msgpack

from tests.core.test_families import WRITINGS
from tests.fuzzing import corpus
from tests.fuzzing.changes import Changes, of_messagepack, of_numbers, of_words
from tests.fuzzing.corpus import Case
from tests.fuzzing.messages import PARTS, VALUES
from uuidd.core.ids import uuids, versions
from uuidd.core.ids.kinds import KINDS
from uuidd.core.ids.ticks import UNIX_EPOCH
from uuidd.core.timeline.outcomes import MAX_BLOCK
from uuidd.core.wire import libuuid, methods, rpc
from uuidd.core.wire.libuuid import Op, ProtocolError
from uuidd.core.wire.rpc import MalformedError
from uuidd.statefile import FORMAT, UnusableError, decode, encode
from uuidd_client.readings import INSPECTED_KINDS, inspect

LIMIT = 4096
"""Bytes of the longest request."""


def _is_short(error: Exception) -> None:
    assert len(str(error)) <= 300, "what is wrong is told in few words"


def requests(data: bytes) -> str:
    """Read requests: each ends past the one before, and pieces give the same as the whole."""
    found, _, malformed = whole = _read([data])
    assert _read(_cut(data)) == whole, "pieces give the same requests as the whole"
    if malformed:
        return "MalformedError"
    return "ok" if found else "unfinished"


def _cut(data: bytes) -> list[bytes]:
    """Cut *data* as its own checksum says: somewhere, in three, or after each byte."""
    told, size = crc32(data), len(data) + 1
    if told % 8 == 0 and size < 80:
        return [data[at : at + 1] for at in range(len(data))]
    one, other = sorted((told % size, told // size % size))
    return [data[:one], data[one:other], data[other:]] if told % 3 else [data[:one], data[one:]]


def _read(pieces: list[bytes]) -> tuple[list[tuple[object, ...]], bytes, bool]:
    """Read *pieces* as a connection does; return what it found, what is left, if it ended so."""
    found: list[tuple[object, ...]] = []
    rest, passed = b"", 0
    for piece in pieces:
        rest += piece
        end = 0
        try:
            for (msgid, method, params), at in rpc.unpack_requests(rest, limit=LIMIT):
                assert end < at <= len(rest), "each request ends past the one before"
                if msgid is not None:
                    assert type(msgid) is int, "a msgid is a number"
                    rpc.pack_error(msgid, "x", "")
                try:
                    # Bytes are equal for what holds a NaN, too.
                    seen = marshal.dumps((method, params), 0)
                except ValueError:
                    # An extension, which marshal does not know, or nested deeper than it goes.
                    seen = b""
                found.append((passed + at, msgid, seen))
                end = at
        except MalformedError as error:
            _is_short(error)
            if error.msgid is not None:
                rpc.pack_error(error.msgid, "bad_params", str(error))
            return found, b"", True
        rest = rest[end:]
        passed += end
    return found, rest, False


def calls(data: bytes) -> str:
    """Parse a method and its params: it is a call in its range, or refused in few words."""
    try:
        method, params = msgpack.unpackb(data)
    except (ValueError, TypeError, msgpack.UnpackException):
        return "not put"
    try:
        call = methods.parse(method, params)
    except methods.RefusedError as refused:
        _is_short(refused)
        rpc.pack_error(1, refused.code, refused.message)
        return refused.code
    match call:
        case methods.Take(timeline, count, whole, wait):
            assert timeline in methods.TIMELINES, "a timeline is a known one"
            assert type(count) is int, "a take is in range"
            assert 1 <= count <= MAX_BLOCK, "a take is in range"
            assert type(whole) is type(wait) is bool, "whole and wait are true or false"
        case methods.Make(kind, count, wait):
            assert type(wait) is bool, "wait is true or false"
            assert kind in KINDS, "a kind is a known one"
            assert type(count) is int, "a make is in range"
            assert 1 <= count <= methods.MAX_MAKE, "a make is in range"
    return call if isinstance(call, str) else type(call).__name__


def responses(data: bytes) -> str:
    """Read a response and the block that it may hold: from one ids can be made, to its end."""
    try:
        response = rpc.unpack_response(data)
    except MalformedError:
        return "MalformedError"
    if response is None:
        return "unfinished"
    part = data[: crc32(data) % len(data)]
    assert rpc.unpack_response(part) is None, "a part of a response is none yet"
    if response.error is not None:
        return "refused"
    try:
        first, count, clock_seq, node = methods.unpack_block(response.result)
    except ValueError as error:
        _is_short(error)
    else:
        assert count > 0, "a block holds a tick"
        versions.gregorian("v1", first, clock_seq, node)
        versions.gregorian("v6", first + count - 1, clock_seq, node)
        return "Block"
    try:
        first, count, node, worker, epoch = methods.unpack_steady_block(response.result)
    except ValueError as error:
        _is_short(error)
        return "ValueError"
    assert count > 0, "a steady block holds a tick"
    assert UNIX_EPOCH <= first <= (1 << 60) - count, "a steady block is in its range"
    assert 0 <= node < 1 << 48, "a node has 48 bits"
    assert worker is None or 0 <= worker < 1024, "a worker has 10 bits"
    assert type(epoch) is int, "an epoch is no time before 1970"
    assert epoch >= 0, "an epoch is no time before 1970"
    return "SteadyBlock"


def asks(data: bytes) -> str:
    """Read a libuuid request: its count is in range, and it is read by no less than all of it."""
    try:
        ask = libuuid.unpack_request(data)
    except ProtocolError:
        return "ProtocolError"
    if ask is None:
        return "unfinished"
    asked = libuuid.pack_request(ask.op, ask.echo)
    assert data.startswith(asked), "what was read is what was asked"
    assert libuuid.unpack_request(asked) == ask, "what was read is what was asked"
    if len(asked) > 1:
        part = asked[: 1 + ask.echo % 4]
        assert libuuid.unpack_request(part) is None, "a part of a request is none yet"
    if ask.op == Op.BULK_RANDOM_UUID:
        assert 0 <= ask.count <= libuuid.MAX_RANDOM, "a count is in range"
    else:
        assert 1 <= ask.count <= MAX_BLOCK, "a count is in range"
    return "ok"


def replies(data: bytes) -> str:
    """Read a libuuid reply: the block that it reserves begins with its UUID, or it has UUIDs."""
    try:
        body = libuuid.unpack_body(data)
    except ProtocolError:
        return "ProtocolError"
    if body is None:
        return "unfinished"
    assert b"".join(libuuid.random_uuids(body)) == body[4:], "UUIDs are what follows their count"
    try:
        block = libuuid.unpack_block(body)
    except ProtocolError:
        return "uuids"
    single = libuuid.time_reply(libuuid.Request(Op.TIME_UUID, 1, 1), block)
    assert single[4:] == body[:16], "a block begins with the UUID of its reply"
    return "Block"


def states(data: bytes) -> str:
    """Decode a state file: what comes of it is written and decoded as the same again.

    An input that begins with "!" is the whole file; any other gets a head with its checksum.
    """
    data = data[1:] if data.startswith(b"!") else _headed(data)
    try:
        state = decode(data)
    except UnusableError as unusable:
        str(unusable).encode("utf-8", "replace")
        return "UnusableError"
    assert data == _headed(data.partition(b"\n")[2]), "a state has the right checksum"
    assert decode(encode(state)) == state, "a state is decoded as it was encoded"
    return "ok"


def _headed(body: bytes) -> bytes:
    return f"uuidd-state {FORMAT} sha256:{hashlib.sha256(body).hexdigest()}\n".encode() + body


_ASKED = (None, *INSPECTED_KINDS, "v9", "")
_EPOCHS = (None, 0, 1_288_834_974_657, (1 << 48) - 1)


def _text(data: bytes) -> str:
    # What is no UTF-8 comes as lone surrogates, just as it does on a command line.
    return data.decode("utf-8", "surrogateescape")


def texts(data: bytes) -> str:
    """Read a text as each kind that it may be, or as the one that its first byte asks for."""
    told = data[0] if data else 0
    kind, epoch = _ASKED[told % 32 % len(_ASKED)], _EPOCHS[(told >> 5) % 4]
    try:
        found = inspect(_text(data[1:]), kind=kind, epoch=epoch)
    except ValueError:
        return "ValueError"
    assert found, "a text has a reading, or an error"
    for reading in found:
        assert reading.fields.keys() or reading.value in (uuids.NIL, uuids.MAX), "a field is shown"
        # The bytes of a GUID are not in its text's order, so the text is read as something else.
        if reading.kind not in ("unknown", "guid"):
            again = inspect(reading.text, kind=reading.kind)
            assert reading.value in [each.value for each in again], "what a kind writes it reads"
    return "ok"


_PARSERS: list[tuple[Callable[[str], int], Callable[[int], str]]] = [
    *((writing.from_text, writing.to_text) for writing in WRITINGS.values()),
    (versions.namespace, uuids.to_text),
]
"""What reads a text, and what writes it again."""


def spellings(data: bytes) -> str:
    """Read a text by each parser: what it writes it reads again."""
    outcome, text = "ValueError", _text(data)
    for read, write in _PARSERS:
        try:
            value = read(text)
        except ValueError:
            continue
        assert read(write(value)) == value, "what is written is read as the same"
        outcome = "ok"
    return outcome


_STATE_PARTS = [
    *(b"0", b"-1", b"1", b"63", b"64", b"1023", b"1024"),
    *(b"1152921504606846975", b"1152921504606846976"),
    *(b"1e400", b"1.5", b"NaN", b"-Infinity", b"9" * 5000, b"null", b"true", b'"', b'"0x1"'),
    *(b"[]", b"{}", b"{", b"]", b'{"0": 1}', b"\\ud800", b"\\u0000", b"\xff", b"\xc3\xbc"),
    *(b"0x", b"0xffffffffffff", b"0x1000000000000", b"1_0", b" 1 ", b"+1", b"\xd9\xa3"),
    *(b"node", b"marks", b"machine", b"floor", b"steady", b"generation", b"node_source", b"epochs"),
    *(b"leases", b"[" * 100, b"[" * 2000, b"uuidd-state", b"sha256:", b"\n"),
]

_TEXT_PARTS = [
    *(b"0", b"9", b"f", b"z", b"Z", b"-", b"_", b".", b"{", b"}", b":", b"urn:uuid:", b"0x", b" "),
    *(b"0" * 12, b"f" * 12, b"F" * 8, b"1ec", b"7cc3", b"e000", b"0" * 32, b"z" * 22),
    *(b"\0", b"\n", b"\xc3\x9f", b"\xc5\xbf", b"\xd9\xa3", b"\xed\xa0\x80", b"\xff", b"\xc2\xb2"),
    *(b"18446744073709551615", b"9223372036854775807", b"9223372036854775808", b"dns", b"URL"),
    *(str(1 << bits).encode() for bits in (63, 64, 96, 127, 128, 160)),
]


class Reader(NamedTuple):
    """What returns the outcome of any bytes, the inputs to try, and those kept with an outcome."""

    read: Callable[[bytes], str]
    kept: list[Case]
    changes: Changes


def _seeds(cases: list[Case]) -> list[bytes]:
    return [data for data, _ in cases]


_UUIDS = [corpus.UUID, corpus.LAST_UUID]
_STATES = [corpus.STATE, b"!" + _headed(corpus.STATE)]
_TEXTS = [data[1:] for data, outcome in corpus.TEXTS if outcome == "ok"]
_ASKING = [bytes([told]) + text for text in _TEXTS for told in (*[0] * 37, *range(0, 256, 7))]
"""Half of them ask for no kind: as a kind that a text is not, most are refused at once."""

READERS = {
    reader.read.__name__: reader
    for reader in (
        Reader(requests, corpus.REQUESTS, Changes(_seeds(corpus.REQUESTS), PARTS, of_messagepack)),
        Reader(calls, corpus.CALLS, Changes(_seeds(corpus.CALLS), VALUES, of_messagepack)),
        Reader(
            responses, corpus.RESPONSES, Changes(_seeds(corpus.RESPONSES), PARTS, of_messagepack)
        ),
        Reader(asks, corpus.ASKS, Changes(_seeds(corpus.ASKS), PARTS, of_numbers)),
        Reader(
            replies, corpus.REPLIES, Changes(_seeds(corpus.REPLIES), _UUIDS + PARTS, of_numbers)
        ),
        Reader(states, corpus.STATES, Changes(_STATES, _STATE_PARTS, of_words)),
        Reader(texts, corpus.TEXTS, Changes(_ASKING, _TEXT_PARTS, of_words)),
        Reader(spellings, [], Changes(_TEXTS, _TEXT_PARTS, of_words)),
    )
}
