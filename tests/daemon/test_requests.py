from __future__ import annotations

from dataclasses import replace

import pytest

from tests.daemon.fakes import UID, TickingClock, notification, request
from uuidd.core.wire import libuuid, rpc
from uuidd.server.requests import (
    FLUSH_BYTES,
    PARTIAL,
    TURN_SECONDS,
    StoppedBy,
    Waiting,
    answer_libuuid,
    answer_requests,
)
from uuidd.server.settings import Limits

SOME = [request("make", "v4", msgid=number) for number in range(5)]


class Answers:
    """Answers each request by its msgid, in a byte each; one of *waiting* has to wait."""

    def __init__(self, *, waiting: int = -1, size: int = 1) -> None:
        self.given: list[int | None] = []
        self._waiting = waiting
        self._size = size

    def __call__(self, asked: rpc.Request, *, uid: int) -> bytes | None:
        """Answer as the service does."""
        assert uid == UID
        if asked.msgid == self._waiting:
            return None
        self.given.append(asked.msgid)
        return b"" if asked.msgid is None else bytes([asked.msgid % 256]) * self._size


def answered(
    data: bytes,
    answers: Answers | None = None,
    *,
    limits: Limits | None = None,
    clock: TickingClock | None = None,
) -> tuple[bytes, int, StoppedBy]:
    """What becomes of *data* in a turn, during which time stands still unless *clock* ticks."""
    clock = clock or TickingClock()
    return answer_requests(
        data,
        answers or Answers(),
        uid=UID,
        limits=limits or Limits(),
        ends=clock.now + TURN_SECONDS,
        monotonic=clock,
    )


def test_requests_are_answered_in_order() -> None:
    """Their replies are one run of bytes, and a notification adds none."""
    data = b"".join([*SOME[:2], notification("make", "v4"), *SOME[2:]])
    assert answered(data) == (bytes(range(5)), len(data), None)


def test_the_turn_ends_between_two_requests() -> None:
    """Of requests that take 0.04 ms each, three fit into a turn of 0.1 ms."""
    assert answered(b"".join(SOME), clock=TickingClock(step=0.00004)) == (
        bytes(range(3)),
        len(b"".join(SOME[:3])),
        None,
    )


def test_at_least_one_request_is_answered_in_a_turn() -> None:
    """Also when it took longer than the turn, or the turn was over before it."""
    replies, _, _ = answered(b"".join(SOME), clock=TickingClock(step=1.0))
    assert replies == b"\0"


def test_a_single_request_costs_no_look_at_the_clock() -> None:
    """Nearly all requests come alone."""
    clock = TickingClock(step=1.0)
    answered(SOME[0], clock=clock)
    assert clock.now == 0.0


def test_a_turn_ends_after_as_many_requests_as_the_limit_says() -> None:
    """Then replies are sent, and others have their turn."""
    found = answered(b"".join(SOME), limits=replace(Limits(), pipelined=2))
    assert found == (b"\0\1", len(SOME[0] + SOME[1]), None)


def test_a_turn_ends_once_its_replies_are_large() -> None:
    """So they take little memory, whatever is asked for at once."""
    replies, end, _ = answered(b"".join(SOME), Answers(size=FLUSH_BYTES // 2))
    assert (len(replies), end) == (FLUSH_BYTES, len(SOME[0] + SOME[1]))


def test_a_request_that_has_to_wait_ends_the_turn() -> None:
    """It is handed back with its end, and none after it is answered."""
    answers = Answers(waiting=2)
    replies, end, stopped_by = answered(b"".join(SOME), answers)
    assert (replies, end) == (b"\0\1", len(b"".join(SOME[:2])))
    assert isinstance(stopped_by, Waiting)
    assert (stopped_by.request.msgid, stopped_by.end) == (2, len(b"".join(SOME[:3])))
    assert answers.given == [0, 1]


def test_bytes_that_are_no_request_end_the_turn() -> None:
    """Requests before them are answered, and those after them are not."""
    replies, end, stopped_by = answered(SOME[0] + b"\xc1" + SOME[1])
    assert (replies, end) == (b"\0", len(SOME[0]))
    assert isinstance(stopped_by, rpc.MalformedError)


@pytest.mark.parametrize("before", [b"", SOME[1]], ids=["alone", "behind another"])
def test_a_longer_request_than_the_limit_is_malformed(before: bytes) -> None:
    """It is found out even before all of it has arrived."""
    data = before + request("x" * 50)[:40]
    _, end, stopped_by = answered(data, limits=replace(Limits(), request_bytes=39))
    assert end == len(before)
    assert isinstance(stopped_by, rpc.MalformedError)


@pytest.mark.parametrize("cut", range(1, len(SOME[1])))
def test_what_is_left_of_a_request_is_partial(cut: int) -> None:
    """Wherever it is cut, those before it are answered."""
    assert answered(SOME[0] + SOME[1][:cut]) == (b"\0", len(SOME[0]), PARTIAL)


@pytest.mark.parametrize(
    ("data", "reply"),
    [(b"\x02", b"reply"), (b"\x04\x01\0\0\0", b"reply"), (b"\x04\x01", None), (b"\x06", None)],
    ids=["whole", "whole, with a count", "partial", "no such op"],
)
def test_a_libuuid_request_is_answered_if_it_is_whole(data: bytes, reply: bytes | None) -> None:
    """None says that a task has to see to it."""

    def answer(_: libuuid.Request, *, uid: int) -> bytes:
        return b"reply"

    assert answer_libuuid(data, answer, uid=UID) == reply
