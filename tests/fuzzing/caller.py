"""One caller: sends what its script says, and judges what it got."""

from __future__ import annotations

import contextlib
import os
import socket
import struct
from dataclasses import dataclass
from enum import Enum
from typing import Any

import msgpack

from tests.daemon.fakes import request
from tests.fuzzing.given_out import GivenOut
from uuidd.core.wire import LIBUUID_FIRST, RPC_FIRST, libuuid, methods, rpc
from uuidd.core.wire.libuuid import Op

PING = 0xFFFF_FFF0
"""The msgid of the request that asks whether the daemon still listens."""

ERRORS = {"unavailable", "no_worker_id", "busy"}
"""What may be answered to a request that is right."""


class Ending(Enum):
    """What a caller does after its last piece."""

    SHUT = "says that no more comes, and reads to the end"
    GO = "closes at once, and reads nothing"
    STAY = "says nothing more, and stays"
    DEAF = "says that no more comes, and reads a second later"


@dataclass(frozen=True, slots=True)
class Script:
    """What one caller sends, and what it does then."""

    ending: Ending
    pieces: list[bytes]


class Caller:
    """A connection to *address* that follows *script*; *limit* is the most bytes of a request."""

    def __init__(self, script: Script, address: bytes, limit: int) -> None:
        self._script = script
        self._limit = limit
        self._sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._sent = bytearray()
        self._got = bytearray()
        self._ended = False
        self._pinged = False
        self._deaf = script.ending == Ending.DEAF
        self._refused = False
        self._sock.connect(address)
        self._sock.setblocking(False)

    def send(self, place: int) -> None:
        """Send the piece at *place*, if there is one and the daemon takes it."""
        pieces = self._script.pieces
        if place >= len(pieces) or self._refused:
            return
        try:
            sent = self._sock.send(pieces[place])
        except (BrokenPipeError, ConnectionResetError, BlockingIOError):
            self._refused = True
            return
        self._sent += pieces[place][:sent]
        self._refused = sent < len(pieces[place])

    def end(self) -> None:
        """Do what comes after the last piece."""
        if self._script.ending == Ending.GO:
            self._sock.close()
            self._ended = True
        elif self._script.ending != Ending.STAY:
            with contextlib.suppress(OSError):
                self._sock.shutdown(socket.SHUT_WR)

    def hear(self) -> None:
        """Read from now on, if it did not before."""
        self._deaf = False

    def read(self) -> bool:
        """Read what has come; the answer is whether there was any, or the end."""
        came = False
        while not self._ended and not self._deaf:
            try:
                data = self._sock.recv(1 << 18)
            except BlockingIOError:
                break
            except ConnectionResetError:
                # The daemon closed without having read all: what it sent before was read.
                data = b""
            self._got += data
            self._ended = not data
            came = True
        return came

    @property
    def waits(self) -> bool:
        """Whether an answer or the end has to come yet."""
        if self._ended:
            return False
        if self._script.ending != Ending.STAY:
            return True
        if not self._sent:
            # It may be silent for as long as it likes, but is answered when it is not.
            return self._pinged and not self._replies()
        asked, rest, malformed = self._asked()
        if not asked or rest or malformed:
            return True
        wanted = sum(each.msgid is not None for each in asked)
        return len(self._replies()) < wanted + self._pinged

    @property
    def unread(self) -> bool:
        """Whether the daemon may have given out what this caller did not read."""
        return self._script.ending == Ending.GO

    def ping(self) -> None:
        """Ask once more, if the connection is open still."""
        if not self._ended:
            self._sock.send(request("make", "v4", msgid=PING))
            self._pinged = True

    def close(self) -> None:
        """Hang up."""
        self._sock.close()

    def judge(self, given_out: GivenOut, *, rejected: bool) -> str:
        """Return the outcome, and note blocks in *given_out*. Fails for a wrong answer.

        *rejected*: the daemon may have answered that a limit is reached.
        """
        sent, got = bytes(self._sent), bytes(self._got)
        if self._script.ending == Ending.GO:
            return "gone"
        if not sent and self._pinged:
            return self._judge_silent(given_out, rejected)
        if not sent or sent[0] not in (*LIBUUID_FIRST, *RPC_FIRST):
            assert not got, "what is in no dialect is not answered"
            return "closed"
        if sent[0] in LIBUUID_FIRST:
            return self._judge_libuuid(sent, got, given_out, rejected)
        asked, _, malformed = self._asked()
        replies = self._replies()
        if self._pinged:
            assert replies, "an open connection is answered"
            assert replies[-1][1] == PING, "an open connection is answered"
            if rejected and _is_busy(replies[-1]):
                return "rejected"
            given_out.make("v4", replies.pop()[3])
        wanting = [each for each in asked if each.msgid is not None]
        if rejected and (not got or (len(replies) == 1 and _is_busy(replies[0]))):
            return "rejected"
        told = {"MalformedError"} if malformed else set()
        if malformed is not None and malformed.msgid is not None:
            assert len(replies) > len(wanting), "what cannot be read is answered"
            _, msgid, error, _ = replies.pop()
            assert msgid == malformed.msgid, "what cannot be read is answered last"
            assert _code(error) == "bad_params", "what is wrong is told"
            told.add("told")
        assert len(replies) == len(wanting), "each request is answered once"
        for each, reply in zip(wanting, replies, strict=True):
            told.add(_judge(each, reply, given_out))
        return "+".join(sorted(told)) or "unanswered"

    def _judge_silent(self, given_out: GivenOut, rejected: bool) -> str:
        replies = self._replies()
        if rejected and (not replies or _is_busy(replies[0])):
            return "rejected"
        assert len(replies) == 1, "one long silent is answered"
        assert replies[0][1] == PING, "one long silent is answered"
        given_out.make("v4", replies[0][3])
        return "silent"

    def _asked(self) -> tuple[list[rpc.Request], bytes, rpc.MalformedError | None]:
        """Return the requests that were sent, what was sent beyond, and what is wrong with that."""
        sent = bytes(self._sent)
        if not sent or sent[0] not in RPC_FIRST:
            return [], sent, None
        asked: list[rpc.Request] = []
        end = 0
        try:
            for each, at in rpc.unpack_requests(sent, limit=self._limit):
                asked.append(each)
                end = at
        except rpc.MalformedError as error:
            return asked, b"", error
        return asked, sent[end:], None

    def _replies(self) -> list[list[Any]]:
        unpacker = msgpack.Unpacker()
        unpacker.feed(bytes(self._got))
        found: list[list[Any]] = []
        try:
            for reply in unpacker:
                assert type(reply) is list, "a reply has four items"
                assert len(reply) == 4, "a reply has four items"
                assert reply[0] == 1, "a reply is a response"
                assert type(reply[1]) is int, "a reply is a response"
                found.append(reply)
        except (ValueError, msgpack.UnpackException) as error:
            raise AssertionError("replies are MessagePack") from error
        return found

    def _judge_libuuid(self, sent: bytes, got: bytes, given_out: GivenOut, rejected: bool) -> str:
        try:
            ask = libuuid.unpack_request(sent)
        except libuuid.ProtocolError:
            assert not got, "an unreasonable request is not answered"
            return "ProtocolError"
        if ask is None or not got:
            assert not got, "half a request is not answered"
            free = ask is not None and ask.op not in (Op.TIME_UUID, Op.BULK_TIME_UUID)
            assert not free or rejected, "what takes no ticks is answered"
            return "unanswered"
        (size,) = struct.unpack_from("=i", got)
        assert len(got) == 4 + size, "a reply has the length that it says"
        body = got[4:]
        if sent[0] == 0:
            assert body == f"{os.getpid()}\0".encode(), "a pid is told"
        elif sent[0] == 1:
            assert body == b"5\0", "the highest op is told"
        elif sent[0] in (2, 4):
            given_out.v1(body[:16], ask.count)
            echo = struct.pack("=i", ask.echo) if sent[0] == 4 else b""
            assert body[16:] == echo, "a count is told as it was asked"
        else:
            many = struct.pack("=i", ask.count) if sent[0] == 5 else b""
            assert body.startswith(many), "a reply says how many UUIDs it has"
            body = body[len(many) :]
            some = [body[at : at + 16] for at in range(0, len(body), 16)]
            assert len(some) == ask.count, "as many random UUIDs are sent as were asked for"
            assert all(each[6] >> 4 == 4 for each in some), "random UUIDs are v4"
            given_out.make("v4", [each.hex() for each in some])
        return "libuuid"


def _is_busy(reply: list[Any]) -> bool:
    return reply[2] is not None and _code(reply[2]) == "busy"


def _code(error: Any) -> str:
    assert type(error) is str, "an error is a code and a message in one text"
    assert ": " in error, "an error is a code and a message in one text"
    code: str = error.partition(": ")[0]
    return code


def _judge(each: rpc.Request, reply: list[Any], given_out: GivenOut) -> str:
    _, msgid, error, result = reply
    assert msgid == each.msgid, "requests are answered in order"
    try:
        call = methods.parse(each.method, each.params)
    except methods.RefusedError as refused:
        wrong = f"{refused.code}: {refused.message}"
        assert error == wrong, "what is wrong is told"
        return refused.code
    if error is not None:
        code = _code(error)
        if call == "lease":
            may_be = {"no_lease"}
        elif call == "renew":
            may_be = {"unavailable", "not_permitted"}
        elif isinstance(call, str) or call.wait:
            may_be = ERRORS
        else:
            may_be = {*ERRORS, "must_wait"}
        assert result is None, "an error is one that can be"
        assert code in may_be, "an error is one that can be"
        return code
    match call:
        case methods.Take(timeline, count, whole, _):
            given_out.take(result, timeline, count, whole)
        case methods.Make(kind, count, _):
            assert len(result) == count, "as many ids are made as were asked for"
            given_out.make(kind, result)
        case "lease":
            given_out.lease(methods.unpack_lease(result))
        case "renew":
            assert type(result) is dict, "a renewal"
            assert {*result} == {"leases", "saved"}, "a renewal"
        case _:
            assert type(result) is dict, "a status is a map"
            assert "version" in result, "a status is a map"
    return "answered"
