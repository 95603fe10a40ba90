from __future__ import annotations

import fcntl
import socket
import sys
import termios
from typing import Any, cast

import pytest

from tests.daemon.fakes import UID, TickingClock, notification, request
from uuidd.core.wire import libuuid, rpc
from uuidd.server.client import (
    END,
    FLUSH_BYTES,
    PAUSE,
    READ,
    READ_BYTES,
    REQUEST,
    REST,
    TURN,
    Client,
    Next,
)
from uuidd.server.events import Tally
from uuidd.server.fairness import TURN_SECONDS, Answer
from uuidd.server.service import Service
from uuidd.server.settings import Limits

SOME = [request("make", "v4", msgid=number) for number in range(5)]


async def nothing() -> None:
    """Wait for nothing."""


class Answers:
    """Answers an rpc request by its msgid, in *size* bytes, after *pauses* if it is *waiting*."""

    def __init__(self, *, waiting: int = -1, pauses: int = 1, size: int = 1) -> None:
        self.rpc, self.libuuid = Tally(lambda _: None), Tally(lambda _: None)
        self.leasing, self.limits = self, Limits()
        self.given: list[int | None] = []
        self._waiting, self._pauses, self._size = waiting, pauses, size

    def answer(self, asked: rpc.Request, client: Client) -> Answer:
        """Answer as the service does."""
        self.given.append(asked.msgid)
        if asked.msgid == self._waiting:
            for _ in range(self._pauses):
                yield nothing
        if asked.msgid is not None:
            client.unsent += bytes([asked.msgid % 256]) * self._size

    def answer_libuuid(self, asked: libuuid.Request, client: Client) -> Answer:
        """Answer as the service does."""
        yield from ()
        client.unsent += b"reply"

    def send_with_page(self, sock: socket.SocketType, data: bytes) -> int:
        """Pass no page."""
        return 0


class Pumped:
    """A client that *answers* serve, under limits by name, and the socket of its *peer*."""

    def __init__(
        self,
        answers: Answers | None = None,
        clock: TickingClock | None = None,
        refusal: str = "",
        **limits: Any,
    ) -> None:
        self.answers = answers or Answers()
        self.answers.limits = Limits(**limits)
        self.clock = clock or TickingClock()
        self.peer, ours = socket.socketpair()
        self.client = Client(ours, UID, cast("Service", self.answers), refusal)

    def __enter__(self) -> Pumped:
        return self

    def __exit__(self, *_: object) -> None:
        self.peer.close()
        self.client.sock.close()

    def deadline(self) -> float | None:
        """Return the client's deadline."""
        return self.client.deadline

    def pump(self, data: bytes = b"", *, end: bool = False) -> tuple[bytes, Next]:
        """Return what is sent in a turn after *data* has arrived, and what has to happen next."""
        if data:
            self.peer.sendall(data)
        if end:
            self.peer.shutdown(socket.SHUT_WR)
        then = self.client.pump(self.clock.now + TURN_SECONDS, self.clock)
        try:
            return self.peer.recv(1 << 20, socket.MSG_DONTWAIT), then
        except BlockingIOError:
            return b"", then


def test_requests_are_answered_in_order() -> None:
    data = b"".join([*SOME[:2], notification("make", "v4"), *SOME[2:]])
    with Pumped() as one:
        assert one.pump(data) == (bytes(range(5)), REQUEST)
        assert one.pump(SOME[3]) == (b"\3", REQUEST)
        assert one.pump() == (b"", REQUEST)
        # The end is heard only after what came with it.
        assert one.pump(SOME[1], end=True) == (b"\1", REQUEST)
        assert one.pump() == (b"", END)


@pytest.mark.parametrize(
    ("step", "answered"), [(0.00004, [3, 2]), (1.0, [1, 1, 1, 1, 1])], ids=["short", "long"]
)
def test_the_turn_ends_between_two_requests(step: float, answered: list[int]) -> None:
    """Of those that take 0.04 ms three fit into a turn; at least one is answered in each."""
    with Pumped(clock=TickingClock(step)) as one:
        turns = [one.pump(b"".join(SOME))]
        while turns[-1][1] is TURN:
            turns.append(one.pump())
    assert [len(sent) for sent, _ in turns] == answered
    assert turns[-1][1] is REQUEST


def test_a_single_request_costs_no_look_at_the_clock() -> None:
    """Nearly all requests come alone."""
    with Pumped(clock=TickingClock(step=1.0)) as one:
        one.pump(SOME[0])
        assert one.clock.now == 0.0


def test_a_turn_ends_after_as_many_requests_as_the_limit_says() -> None:
    with Pumped(pipelined=2) as one:
        assert one.pump(b"".join(SOME)) == (b"\0\1", TURN)


def test_a_turn_ends_once_its_replies_are_large() -> None:
    """So they take little memory, whatever is asked for at once."""
    answers = Answers(size=FLUSH_BYTES // 2)
    with Pumped(answers) as one:
        one.pump(b"".join(SOME))
        assert answers.given == [0, 1]


def test_a_request_that_has_to_wait_is_asked_once_and_keeps_its_place() -> None:
    answers = Answers(waiting=2, pauses=3)
    with Pumped(answers) as one:
        assert one.pump(b"".join(SOME)) == (b"\0\1", PAUSE)
        assert one.client.pause is nothing
        assert [one.pump() for _ in range(3)] == [(b"", PAUSE)] * 2 + [(b"\2", TURN)]
        assert answers.given == [0, 1, 2]
        assert one.pump() == (b"\3\4", REQUEST)


def test_a_request_waits_once_the_replies_before_it_were_read() -> None:
    """Or many that wait would keep large replies. To read them is not the end of its pause."""
    with Pumped(Answers(waiting=1, size=60_000)) as one:
        one.peer.sendall(SOME[0] + SOME[1])
        assert one.client.pump(TURN_SECONDS, one.clock) is READ
        sent, then = b"", READ
        while then is READ:
            more, then = one.pump()
            sent += more
        assert (sent, then) == (b"\0" * 60_000, PAUSE)
        assert one.answers.given == [0, 1]
        assert one.pump()[0][:1] == b"\1"


@pytest.mark.parametrize("cut", range(1, len(SOME[1])))
def test_what_is_left_of_a_request_is_awaited(cut: int) -> None:
    with Pumped() as one:
        one.client.deadline = 1.0
        assert one.pump(SOME[0] + SOME[1][:cut]) == (b"\0", REST)
        assert one.deadline() is None
        one.client.deadline = 2.0
        for at in range(cut, len(SOME[1]) - 1):
            assert one.pump(SOME[1][at : at + 1]) == (b"", REST)
        assert one.deadline() == 2.0
        assert one.pump(SOME[1][-1:]) == (b"\1", REQUEST)


def test_more_than_is_read_at_once_is_answered() -> None:
    many = b"".join([SOME[1]] * (READ_BYTES // len(SOME[1]) + 100))
    sent = b""
    with Pumped() as one:
        more, then = one.pump(many)
        while more:
            sent += more
            more, then = one.pump()
    assert (sent, then) == (b"\1" * (len(many) // len(SOME[1])), REQUEST)


def test_requests_that_wait_for_a_turn_wait_in_the_socket() -> None:
    """Or those of thousands of connections would fill the memory."""
    many = SOME[1] * 1000
    with Pumped(clock=TickingClock(step=1.0)) as one:
        assert one.pump(many) == (b"\1", TURN)
        left = fcntl.ioctl(one.client.sock, termios.FIONREAD, bytes(4))
        assert len(many) - int.from_bytes(left, sys.byteorder) <= 4096


@pytest.mark.parametrize("data", [b"\x02", b"\x04\x01\0\0\0", b"\x00\x02more"])
def test_a_libuuid_connection_has_one_request(data: bytes) -> None:
    with Pumped() as one:
        assert one.pump(data) == (b"reply", END)
        assert one.client.page_for is None


def test_a_client_that_does_not_read_has_no_more_answers_made() -> None:
    with Pumped(Answers(size=100_000)) as one:
        one.peer.sendall(b"".join(SOME))
        assert [one.client.pump(0.0) for _ in range(3)] == [READ] * 3
        assert len(one.answers.given) < 5
        sent = b""
        while len(sent) < 500_000:
            sent += one.pump()[0]
        assert sent == b"".join(bytes([number]) * 100_000 for number in range(5))


def test_a_client_that_has_gone_is_at_its_end() -> None:
    with Pumped() as one:
        one.peer.sendall(SOME[1])
        one.peer.close()
        assert one.client.pump(0.0) is END


def test_a_client_over_a_limit_is_told_why_once() -> None:
    note = notification("x")
    with Pumped(refusal="no room") as one:
        one.client.deadline = 1.0
        assert one.pump() == (b"", REST)
        assert one.pump(note + note[:2]) == (b"", REST)
        assert one.deadline() == 1.0
        sent, then = one.pump(note[2:] + SOME[3] + SOME[4])
        assert (rpc.unpack_response(sent), then) == (
            rpc.Response(3, "busy: no room", None),
            END,
        )
        # Each notification is heeded once, and no request.
        assert one.answers.given == [None, None]


@pytest.mark.parametrize("data", [b"\x02", b"GET /", b"\xc1"])
def test_a_client_over_a_limit_that_cannot_be_told_is_read(data: bytes) -> None:
    """A libuuid caller, say."""
    with Pumped(refusal="no room") as one:
        assert one.pump(data) == (b"", END)
        assert one.answers.given == []
